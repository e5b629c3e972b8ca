# Sourced by examples/run and test/run: steps with elapsed time, packages, configure, build.
#   NCCLX_JOBS   parallel compile jobs (2)
set -euo pipefail
ncclx_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
ncclx_jobs=${NCCLX_JOBS:-2}
ncclx_start=$SECONDS

step() { printf '[%4ds] %s\n' $((SECONDS - ncclx_start)) "$*"; }

ncclx_packages=(cmake ninja-build ccache python3 python3-psutil libfmt-dev libpugixml-dev libgtest-dev
  liblpsolve55-dev libzstd-dev zlib1g-dev clang-22 lld-22 libclang-rt-22-dev llvm-22-dev llvm-22-tools
  libmlir-22-dev mlir-22-tools)

# Installs what is missing, and nothing when nothing is.
install_packages() {
  local missing=() p
  for p in "${ncclx_packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  step "installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    echo "error: these packages are missing and only root can install them: ${missing[*]}" >&2
    exit 1
  fi
  local log; log=$(mktemp)
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y \
         --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "error: could not install ${missing[*]} (log: $log)" >&2
    exit 1
  fi
  rm -f "$log"
}

# configure_build PRESET DIR [TARGETS...]
configure_build() {
  local preset=$1 dir=$2 log; shift 2
  log="$ncclx_root/$dir/configure.log"
  mkdir -p "$ncclx_root/$dir"
  step "configuring $dir"
  (cd "$ncclx_root" && cmake --preset "$preset" >"$log" 2>&1) || { tail -n 30 "$log" >&2; exit 1; }
  step "building $dir"
  (cd "$ncclx_root" && NINJA_STATUS='[%f/%t] ' stdbuf -oL ninja -C "$dir" -j "$ncclx_jobs" "$@" 2>&1) | progress
}

# One line every ten seconds or so, enough to see that it moves; everything once an error shows.
progress() {
  local line last=$SECONDS bad=0
  while IFS= read -r line; do
    case "$line" in *error:* | *FAILED:* | *"build stopped"*) bad=1 ;; esac
    if [ $bad = 1 ]; then
      printf '%s\n' "$line"
    elif ((SECONDS - last >= 10)); then
      last=$SECONDS
      printf '[%4ds]   %s\n' $((SECONDS - ncclx_start)) "$line"
    fi
  done
  return $bad
}
