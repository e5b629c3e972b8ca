#!/usr/bin/env bash
# Ranks that are processes, on real GPUs: every bit, and the death of one. In a folder that `timeline.sh pack` made:
#
#   OUT/processes.sh     needs the driver and NVRTC; with AOT=FOLDER that `aot.sh pack` made, its consumer as processes, too
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
read -ra RUN_ARGS <<< "${RUN_ARGS:-}"

good=0 bad=0
say() {
  echo "$1: $3"
  if [[ $3 == $2 ]]; then good=$((good + 1)); else bad=$((bad + 1)); fi
}
# check NAME GRAPH TOPOLOGY OPTIONS...: processes give the reference's bits.
check() {
  local name=$1 graph=$2 topology=$3; shift 3
  say "$name" "ok:*processes on*" "$(timeout 300 "$here/ncclx-run" "$here/graphs/$graph.mlir" --processes --backend=cuda \
    --topology="$here/$topology-nvswitch.json" "$@" "${RUN_ARGS[@]}" 2>&1 | tail -1)"
}

# A rank is killed while all run back to back; the others end, and the line names it.
kill_one() {
  local out=$here/killed.txt start=$SECONDS
  "$here/ncclx-run" "$here/graphs/$2.mlir" --processes --backend=cuda --topology="$here/h200x2-nvswitch.json" \
    --timeout-ms=10000 "${@:3}" "${RUN_ARGS[@]}" > "$out" 2>&1 &
  local job=$! ranks=() i
  # Its children are the ranks, once both have the driver; the later one is rank 1.
  for ((i = 0; i < 600; ++i)); do
    sleep 0.1
    kill -0 $job || break
    ranks=($(pgrep -P $job || true))
    [[ ${#ranks[@]} == 2 ]] && grep -q cuda "/proc/${ranks[0]}/maps" && grep -q cuda "/proc/${ranks[1]}/maps" && break
  done 2> /dev/null
  sleep 6
  kill -KILL "${ranks[1]:-none}" 2> /dev/null || true
  wait $job || true
  say "$1, after $((SECONDS - start)) s" "error:*rank 1*" "$(tail -1 "$out")"
}

check "collectives" collectives h200x8
check "compute" compute h200x2
check "eager" eager h200x8
check "pipelined, replayed" pipelined h200x2 --graph=2 --replays=20
check "pipelined, timed" pipelined h200x2 --burst=50
check "one-shot kernel, replayed" one-shot h200x2 --cuda-kernel=1 --graph=4 --replays=20
check "two-shot kernel" two-shot h200x2 --cuda-kernel=1
check "packets kernel of 3 ranks" packets h200x8 --cuda-kernel=auto
check "a timeline" pipelined h200x2 --trace="$here/processes.json"
kill_one "killed, on streams" pipelined --burst=20000000
kill_one "killed, in a kernel" two-shot --cuda-kernel=1 --burst=20000000
# What a dead rank leaves is nobody's; the next run is as good as the first.
check "afterwards" pipelined h200x2
if [[ -n ${AOT:-} ]]; then
  for form in streams kernel; do
    say "ahead of time, $form" "ok:*" "$("$AOT/bin/aot-consumer" $form "" processes 2>&1 | tail -1)"
  done
fi
echo "$good passed, $bad failed"
[[ $bad == 0 ]]
