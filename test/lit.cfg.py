import os
import shutil

import lit.formats
import lit.llvm

config.name = "NCCLX"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ncclx_obj_root, "test")
config.excludes = ["CMakeLists.txt", "Inputs", "Unit", "Bench", "Fuzz"]

# lit.llvm.initialize makes lit.llvm.llvm_config; a name imported before the call would be None.
lit.llvm.initialize(lit_config, config)
llvm_config = lit.llvm.llvm_config
llvm_config.use_default_substitutions()  # FileCheck, not, count, split-file
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.ncclx_tools_dir, append_path=True)
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%ncclx_src", config.ncclx_src_root))
config.substitutions.append(("%ncclx_obj", config.ncclx_obj_root))
config.substitutions.append(("%fake_nvml", os.path.join(config.ncclx_obj_root, "lib", "libfake_nvml.so")))
config.substitutions.append(("%fake_cuda", os.path.join(config.ncclx_obj_root, "lib", "libfake_cuda.so")))
config.substitutions.append(("%cxx", config.cxx))
config.substitutions.append(("%llvm_include", config.llvm_include_dir.split(";")[0]))
# What takes long says REQUIRES: slow; `test/run --quick` leaves it out.
if not lit_config.params.get("quick"):
    config.available_features.add("slow")

# Public files that nobody here wrote; they lie beside the checkout, never in it.
inputs = os.path.normpath(os.path.join(config.ncclx_src_root, "..", "shared", "inputs"))
if os.path.isdir(inputs):
    config.available_features.add("public-inputs")
config.substitutions.append(("%inputs", inputs))
if shutil.which("nvcc"):
    config.available_features.add("nvcc")

# Under sanitizers: what is loaded into programs that have none, and what is about time, says
# UNSUPPORTED: sanitized.
if lit_config.params.get("sanitized"):
    config.available_features.add("sanitized")

# The static tools, where test/run has built them; of no interest under sanitizers.
static = os.path.join(config.ncclx_src_root, "build-static", "bin")
if os.path.exists(os.path.join(static, "ncclx-run")) and "sanitized" not in config.available_features:
    config.available_features.add("static-build")
config.substitutions.append(("%static", static))
if os.geteuid() == 0:
    config.available_features.add("root")

# Debian's mlir-opt takes the plug-in, which a build with static MLIR does not have.
plugin = os.path.join(config.ncclx_obj_root, "lib", "NCCLXPlugin.so")
if os.path.exists(plugin):
    config.available_features.add("plugin")
config.substitutions.append(("%plugin", plugin))
# The C library travels from the static build; without it, the one of this build is tested.
c_library_build = next(
    (build for build in (os.path.join(config.ncclx_src_root, "build-static"), config.ncclx_obj_root)
     if os.path.exists(os.path.join(build, "lib", "libncclxc.so"))), None)
if c_library_build:
    config.available_features.add("c-library")
config.substitutions.append(("%c_library_build", c_library_build or ""))
if os.path.exists(os.path.join(config.ncclx_tools_dir, "ncclx-bench-openmpi")) and shutil.which("mpirun"):
    config.available_features.add("openmpi")
