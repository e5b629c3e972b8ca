//===- machine-verdicts.cpp - Prints the verdict on schedules and mutants -----===//
//
//   machine-verdicts [--rep] [--message] SCHEDULE...
//
// prints, for each schedule (Examples.h, byName) and each of its mutants, a line
// `schedule<TAB>mutator<TAB>op index<TAB>verdict`; compare_with_model.py reads them.
//
//===----------------------------------------------------------------------===//

#include "Examples.h"
#include "ncclx/Machine/Machine.h"

#include <cstdio>
#include <cstring>

using namespace mlir::ctran::machine;

static void print(const char *name, const char *mutator, int64_t index, const ProofResult &result,
                  bool message) {
  std::printf("%s\t%s\t%lld\t%s%s%s\n", name, mutator, static_cast<long long>(index),
              toString(result.verdict), message ? "\t" : "", message ? result.message.c_str() : "");
}

int main(int argc, char **argv) {
  ProofOptions options;
  options.mode = ProofMode::AllRanks;
  options.serialForm = false;
  bool message = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--rep")) {
      options.mode = ProofMode::Representative;
      continue;
    }
    if (!std::strcmp(argv[i], "--message")) {
      message = true;
      continue;
    }
    examples::ExampleRef schedule = examples::byName(argv[i]);
    if (!schedule) {
      std::fprintf(stderr, "error: no schedule '%s'\n", argv[i]);
      return 1;
    }
    print(argv[i], "-", 0, prove(*schedule, options), message);
    auto n = static_cast<int64_t>(examples::firstRun(*schedule).size());
    for (const auto &[name, mutator] : examples::mutators())
      for (int64_t index = 0; index < n; ++index) {
        examples::Mutant mutant(schedule, index, mutator);
        ProofResult result = prove(mutant, options);
        if (mutant.hits)
          print(argv[i], name.c_str(), index, result, message);
      }
  }
  return 0;
}
