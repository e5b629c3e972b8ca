#!/usr/bin/env bash
# Collectives of listed groups, of one size and of several, by every algorithm that takes them, on real GPUs: every bit, on
# streams and as one kernel (where the emitter has a form of it), launched singly and replayed from a graph.
#
#   groups.sh NCCLX-RUN TOPOLOGY [ARGUMENTS]   needs the driver and NVRTC
set -uo pipefail
run=$1 topology=$2; shift 2
args=("$@")
work=$(mktemp -d); trap "rm -rf '$work'" EXIT
good=0 bad=0 none=0
# graph ALGORITHM OP FROM TO, in the groups at hand
graph() {
  local line form
  cat > "$work/g.mlir" <<EOF
ncclx.grid @g ["x" = $ranks]
func.func @f(%a: tensor<$3>) -> tensor<$4> {
  %r = ncclx.$2 over @g groups $groups algorithm $1 : tensor<$3> -> tensor<$4>
  return %r : tensor<$4>
}
EOF
  for form in --burst=0 --cuda-kernel=6; do
    line=$(timeout 120 "$run" "$work/g.mlir" --backend=cuda $form --topology="$topology" --graph=2 --replays=20 \
      --cuda-cache="$work/cache" "${args[@]}" 2>&1 | grep -E "error:|^ok:" | tail -1)
    case $line in
      ok:*) good=$((good + 1)) ;;
      *"no code can be made for GPUs"*) none=$((none + 1)); echo "no kernel: $2 by $1, $groups" ;;
      *) bad=$((bad + 1)); echo "$2 by $1, $groups, $form: $line" ;;
    esac
  done
}
for listed in "5 [[0, 2, 4], [1, 3]]" "6 [[5, 0, 3], [1, 4, 2]]"; do
  ranks=${listed%% *} groups=${listed#* }
  for a in direct ring bruck eager binomial; do
    if [[ $a != binomial ]]; then
      graph $a "all_reduce %a sum accumulate f32 order any" 65537xf32 65537xf32
      graph $a "all_reduce %a max accumulate i32 order any" 37xi32 37xi32
    fi
    if [[ $a != binomial && $ranks == 6 ]]; then
      graph $a "all_gather %a dim 0" 997xbf16 2991xbf16
      graph $a "reduce_scatter %a dim 0 sum accumulate i32 order any" 2991xi32 997xi32
      graph $a "all_to_all %a split 0 concat 0" 2991xi8 2991xi8
    fi
    if [[ $a != bruck && $a != eager ]]; then
      graph $a "broadcast %a root [1]" 4099xf64 4099xf64
      graph $a "reduce %a root [1] sum accumulate f32 order any" 4099xf32 4099xf32
    fi
  done
done
echo "$good passed, $bad failed; $none have no form as a kernel"
[[ $bad == 0 ]]
