#!/usr/bin/env bash
# Builds cuda_bench without CMake, on a machine that has nvcc and many cores: build.sh SOURCE OUT
# (fmt's headers, and NCCL's, are looked for in SOURCE/include, too).
set -euo pipefail
source=$(cd "$1" && pwd) out=$2
mkdir -p "$out"
here=$source/test/Bench/cuda
include="-I $source/runtime/include -I $source/include -I $(dirname "$(command -v nvcc)")/../include"
nv="nvcc -O3 -std=c++20 -gencode=arch=compute_90a,code=sm_90a $include"
jobs=()
job() { "$@" & jobs+=($!); }
job $nv -c "$here/data.cu" -o "$out/data.o"
for r in 2 3 8; do
  job $nv -DNCCLX_RANKS=$r -c "$here/moves.cu" -o "$out/moves$r.o"
  job $nv -DNCCLX_RANKS=$r -DNCCLX_TYPE=__nv_bfloat16 -DNCCLX_DTYPE=BF16 -c "$here/sums.cu" -o "$out/sums$r.o"
done
job $nv -DNCCLX_RANKS=2 -DNCCLX_TYPE=float -DNCCLX_DTYPE=F32 -c "$here/sums.cu" -o "$out/sums2f.o"
for t in F32:float F64:double F16:__half BF16:__nv_bfloat16 F8E4M3:__nv_fp8_e4m3 \
  F8E5M2:__nv_fp8_e5m2 I8:int8_t I16:int16_t I32:int32_t I64:int64_t U8:uint8_t U16:uint16_t \
  U32:uint32_t U64:uint64_t; do
  job $nv -DNCCLX_TYPE=${t#*:} -DNCCLX_DTYPE=${t%:*} -c "$here/types.cu" -o "$out/types${t%:*}.o"
done
for f in bench check choose nccl rank; do
  job g++ -O2 -std=c++20 $include -c "$here/$f.cpp" -o "$out/$f.o"
done
for f in Comm Abi Driver; do
  job g++ -O2 -std=c++20 -DFMT_HEADER_ONLY $include -c "$source/runtime/lib/cuda/$f.cpp" -o "$out/rt$f.o"
done
# Programs that ncclx-translate printed, in SOURCE/generated: NAME.DTYPE.cu
for g in "$source"/generated/*.cu; do
  [ -e "$g" ] || continue
  name=$(basename "$g" .cu); dtype=${name#*.}; name=${name%%.*}
  job $nv -c "$g" -o "$out/generated-$name.obj"
  job g++ -O2 -std=c++20 $include -DNCCLX_PROGRAM=$name -DNCCLX_DTYPE=$dtype \
    -c "$here/generated.cpp" -o "$out/run-$name.obj"
done
for j in "${jobs[@]}"; do wait "$j"; done
for o in "$out"/generated-*.obj; do
  [ -e "$o" ] || continue
  name=$(basename "$o" .obj); name=${name#generated-}
  nvcc -cudart static -o "$out/generated_$name" "$o" "$out/run-$name.obj" "$out"/data.o "$out"/rt*.o \
    -ldl -lpthread
done
nvcc -cudart static -o "$out/cuda_bench" "$out"/*.o -ldl -lpthread
