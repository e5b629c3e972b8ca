# ncclx_add_schedule(NAME SRC graph.mlir TOPOLOGY file [FUNCTION name] [TRANSPORT shm|tcp] [CPU name]
#   [SIZES name=value ...])
#
# Compiles a graph ahead of time (ncclx-compile) into the library NAME, whose header NAME.h is the C
# interface of the schedule. Made again when the graph, the topology or the compiler changes.
function(ncclx_add_schedule name)
  cmake_parse_arguments(A "" "SRC;TOPOLOGY;FUNCTION;TRANSPORT;CPU" "SIZES" ${ARGN})
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
  add_custom_command(OUTPUT ${made}
    COMMAND NCCLX::ncclx-compile "${SRC}" ${options} -o "${folder}"
    DEPENDS "${SRC}" "${TOPOLOGY}" NCCLX::ncclx-compile
    COMMENT "Compiling schedule ${name}" VERBATIM)
  set_source_files_properties("${folder}/${name}.o" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(${name} STATIC ${made})
  target_include_directories(${name} PUBLIC "${folder}")
  target_link_libraries(${name} PUBLIC NCCLX::ncclxrt)
endfunction()
