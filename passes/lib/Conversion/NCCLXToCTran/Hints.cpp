//===- Hints.cpp - What of an op's hints is not followed ---------------------------------===//
#include "Converter.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/Hints.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::ncclx;

/// Where the hint, or a word of it, is followed.
static constexpr StringLiteral followPipeline =
    "hierarchical, bruck, and ring of a broadcast or a reduce, follow it";
static constexpr StringLiteral followDepth = "bruck alone follows it";
static constexpr StringLiteral followTrees = "trees alone follow it";

void Converter::tellUnfollowed(CollectiveOpInterface op, StringRef carriedBy,
                               const ctran::CollectiveSpec &spec,
                               const ctran::ScheduleBuilder &written) {
  StringRef kind = op->getName().stripDialect();
  // `name` stays: it is one of Hints.h.
  auto warn = [&](StringRef name, const Twine &what, const Twine &why) {
    if (told.insert({Attribute(LocationAttr(op.getLoc())), name}).second)
      op->emitWarning("asks for ")
          << what << ", but " << carriedBy << " carries this " << kind << why;
  };
  if (op->hasAttr(treesAttrName) && (getSchedule(op) || op.getAlgorithm() != Algorithm::Trees))
    warn(treesAttrName, treesAttrName, " without it; " + followTrees);
  if (!op->hasAttr(pipelineAttrName))
    return;
  const Pipeline &asked = spec.pipeline;
  const std::optional<Pipeline> &pipelined = written.pipelined;
  if (!pipelined && !written.whole.empty()) {
    if (asked.chunks.value_or(2) > 1)
      warn(pipelineAttrName, pipelineAttrName, " in one piece: " + written.whole);
  } else if (!pipelined) {
    warn(pipelineAttrName, pipelineAttrName, " in one piece; " + followPipeline);
  } else if (asked.depth && !pipelined->depth) {
    warn(pipelineAttrName, "depth = " + Twine(*asked.depth) + " of " + pipelineAttrName,
         " without it; " + followDepth);
  }
  if (pipelined && asked.chunks && *pipelined->chunks != *asked.chunks)
    remark::missed(op->getLoc(),
                   remark::RemarkOpts::name("Pipelined").category("convert-ncclx-to-ctran"))
        << remark::add("{0} in {1} chunks; {2} are asked for", spec.name, *pipelined->chunks,
                       *asked.chunks);
}
