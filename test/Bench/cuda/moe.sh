#!/usr/bin/env bash
# MoE dispatch and combine with counts in device memory, compiled ahead of time, against NCCL's grouped send and recv with
# counts that the host knows; on streams, and as one kernel. Shapes of Qwen3-30B-A3B (hidden 2048, 8 experts a token) on 2 ranks.
#
#   moe.sh pack BUILD OUT [TOKENS ...]  needs NVRTC, no GPU; BUILD is a build folder with ncclx-compile
#   OUT/moe.sh run [OPTIONS]            where 2 GPUs are: the driver and, to compare with, NCCL; the options are moe.cpp's
#
# NCCL names the library where the system does not find it. BLOCKS, of pack: those of a kernel, where ranks are to share a GPU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() {
  local build source out work tokens rows kind name form objects=()
  build=$(cd "$1" && pwd) source=$(cd "$here/../../.." && pwd)
  mkdir -p "$2" && out=$(cd "$2" && pwd)
  work=$(mktemp -d); trap "rm -rf '$work'" EXIT
  : > "$work/cases.inc"; echo "static const Case cases[] = {" > "$work/cases.list"
  shift 2; [[ $# -gt 0 ]] || set -- 16 128 1024 4096
  for tokens in "$@"; do
    rows=$((2 * 8 * tokens)) # a token's rows may all go to one rank
    for kind in dispatch combine; do
      name=$kind$tokens
      {
        echo 'ncclx.grid @g ["ep" = 2]'
        if [[ $kind == dispatch ]]; then # who gets rows learns how many
          echo "func.func @f(%x: tensor<${rows}x2048xbf16>, %n: tensor<2xi32>) -> (tensor<${rows}x2048xbf16>, tensor<2xi32>) {"
          echo '  %m = ncclx.all_to_all %n split 0 concat 0 over @g["ep"] : tensor<2xi32> -> tensor<2xi32>'
        else
          echo "func.func @f(%x: tensor<${rows}x2048xbf16>, %n: tensor<2xi32>) -> tensor<${rows}x2048xbf16> {"
        fi
        echo "  %y = ncclx.all_to_all_v %x dim 0 sizes %n : tensor<2xi32> over @g[\"ep\"] : tensor<${rows}x2048xbf16> -> tensor<${rows}x2048xbf16>"
        if [[ $kind == dispatch ]]; then echo "  return %y, %m : tensor<${rows}x2048xbf16>, tensor<2xi32>"
        else echo "  return %y : tensor<${rows}x2048xbf16>"; fi
        echo '}'
      } > "$work/$name.mlir"
      for form in "" k; do
        "$build/bin/ncclx-compile" "$work/$name.mlir" --backend=cuda ${form:+--cuda-kernel="${BLOCKS:-auto}"} --arch="${ARCHS:-90}" \
          --name="$name$form" -o "$work" --topology="$source/examples/topologies/h200x2-nvswitch.json" > /dev/null
        "${CXX:-c++}" -O1 -std=c++17 -I "$source/runtime/include" -c "$work/$name$form.cpp" -o "$work/$name$form.host.o"
        objects+=("$work/$name$form.host.o" "$work/$name$form.o")
        echo "#include \"$name$form.h\"" >> "$work/cases.inc"
      done
      echo "    {\"$kind\", $tokens, {SCHEDULE($name), SCHEDULE(${name}k)}}," >> "$work/cases.list"
    done
  done
  { cat "$work/cases.list"; echo "};"; } >> "$work/cases.inc"
  "${CXX:-c++}" -O2 -std=c++20 -I "$source/runtime/include" -I "$work" "$here/moe.cpp" "${objects[@]}" \
    "$build/runtime/libncclxrt_cuda.a" "$build/runtime/libncclxrt.a" \
    -static-libstdc++ -static-libgcc -ldl -lpthread -s -o "$out/moe"
  cp "$here/moe.sh" "$here/find-library.sh" "$out"
  echo "ok: packed $out"
}

run() {
  . "$here/find-library.sh"
  local nccl=${NCCL:-$(find_library libnccl 'so.2')}
  "$here/moe" ${nccl:+--nccl="$nccl"} "$@"
}

case ${1:-} in
  pack) pack "${@:2}" ;;
  run) run "${@:2}" ;;
  *) sed -n '2,8s/^# \?//p' "$0"; exit 1 ;;
esac
