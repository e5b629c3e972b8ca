#!/usr/bin/env bash
# The measured timeline of every op, on real GPUs.
#
#   timeline.sh pack BUILD OUT   needs no GPU; BUILD is a build folder of `cmake --preset static`, with ncclx-run
#   OUT/timeline.sh run          where GPUs are: needs the driver, NVRTC and python3; traces are left in OUT/traces, or $TRACES
#
# `ncclx-opt test/Cuda/Inputs/contract.mlir --ncclx-diagnose --trace=contract.json` reads them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local source; source=$(cd "$here/../../.." && pwd)
  mkdir -p "$2/graphs"
  strip -o "$2/ncclx-run" "$1/bin/ncclx-run"
  cp "$source"/test/Cuda/Inputs/{collectives,compute,contract,packets,eager,pipelined,one-shot,two-shot}.mlir "$2/graphs"
  cp "$source"/examples/topologies/h200x{2,8}-nvswitch.json "$source/test/Cuda/Inputs/check-timeline.py" "$here/"{timeline,processes}.sh "$2"
  echo "ok: packed $2"
}

good=0 bad=0
say() {
  echo "$1: $2"
  if [[ $2 == ok:* ]]; then good=$((good + 1)); else bad=$((bad + 1)); fi
}

# check NAME GRAPH TOPOLOGY OPTIONS...: it runs, every bit is right, and the timeline is whole.
check() {
  local name=$1 graph=$2 topology=$3 line; shift 3
  local trace=$traces/${name// /-}.json
  line=$(timeout 300 "$here/ncclx-run" "$here/graphs/$graph.mlir" --topology="$here/$topology-nvswitch.json" --backend=cuda \
    --trace="$trace" --json="$trace.report" "$@" "${RUN_ARGS[@]}" 2>&1 | tail -1) || true
  if [[ $line == ok:* ]]; then
    # Clocks agree within what the report says.
    slack=$(python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['this_machine']['clock_error_us'])" "$trace.report")
    line="$(python3 "$here/check-timeline.py" "$trace" "$slack" 2>&1 | tail -1), clocks within $slack us"
  fi
  say "$name" "$line"
}

run() {
  mkdir -p "$traces"
  check "collectives" collectives h200x8
  check "collectives replayed" collectives h200x8 --graph=2 --replays=5
  check "compute" compute h200x2
  check "eager" eager h200x8
  check "pipelined" pipelined h200x2
  check "pipelined replayed" pipelined h200x2 --graph=2 --replays=5
  check "one-shot kernel" one-shot h200x2 --cuda-kernel=1
  check "two-shot kernel" two-shot h200x2 --cuda-kernel=1
  check "packets kernel" packets h200x8 --cuda-kernel=auto
  check "packets kernel replayed" packets h200x8 --cuda-kernel=auto --graph=4 --replays=5
  check "contract" contract h200x2
  echo "$good passed, $bad failed"
  [[ $bad == 0 ]]
}

traces=${TRACES:-$here/traces}
read -ra RUN_ARGS <<< "${RUN_ARGS:-}"
case ${1:-} in
  pack) pack "$2" "$3" ;;
  run) run ;;
  *) sed -n '2,7s/^# \?//p' "$0"; exit 1 ;;
esac
