//===- PciRates.cpp -------------------------------------------------------===//
//
// Raw: the standard's bit rate after line coding (8b/10b to Gen 2, 128b/130b to Gen 5, FLIT mode's
// 242 of 256 bytes in Gen 6). Payload: NCCL's table (topo.cc kvDictPciGen, in 100 Mb/s a lane, over
// 80), 12 GB/s for 16 lanes of Gen 3. Between sockets: NCCL's topo.h (BDW/SKL/SRP/ERP_QPI_BW,
// AMD_ZEN*_BW, ARM_BW, P9_BW).
//
//===----------------------------------------------------------------------===//
#include "PciRates.h"
#include "llvm/ADT/StringRef.h"
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
struct Generation {
  int64_t gigaTransfers10; ///< in tenths
  int64_t codeNum, codeDen;
  int64_t ncclLane; ///< 100 Mb/s
};
constexpr Generation generations[] = {
    {25, 8, 10, 15},      {50, 8, 10, 30},      {80, 128, 130, 60},
    {160, 128, 130, 120}, {320, 128, 130, 240}, {640, 242, 256, 480},
};
} // namespace

Rates topology::pciRates(llvm::StringRef speed, llvm::StringRef width, std::string &problem) {
  const Generation *generation = nullptr;
  llvm::StringRef number = speed.trim();
  number = number.take_until([](char c) { return c == ' '; });
  std::optional<Rational> value = Rational::parse(number);
  for (const Generation &g : generations)
    if (value && *value == Rational::make(g.gigaTransfers10, 10) && speed.contains("GT/s"))
      generation = &g;
  int64_t lanes = 0;
  bool laneError = width.trim().getAsInteger(10, lanes) || lanes < 1 || lanes > 64;
  if (!generation || laneError)
    problem = fmt::format(
        "link_speed=\"{}\" link_width=\"{}\" is no PCI Express link; taken as NCCL "
        "does: {} on {} lanes",
        speed.str(), width.str(), generation ? "that speed" : "8 GT/s", laneError ? 16 : lanes);
  if (!generation)
    generation = &generations[2];
  if (laneError)
    lanes = 16;
  Rates rates;
  rates.raw = Rational(generation->gigaTransfers10) * Rational(100'000'000 / 8) *
              Rational::make(generation->codeNum, generation->codeDen) * Rational(lanes);
  rates.payload = Rational(generation->ncclLane * lanes) * Rational(1'000'000'000 / 80);
  return rates;
}

Rates topology::socketRates(llvm::StringRef arch, llvm::StringRef vendor, int family, int model) {
  int64_t giga = 6; // Broadwell, Arm, and what is not known
  if (arch == "ppc64") {
    giga = 32;
  } else if (vendor == "AuthenticAMD") {
    // NCCL's family is base + 16 * extended, the kernel's base + extended.
    bool zen34 = family == 175 || family == 25, zen5 = family == 191 || family == 26;
    giga = zen5 ? 32 : zen34 ? 24 : 16;
  } else if (vendor == "GenuineIntel") {
    giga = model >= 207 ? 40 : model >= 143 ? 22 : model >= 85 ? 10 : 6;
  }
  Rational rate = Rational(giga) * Rational(1'000'000'000);
  return {rate, rate};
}
