#!/usr/bin/env bash
# Products of matrices by cuBLASLt, on real GPUs: every layout, type, size and scale, against the reference.
#
#   gemm.sh pack BUILD OUT   needs no GPU; BUILD is a build folder of `cmake --preset static` with ncclx-run
#   OUT/gemm.sh run          where 2 GPUs are: needs the driver, cuBLASLt and NVRTC of CUDA 12 or 13
#
# CUBLASLT and NVRTC name the libraries where the system does not find them; RUN_ARGS are more options of ncclx-run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local build source out kind
  build=$(cd "$1" && pwd) source=$(cd "$here/../../.." && pwd)
  mkdir -p "$2/bin" "$2/graphs" && out=$(cd "$2" && pwd)
  strip -o "$out/bin/ncclx-run" "$build/bin/ncclx-run"
  for kind in layouts shapes scales empty; do
    python3 "$source/test/Cuda/Inputs/gemms.py" $kind > "$out/graphs/$kind.mlir"
  done
  python3 "$here/overlap.py" "$out/graphs" small
  cp "$source"/test/Cuda/Inputs/{compute,gemm-program}.mlir "$out/graphs"
  cp "$source/examples/llama3-layer-backward/graph.mlir" "$out/graphs/layer.mlir"
  cp "$source"/examples/topologies/h200x{2,8}-nvswitch.json "$out"
  cp "$here"/{gemm,find-library}.sh "$out"
  echo "ok: packed $out"
}

# check NAME COMMAND...: its last line is "ok: ...".
good=0 bad=0
check() {
  local name=$1 line; shift
  line=$(timeout 300 "$@" 2>&1 | tail -1) || true
  printf '{"check": "%s", "says": "%s"}\n' "$name" "${line//\"/\'}"
  if [[ $line == ok:* ]]; then good=$((good + 1)); else bad=$((bad + 1)); fi
}

run() {
  . "$here/find-library.sh"
  local lt=${CUBLASLT:-$(find_library libcublasLt 'so.1[23]')} nvrtc=${NVRTC:-$(find_library libnvrtc 'so.1[23]')} kind inputs
  local base=("$here/bin/ncclx-run" --backend=cuda --gemm=cublaslt --graph=2 --replays=20)
  [[ $lt ]] && base+=(--cuda-cublaslt="$lt")
  [[ $nvrtc ]] && base+=(--cuda-nvrtc="$nvrtc")
  base+=("${RUN_ARGS[@]}")
  for inputs in random whole; do
    for kind in layouts shapes scales empty compute gemm-program {pair_16_24_32,gather_32_16_24,scatter_32_16_24}.with; do
      check "$kind, $inputs" "${base[@]}" "$here/graphs/$kind.mlir" --inputs=$inputs \
        --topology="$here/h200x2-nvswitch.json"
    done
  done
  check "layer, small" "${base[@]}" "$here/graphs/layers_small.plain.mlir" --topology="$here/h200x2-nvswitch.json"
  check "layer" "${base[@]}" "$here/graphs/layer.mlir" --topology="$here/h200x8-nvswitch.json"
  # Without cuBLASLt the same graphs, every bit.
  check "scales, generated" "${base[@]}" --gemm=generated "$here/graphs/scales.mlir" \
    --topology="$here/h200x2-nvswitch.json"
  echo "$good passed, $bad failed"
  [[ $bad == 0 ]]
}

read -ra RUN_ARGS <<< "${RUN_ARGS:-}"
case ${1:-} in
  pack) pack "$2" "$3" ;;
  run) run ;;
  *) sed -n '2,7s/^# \?//p' "$0"; exit 1 ;;
esac
