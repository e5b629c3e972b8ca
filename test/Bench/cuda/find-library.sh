# find_library NAME SUFFIX: a library of CUDA's, in the toolkit, in Python's packages, or on the loader's path.
find_library() {
  local path
  for path in /usr/local/cuda*/lib64/$1.$2 \
    $(python3 -c 'import site, sys; print(*site.getsitepackages(), site.getusersitepackages(), *sys.path)' 2> /dev/null |
      tr ' ' '\n' | sed "s|\$|/nvidia/*/lib/$1.$2|"); do
    [[ -e $path ]] && echo "$path" && return
  done
  ldconfig -p 2> /dev/null | sed -n "s|.*=> \(.*/$1\.$2\)\$|\1|p" | head -1
}
