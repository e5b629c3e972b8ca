#!/usr/bin/env bash
# An all_gather beside memory-bound work, and two at once: how much longer each takes (beside.py, overlap.cpp).
#
#   beside.sh pack BUILD OUT      needs NVRTC and ptxas, no GPU; BUILD is a build folder with ncclx-compile
#   OUT/overlap.sh run [OPTIONS]  where 2 GPUs are; the options are overlap.cpp's
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in
  pack) GRAPHS="$here/beside.py" exec "$here/overlap.sh" pack "${@:2}" ;;
  *) sed -n '2,6s/^# \?//p' "$0"; exit 1 ;;
esac
