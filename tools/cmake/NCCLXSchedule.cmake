# ncclx_add_schedule(NAME SRC graph.mlir TOPOLOGY file [FUNCTION name] [TRANSPORT shm|tcp] [CPU name]
#                    [SIZES name=value ...])
# ncclx_add_schedule(NAME SRC graph.mlir TOPOLOGY file ARCHS 90 [100 ...]|source [KERNEL auto|blocks] [GEMM cublaslt|generated]
#                    [FUNCTION name] [SIZES name=value ...])
#
# Compiles a graph ahead of time (ncclx-compile) into the library NAME, whose header NAME.h is the C
# interface of the schedule. Made again when the graph, the topology or the compiler changes. With
# ARCHS it runs on GPUs of those compute capabilities, 90 for 9.0; `source` compiles the kernels when
# a plan is prepared. KERNEL makes it one kernel; GEMM says by whom products of matrices are (default cublaslt).
function(ncclx_add_schedule name)
  cmake_parse_arguments(A "" "SRC;TOPOLOGY;FUNCTION;TRANSPORT;CPU;KERNEL;GEMM" "ARCHS;SIZES" ${ARGN})
  if(A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ncclx_add_schedule(${name}): unknown arguments ${A_UNPARSED_ARGUMENTS}")
  endif()
  foreach(needed SRC TOPOLOGY)
    if(NOT A_${needed})
      message(FATAL_ERROR "ncclx_add_schedule(${name}): ${needed} is missing")
    endif()
    file(REAL_PATH "${A_${needed}}" path BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    set(${needed} "${path}")
  endforeach()
  set(options "--topology=${TOPOLOGY}" "--name=${name}")
  foreach(option FUNCTION TRANSPORT CPU)
    if(A_${option})
      string(TOLOWER "${option}" flag)
      list(APPEND options "--${flag}=${A_${option}}")
    endif()
  endforeach()
  foreach(size IN LISTS A_SIZES)
    list(APPEND options "--size=${size}")
  endforeach()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.schedule")
  set(made "${folder}/${name}.h" "${folder}/${name}.cpp" "${folder}/${name}.o"
    "${folder}/${name}.json")
  set(runtime NCCLX::ncclxrt)
  if(A_ARCHS)
    if(A_TRANSPORT OR A_CPU)
      message(FATAL_ERROR "ncclx_add_schedule(${name}): ARCHS is for GPUs, TRANSPORT and CPU are not")
    endif()
    string(REPLACE ";" "," archs "${A_ARCHS}")
    list(APPEND options --backend=cuda "--arch=${archs}")
    if(A_KERNEL)
      list(APPEND options "--cuda-kernel=${A_KERNEL}")
    endif()
    if(A_GEMM)
      list(APPEND options "--gemm=${A_GEMM}")
    endif()
    if(NOT A_ARCHS STREQUAL "source")
      _ncclx_find_cuda("${name}" "${archs}")
      list(APPEND options "--cuda-nvrtc=${NCCLX_NVRTC}" "--cuda-headers=${NCCLX_CUDA_HEADERS}"
        "--ptxas=${NCCLX_PTXAS}")
    endif()
    set(runtime NCCLX::ncclxrt_cuda)
  elseif(A_KERNEL OR A_GEMM)
    message(FATAL_ERROR "ncclx_add_schedule(${name}): KERNEL and GEMM are for GPUs, ARCHS is missing")
  endif()
  add_custom_command(OUTPUT ${made}
    COMMAND NCCLX::ncclx-compile "${SRC}" ${options} -o "${folder}"
    DEPENDS "${SRC}" "${TOPOLOGY}" NCCLX::ncclx-compile
    COMMENT "Compiling schedule ${name}" VERBATIM)
  set_source_files_properties("${folder}/${name}.o" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(${name} STATIC ${made})
  target_include_directories(${name} PUBLIC "${folder}")
  target_link_libraries(${name} PUBLIC ${runtime})
endfunction()

# What compiles kernels: NCCLX_NVRTC, NCCLX_CUDA_HEADERS and NCCLX_PTXAS, of the CUDA toolkit. No GPU
# and no nvcc.
function(_ncclx_find_cuda name archs)
  set(places ENV CUDA_HOME ENV CUDA_PATH)
  find_library(NCCLX_NVRTC NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12 HINTS ${places}
    PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib)
  find_path(NCCLX_CUDA_HEADERS cuda_fp16.h HINTS ${places} PATHS /usr/local/cuda
    PATH_SUFFIXES include)
  find_program(NCCLX_PTXAS ptxas HINTS ${places} PATHS /usr/local/cuda PATH_SUFFIXES bin)
  set(missing "")
  foreach(part "NCCLX_NVRTC;the library NVRTC" "NCCLX_CUDA_HEADERS;the headers (cuda_fp16.h)"
      "NCCLX_PTXAS;the assembler ptxas")
    list(GET part 0 variable)
    list(GET part 1 what)
    if(NOT ${variable})
      list(APPEND missing "${what} [${variable}]")
    endif()
  endforeach()
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "ncclx_add_schedule(${name}): ARCHS ${archs} compiles kernels, but of the "
      "CUDA toolkit these are missing: ${missing}. Set the variables or CUDA_HOME; or ARCHS source, "
      "which compiles when a plan is prepared.")
  endif()
endfunction()
