#!/usr/bin/env bash
# Schedules compiled ahead of time, on real GPUs: every bit.
#
#   aot.sh pack BUILD OUT   where the CUDA toolkit is and no GPU is needed; BUILD is a build folder of
#                           `cmake --preset static`, with all targets
#   OUT/aot.sh run          where GPUs are: needs the driver; for ncclx-run also NVRTC, ptxas and c++
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
archs=${ARCHS:-90}

pack() {
  local build out source
  build=$(cd "$1" && pwd) source=$(cd "$here/../../.." && pwd)
  mkdir -p "$2" && out=$(cd "$2" && pwd)
  local work; work=$(mktemp -d); trap "rm -rf '$work'" EXIT
  for component in Tools Runtime; do
    cmake --install "$build" --prefix "$work/prefix" --component $component --strip > /dev/null
  done
  cmake -S "$source/test/Package/Inputs/cuda" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$work/prefix" -DINPUTS="$source/test/Cuda/Inputs/aot" \
    -DTOPOLOGY="$source/examples/topologies/h200x8-nvswitch.json" "-DARCHS=$archs" \
    -DCMAKE_EXE_LINKER_FLAGS="-static-libstdc++ -static-libgcc" "${CMAKE_ARGS[@]}" > /dev/null
  cmake --build "$work/build" > /dev/null
  mkdir -p "$out/bin" "$out/graphs"
  cp "$work/build/aot-consumer" "$work/prefix/bin/ncclx-run" "$out/bin"
  cp -r "$work/prefix/include" "$out"
  cp "$source"/test/Cuda/Inputs/{collectives,compute,packets,eager,pipelined}.mlir "$out/graphs"
  cp "$source"/examples/topologies/h200x{2,8}-nvswitch.json "$out"
  cp "$here/aot.sh" "$out"
  echo "ok: packed $out"
}

# check NAME COMMAND...: its last line is "ok: ...".
good=0 bad=0
check() {
  local name=$1 line; shift
  line=$(timeout 300 "$@" 2>&1 | tail -1) || true
  echo "$name: $line"
  if [[ $line == ok:* ]]; then good=$((good + 1)); else bad=$((bad + 1)); fi
}

run() {
  local bin=$here/bin driver=${CUDA_DRIVER:-}
  check "consumer, streams" "$bin/aot-consumer" streams $driver
  check "consumer, kernel" "$bin/aot-consumer" kernel $driver
  # The two carriers, each against the reference interpreter: so their bits are the same.
  for carrier in jit cpp; do
    for graph in collectives eager compute; do
      check "$graph, $carrier" "$bin/ncclx-run" "$here/graphs/$graph.mlir" --backend=cuda \
        --carrier=$carrier --topology="$here/h200x8-nvswitch.json" --graph=2 --replays=20 "${RUN_ARGS[@]}"
    done
    check "pipelined, $carrier" "$bin/ncclx-run" "$here/graphs/pipelined.mlir" --backend=cuda \
      --carrier=$carrier --topology="$here/h200x2-nvswitch.json" --graph=2 --replays=20 "${RUN_ARGS[@]}"
    check "packets as a kernel, $carrier" "$bin/ncclx-run" "$here/graphs/packets.mlir" --backend=cuda \
      --carrier=$carrier --cuda-kernel=auto --topology="$here/h200x8-nvswitch.json" --graph=2 \
      --replays=100 "${RUN_ARGS[@]}"
  done
  echo "$good passed, $bad failed"
  [[ $bad == 0 ]]
}

read -ra CMAKE_ARGS <<< "${CMAKE_ARGS:-}"
read -ra RUN_ARGS <<< "${RUN_ARGS:-}"
case ${1:-} in
  pack) pack "$2" "$3" ;;
  run) run ;;
  *) sed -n '2,7s/^# \?//p' "$0"; exit 1 ;;
esac
