# How this project's targets are built against Debian's MLIR.
#
# Debian builds LLVM with LLVM_LINK_LLVM_DYLIB=ON, so each exported static MLIR
# library names the shared `LLVM` in INTERFACE_LINK_LIBRARIES. For a static tool
# that name must be taken out, and LLVM's archives named instead.

if(NCCLX_LINK STREQUAL "static")
  set(_seen "")
  foreach(lib IN LISTS MLIR_EXPORTED_TARGETS)
    if(NOT TARGET ${lib})
      continue()
    endif()
    get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
    if(deps)
      list(TRANSFORM deps REPLACE "^(LLVM|MLIR)$" "ncclx_llvm_static")
      list(REMOVE_DUPLICATES deps)
      set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${deps}")
    endif()
  endforeach()
  add_library(ncclx_llvm_static INTERFACE IMPORTED GLOBAL)
  set(_components Support Core BinaryFormat Remarks BitstreamReader TargetParser)
  # The in-process carrier compiles and links x86-64 code.
  list(APPEND _components X86CodeGen X86Desc X86AsmParser X86Info Passes OrcJIT ExecutionEngine
       JITLink RuntimeDyld PerfJITEvents BitReader BitWriter IRReader Linker FrontendOpenMP
       FrontendOffloading)
  list(TRANSFORM _components PREPEND LLVM)
  # Self-contained: Support's compression from the archives too, and not z3
  # (LLVMSupport names /usr/lib/.../libz3.so; nothing a tool uses needs it).
  if(NOT TARGET zstd::libzstd_static)
    message(FATAL_ERROR "install libzstd-dev: LLVMSupport's export names zstd::libzstd_shared")
  endif()
  find_library(NCCLX_ZLIB_ARCHIVE libz.a REQUIRED)
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
    "rt;dl;m;${NCCLX_ZLIB_ARCHIVE};zstd::libzstd_static;LLVMDemangle")
  target_link_libraries(ncclx_llvm_static INTERFACE ${_components})
endif()

if(NCCLX_LINK STREQUAL "shared")
  # libMLIR.so.22.1 is in /usr/lib/llvm-22/lib alone, which ld.so does not search.
  list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/../lib" "${LLVM_LIBRARY_DIRS}")
endif()

function(ncclx_link_mlir target visibility)
  if(NCCLX_LINK STREQUAL "shared")
    target_link_libraries(${target} ${visibility} MLIR LLVM)
  else()
    target_link_libraries(${target} ${visibility} ${ARGN})
  endif()
endfunction()

add_library(ncclx_options INTERFACE)
separate_arguments(_llvm_definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(ncclx_options INTERFACE ${_llvm_definitions})
target_link_libraries(ncclx_options INTERFACE fmt::fmt-header-only)
# -fPIC in programs too: one precompiled header serves both.
target_compile_options(ncclx_options INTERFACE -fPIC -fno-semantic-interposition
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter>
  -ffunction-sections -fdata-sections)
target_link_options(ncclx_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_link_options(ncclx_options INTERFACE -fuse-ld=lld)
endif()
if(NCCLX_LINK STREQUAL "static" AND NOT NCCLX_SANITIZE)
  target_link_options(ncclx_options INTERFACE -static-libstdc++ -static-libgcc)
endif()
if(NCCLX_SANITIZE)
  # vptr needs RTTI, which LLVM is built without; function reads what stands before a function, and
  # before code made in this process there may be nothing. Whatever is found ends the program.
  target_compile_options(ncclx_options INTERFACE -fsanitize=${NCCLX_SANITIZE}
    -fno-sanitize=vptr,function -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ncclx_options INTERFACE -fsanitize=${NCCLX_SANITIZE})
endif()

function(ncclx_asan_options target)
  if(NCCLX_SANITIZE MATCHES "address")
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tools/cmake/asan-options.cpp")
  endif()
endfunction()

# Which precompiled headers a target sees (NCCLXPrecompiled.cmake), as `kind`.
macro(_ncclx_kind plain)
  set(kind mlir)
  if(${plain})
    set(kind plain)
  endif()
endmacro()

# ncclx_add_library(NAME ROOM room SOURCES... [DEPENDS tblgen targets] [MLIR libs] [LINK libs] [PLAIN])
#
# A compiler library of the room `room` (dialect, passes, codegen, tools). MLIR lists the static
# archives it needs (NCCLX_LINK=static). PLAIN: no MLIR at all, LLVM's Support alone.
function(ncclx_add_library name)
  cmake_parse_arguments(A "PLAIN" "ROOM" "SOURCES;DEPENDS;MLIR;LINK" ${ARGN})
  _ncclx_kind("${A_PLAIN}")
  add_library(${name} STATIC ${A_SOURCES})
  add_library(NCCLX::${name} ALIAS ${name})
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${A_ROOM}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/${A_ROOM}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:ncclx_options>)
  target_link_libraries(${name} PUBLIC ${A_LINK})
  if(A_PLAIN)
    if(NCCLX_LINK STREQUAL "shared")
      target_link_libraries(${name} PUBLIC LLVM)
    else()
      target_link_libraries(${name} PUBLIC LLVMSupport)
    endif()
  else()
    ncclx_link_mlir(${name} PUBLIC ${A_MLIR})
  endif()
  ncclx_precompile(${name} ${kind})
  if(NOT A_ROOM STREQUAL "tools") # what the tools share is theirs
    set_property(GLOBAL APPEND PROPERTY NCCLX_LIBRARIES ${name})
  endif()
endfunction()

# ncclx_add_tool(NAME SOURCES... [MLIR libs] [LINK libs] [PLAIN])
function(ncclx_add_tool name)
  cmake_parse_arguments(A "PLAIN" "" "SOURCES;MLIR;LINK" ${ARGN})
  _ncclx_kind("${A_PLAIN}")
  add_executable(${name} ${A_SOURCES})
  add_executable(NCCLX::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE ncclx_options ${A_LINK})
  ncclx_link_mlir(${name} PRIVATE ${A_MLIR})
  ncclx_asan_options(${name})
  ncclx_precompile(${name} ${kind}) # of all its sources
  install(TARGETS ${name} EXPORT NCCLXToolsTargets
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT Tools)
endfunction()

# ncclx_add_unittest(NAME SOURCES... [LINK libs] [PLAIN] [SANITIZER] [SLOW filter])
#
# A GoogleTest program, one ctest a case. PLAIN: knows no MLIR. SANITIZER: of those that test/run runs
# under sanitizers, too, where it builds them (test/run names them). SLOW: cases that match the
# GoogleTest filter are left out of `test/run --quick`.
function(ncclx_add_unittest name)
  cmake_parse_arguments(A "PLAIN;SANITIZER" "SLOW" "SOURCES;LINK" ${ARGN})
  _ncclx_kind("${A_PLAIN}")
  add_executable(${name} ${A_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE ncclx_options ${A_LINK} GTest::gtest GTest::gtest_main)
  ncclx_asan_options(${name})
  ncclx_precompile(${name} ${kind}) # of all its sources
  set(label unit)
  if(A_SANITIZER)
    set(label sanitizer)
  endif()
  set(quick "*")
  if(A_SLOW)
    set(quick "-${A_SLOW}")
    gtest_discover_tests(${name} TEST_PREFIX "unit." TEST_FILTER "${A_SLOW}" TEST_LIST ${name}_slow
      DISCOVERY_TIMEOUT 60 PROPERTIES LABELS slow)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "unit." TEST_FILTER "${quick}"
    DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${label})
endfunction()
