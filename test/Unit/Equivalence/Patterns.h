//===- Patterns.h - What overlap passes look for, in random graphs ----*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_PATTERNS_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_PATTERNS_H

#include "Choices.h"
#include "GraphText.h"

namespace equivalence {

/// One of: a gather and its product, a product and its reduction, a stencil with its halo, by
/// permutes or by puts, rows that are worked on one by one, or of which each member has some, a
/// collective beside a product, a backward with its weight gradients (`outside` of loops and
/// branches), a loop that gathers and adds or works on micro-batches, up to `times` times. `a` has
/// two dimensions, of numbers that are computed with; the groups over `axes` are of one size.
Tensor overlapPattern(Choices &c, GraphText &g, const Tensor &a, const Axes &axes, int64_t times,
                      bool outside);

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_PATTERNS_H
