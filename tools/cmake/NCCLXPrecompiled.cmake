# Headers that are compiled once: of what LLVM, MLIR and the standard library give, never our own, so
# that no change of ours compiles everything anew. Of three kinds: `mlir`, `plain` for what knows no MLIR,
# `runtime` for what knows no LLVM.
# They hide what a file forgets to include: NCCLX_PRECOMPILE=OFF compiles each from its own includes
# alone.
option(NCCLX_PRECOMPILE "Compile the headers of LLVM and MLIR once" ON)

function(_ncclx_precompiled kind)
  set(target ncclx_precompiled_${kind})
  set(file "${PROJECT_BINARY_DIR}/${target}.cpp")
  file(CONFIGURE OUTPUT "${file}" CONTENT "// Has the precompiled headers, and nothing else.\n")
  add_library(${target} STATIC EXCLUDE_FROM_ALL "${file}")
  target_link_libraries(${target} PRIVATE ncclx_options)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  # ccache (CCACHE_PCH_EXTSUM) takes what is in the .sum for the contents: build folders share objects.
  get_target_property(options ncclx_options INTERFACE_COMPILE_OPTIONS)
  string(SHA256 sum "${CMAKE_CXX_COMPILER_VERSION} ${MLIR_VERSION} ${LLVM_PACKAGE_VERSION} ${fmt_VERSION} ${options} ${ARGN}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum"
    CONTENT "${sum}\n")
endfunction()

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT CMAKE_GENERATOR MATCHES "Ninja")
  set(NCCLX_PRECOMPILE OFF) # clang's flags, and paths as ninja sees them
endif()
if(NCCLX_PRECOMPILE)
  set(_runtime <algorithm> <chrono> <cmath> <cstdint> <cstdlib> <cstring> <deque> <functional> <limits>
    <map> <memory> <numeric> <optional> <random> <set> <string> <thread> <tuple> <unordered_map>
    <vector> <fmt/format.h>)
  _ncclx_precompiled(runtime ${_runtime})
  set(_plain ${_runtime}
    <llvm/ADT/DenseMap.h> <llvm/ADT/SmallVector.h> <llvm/ADT/StringExtras.h>
    <llvm/ADT/StringMap.h> <llvm/Support/Error.h> <llvm/Support/FileSystem.h>
    <llvm/Support/JSON.h> <llvm/Support/MathExtras.h> <llvm/Support/MemoryBuffer.h>
    <llvm/Support/raw_ostream.h>)
  _ncclx_precompiled(plain ${_plain})
  set(_mlir Dialect/Affine/IR/AffineOps.h Dialect/Arith/IR/Arith.h
    Dialect/Bufferization/IR/Bufferization.h Dialect/ControlFlow/IR/ControlFlow.h
    Dialect/Func/IR/FuncOps.h Dialect/LLVMIR/LLVMDialect.h Dialect/Linalg/IR/Linalg.h
    Dialect/Math/IR/Math.h Dialect/MemRef/IR/MemRef.h Dialect/SCF/IR/SCF.h
    Dialect/Tensor/IR/Tensor.h IR/AsmState.h IR/Builders.h IR/BuiltinOps.h IR/IRMapping.h
    IR/Matchers.h IR/PatternMatch.h IR/Remarks.h IR/SymbolTable.h Interfaces/SideEffectInterfaces.h
    Parser/Parser.h Pass/Pass.h Pass/PassManager.h Transforms/DialectConversion.h
    Transforms/Passes.h)
  list(TRANSFORM _mlir PREPEND "<mlir/")
  list(TRANSFORM _mlir APPEND ">")
  _ncclx_precompiled(mlir ${_plain} <llvm/ADT/TypeSwitch.h> <llvm/Support/CommandLine.h>
    <llvm/Support/FormatVariadic.h> <llvm/Support/SourceMgr.h> ${_mlir})
endif()

# ncclx_precompile(TARGET KIND): the headers that TARGET may see. Not with REUSE_FROM, which names the
# build folder in a way that ccache takes for a difference.
function(ncclx_precompile target kind)
  if(NOT NCCLX_PRECOMPILE)
    return()
  endif()
  set(precompiled ncclx_precompiled_${kind})
  set(file "CMakeFiles/${precompiled}.dir/cmake_pch.hxx.pch")
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${PROJECT_BINARY_DIR}/${file}")
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Winvalid-pch>
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -include-pch -Xclang ${file}>")
endfunction()
