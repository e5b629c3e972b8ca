#!/usr/bin/env bash
# Products beside collectives, compiled ahead of time, against serial NCCL and against no communication.
#
#   overlap.sh pack BUILD OUT [small | PART]  needs NVRTC and ptxas, no GPU; BUILD is a build folder with ncclx-compile and
#                                       ncclx-opt, which schedules what is not, by MACHINE (default: h200x2)
#   OUT/overlap.sh run [OPTIONS]        where 2 GPUs are: the driver, cuBLASLt and, to compare with, NCCL; the options are
#                                       overlap.cpp's (as issue 8 wants it: --seconds=2 --warm-up=20; PyTorch beside it:
#                                       --async-tp=OUT/async_tp.py)
#
# CUBLASLT and NCCL name the libraries where the system does not find them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local build source out work name objects=()
  build=$(cd "$1" && pwd) source=$(cd "$here/../../.." && pwd)
  mkdir -p "$2" && out=$(cd "$2" && pwd)
  work=$(mktemp -d); trap "rm -rf '$work'" EXIT
  python3 "${GRAPHS:-$here/overlap.py}" "$work" ${3:-} # beside.sh brings others
  for graph in "$work"/*.plain.mlir; do
    [[ -e $graph ]] || break # the pattern itself: none is to be scheduled
    "$build/bin/ncclx-opt" "$graph" "--ncclx-overlap=machine=${MACHINE:-$source/examples/machines/h200x2.json}" \
      -o "${graph%.plain.mlir}.with.mlir"
    rm "$graph"
  done
  for graph in "$work"/*.mlir; do
    name=$(basename "$graph" .mlir); name=${name/./_}
    "$build/bin/ncclx-compile" "$graph" --backend=cuda --arch="${ARCHS:-90}" --name="$name" -o "$work" \
      --topology="$source/examples/topologies/h200x2-nvswitch.json" > /dev/null
    "${CXX:-c++}" -O1 -std=c++17 -I "$source/runtime/include" -c "$work/$name.cpp" -o "$work/$name.host.o"
    objects+=("$work/$name.host.o" "$work/$name.o")
  done
  "${CXX:-c++}" -O2 -std=c++20 -I "$source/runtime/include" -I "$work" "$here/overlap.cpp" "${objects[@]}" \
    "$build/runtime/libncclxrt_cuda.a" "$build/runtime/libncclxrt.a" \
    -static-libstdc++ -static-libgcc -ldl -lpthread -s -o "$out/overlap"
  cp "$here"/{overlap.sh,find-library.sh,async_tp.py} "$out"
  echo "ok: packed $out"
}

run() {
  . "$here/find-library.sh"
  local lt=${CUBLASLT:-$(find_library libcublasLt 'so.1[23]')} nccl=${NCCL:-$(find_library libnccl 'so.2')}
  "$here/overlap" ${lt:+--cublaslt="$lt"} ${nccl:+--nccl="$nccl"} "$@"
}

case ${1:-} in
  pack) pack "${@:2}" ;;
  run) run "${@:2}" ;;
  *) sed -n '2,10s/^# \?//p' "$0"; exit 1 ;;
esac
