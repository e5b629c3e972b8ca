#!/usr/bin/env bash
# Collectives that go block by block in one kernel (passes/lib/Conversion/NCCLXToCTran/Blocks.cpp), on real GPUs: every bit,
# launched singly and replayed from a graph, on 2, 3 and 8 ranks.
#
#   blocks.sh NCCLX-RUN TOPOLOGY   where GPUs are: needs the driver and NVRTC
set -uo pipefail
run=$1 topology=$2
work=$(mktemp -d); trap "rm -rf '$work'" EXIT
good=0 bad=0
# graph RANKS OP FROM TO BLOCKS
graph() {
  local line
  cat > "$work/g.mlir" <<EOF
ncclx.grid @g ["x" = $1]
func.func @f(%a: tensor<$3>) -> tensor<$4> {
  %r = ncclx.$2 over @g["x"] algorithm direct : tensor<$3> -> tensor<$4>
  return %r : tensor<$4>
}
EOF
  line=$(timeout 120 "$run" "$work/g.mlir" --backend=cuda --cuda-kernel=$5 --topology="$topology" --graph=2 --replays=50 \
    --cuda-cache="$work/cache" 2>&1 | tail -1)
  if [[ $line == ok:* ]]; then good=$((good + 1)); else bad=$((bad + 1)); echo "$1 ranks, $2 $3, $5 blocks: $line"; fi
}
declare -A sizes=([2]="1 65537" [3]="997" [8]="997 65537")
for n in 2 3 8; do
  for e in ${sizes[$n]}; do
    graph $n "all_gather %a dim 0" ${e}xbf16 $((n * e))xbf16 7
    graph $n "all_to_all %a split 0 concat 0" $((n * e))xi8 $((n * e))xi8 5
    graph $n "reduce_scatter %a dim 0 sum accumulate f32 order rank" $((n * e))xf16 ${e}xf16 6
    graph $n "all_reduce %a sum accumulate f32 order rank" ${e}xf32 ${e}xf32 8
    graph $n "all_reduce %a max accumulate i64 order rank" ${e}xi64 ${e}xi64 3
    graph $n "all_reduce %a avg accumulate f32 order rank" ${e}xbf16 ${e}xbf16 5
    graph $n "all_reduce %a prod accumulate f64 order rank" ${e}xf64 ${e}xf64 6
    graph $n "reduce_scatter %a dim 0 sum scale 3.0e-01 accumulate f32 order rank" $((n * e))xf32 ${e}xf32 7
    graph $n "broadcast %a root [$((n - 1))]" ${e}xf64 ${e}xf64 4
    graph $n "permute %a shift -1" ${e}xui16 ${e}xui16 4
  done
  graph $n "all_reduce %a sum accumulate f32 order rank" 4000037xbf16 4000037xbf16 $((n == 8 ? 16 : 100))
  graph $n "scatter %a dim 0 root [0]" $((n * 1000))x33xf32 1000x33xf32 16
done
echo "$good passed, $bad failed"
[[ $bad == 0 ]]
