#!/usr/bin/env bash
# A decode step as one captured graph, with our all_reduces and with NCCL's.
#
#   decode.sh pack BUILD OUT   needs NVRTC, no GPU; BUILD is a build folder with ncclx-compile
#   OUT/decode.sh run          where 2 GPUs and PyTorch are
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local build source out work batch objects=()
  build=$(cd "$1" && pwd) source=$(cd "$here/../../.." && pwd)
  mkdir -p "$2" && out=$(cd "$2" && pwd)
  work=$(mktemp -d); trap "rm -rf '$work'" EXIT
  for batch in 1 16 64 256; do
    cat > "$work/reduce.mlir" <<EOF
ncclx.grid @g ["tp" = 2]
func.func @reduce(%a: tensor<${batch}x8192xbf16>) -> tensor<${batch}x8192xbf16> {
  %r = ncclx.all_reduce %a sum accumulate f32 order rank over @g["tp"] : tensor<${batch}x8192xbf16> -> tensor<${batch}x8192xbf16>
  return %r : tensor<${batch}x8192xbf16>
}
EOF
    "$build/bin/ncclx-compile" "$work/reduce.mlir" --backend=cuda --arch="${ARCHS:-90}" --name="reduce$batch" -o "$work" \
      --cuda-kernel=auto --topology="$source/examples/topologies/h200x2-nvswitch.json" > /dev/null
    "${CXX:-c++}" -O1 -fPIC -std=c++17 -I "$source/runtime/include" -c "$work/reduce$batch.cpp" -o "$work/reduce$batch.host.o"
    objects+=("$work/reduce$batch.host.o" "$work/reduce$batch.o")
  done
  "${CXX:-c++}" -shared -o "$out/decode.so" "${objects[@]}" -Wl,--whole-archive "$build/runtime/libncclxrt_cuda.a" \
    "$build/runtime/libncclxrt.a" -Wl,--no-whole-archive -static-libstdc++ -static-libgcc -ldl -lpthread -lrt -s
  cp "$here/decode.sh" "$here/decode.py" "$out"
  echo "ok: packed $out"
}

case ${1:-} in
  pack) pack "$2" "$3" ;;
  run) CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32 python3 "$here/decode.py" "$here" ;;
  *) sed -n '2,5s/^# \?//p' "$0"; exit 1 ;;
esac
