//===- ncclx-opt.cpp - Run passes on a graph or a schedule ----------------===//

#include "../HideLLVMOptions.h"
#include "Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

/// `--PASS --trace=FILE` and `--PASS --require-overlap` stand for the options of a pass named
/// before them that has such an option.
static std::vector<std::string> foldFlags(int argc, char **argv) {
  std::vector<std::string> args;
  int traced = -1, required = -1; // the last passes with these options
  for (int i = 0; i < argc; ++i) {
    llvm::StringRef arg = argv[i], name = arg.ltrim('-');
    bool trace = traced >= 0 && name.starts_with("trace=");
    if (trace || (required >= 0 && name == "require-overlap")) {
      std::string &pass = args[trace ? traced : required];
      pass += pass.find('=') == std::string::npos ? "=" : " ";
      pass += trace ? "trace=\"" + name.substr(6).str() + "\"" : name.str();
      continue;
    }
    llvm::StringRef pass = name.take_until([](char c) { return c == '='; });
    if (pass == "ncclx-diagnose" || pass == "ncclx-overlap")
      required = args.size();
    if (pass == "ncclx-diagnose")
      traced = args.size();
    args.push_back(arg.str());
  }
  return args;
}

int main(int argc, char **argv) {
  mlir::ncclx::hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::ncclx::registerDialects(registry);
  mlir::ncclx::registerUpstreamPasses();
  mlir::ncclx::registerProjectPasses();
  std::vector<std::string> args = foldFlags(argc, argv);
  std::vector<char *> pointers;
  for (std::string &arg : args)
    pointers.push_back(arg.data());
  pointers.push_back(nullptr); // as argv ends
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      args.size(), pointers.data(),
      "ncclx-opt: run passes on ncclx graphs and ctran schedules\n"
      "(--PASS --trace=FILE and --PASS --require-overlap are options of that pass)\n",
      registry));
}
