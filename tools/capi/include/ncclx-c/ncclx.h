/* ncclx-c/ncclx.h - The compiler as a C library (libncclxc.so).
 *
 * A graph goes in, as MLIR text or bytecode; diagnostics, a report and a program that this process
 * can run come out. Run it by ncclxrt/abi.h: ncclxProgramPlan is what ncclxrtPlanPrepare takes, and
 * ncclxProgramEntry what ncclxrtPlanRun does.
 *
 * Rules for all of it:
 *  - C linkage, no exception leaves a call, no call ends the process or prints. The library shows
 *    no symbol but its own and ncclxrt's, so that another MLIR or LLVM may live in the process.
 *  - Strings are UTF-8, end in 0, and belong to the program that gave them.
 *  - A struct that starts with struct_size may grow: fill it from its _INIT macro.
 *  - Threads: different programs are independent. One program may be read by several threads at
 *    once; compiling takes one.
 */
#ifndef NCCLX_C_NCCLX_H
#define NCCLX_C_NCCLX_H

#include "ncclxrt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this interface. It changes when a call, a struct's head or a meaning changes. */
#define NCCLX_C_VERSION 1

typedef struct ncclxProgram *ncclxProgram_t; /**< A graph, what became of it, and what was said. */

/** What a compilation came to; the numbers are stable. */
typedef enum ncclxResult {
  ncclxSuccess = 0,
  ncclxInvalidArgument = 1, /**< An argument of the call itself. */
  ncclxBadInput = 2,        /**< The graph or the topology; the diagnostics say what. */
  ncclxNotProved = 3,       /**< The schedule is refused; the diagnostics say why. */
  ncclxOutOfMemory = 4,
  ncclxInternalError = 5
} ncclxResult_t;

typedef enum ncclxSeverity {
  ncclxNote = 0, /**< Belongs to the error or warning before it. */
  ncclxWarning = 1,
  ncclxError = 2,
  ncclxRemark = 3 /**< A choice of the compiler. */
} ncclxSeverity_t;

typedef struct ncclxDiagnostic {
  ncclxSeverity_t severity;
  const char *text;
  const char *file; /**< "" where there is no place. */
  int64_t line, column;
} ncclxDiagnostic_t;

typedef struct ncclxCompileOptions {
  size_t struct_size;
  uint32_t version;       /**< NCCLX_C_VERSION of the caller. */
  int32_t transport_puts; /**< 1: for a transport without load and store between ranks (tcp). */
  const char *name;       /**< Of the graph, for places in diagnostics. NULL: "graph". */
  const char *function;   /**< NULL: the only one with collectives. */
  const char *topology;   /**< Text of the target, as JSON or NCCL's system XML. */
  size_t topology_bytes;
} ncclxCompileOptions_t;
#define NCCLX_COMPILE_OPTIONS_INIT {sizeof(ncclxCompileOptions_t), NCCLX_C_VERSION, 0, 0, 0, 0, 0}

/** A size that a graph leaves open. */
typedef struct ncclxSize {
  const char *name;
  int64_t min, max, multiple; /**< Values: multiples of `multiple` from min to max. */
} ncclxSize_t;

/** NCCLX_C_VERSION of the library. */
NCCLXRT_EXPORT int32_t ncclxVersion(void);

/** Compiles `bytes` bytes of `graph` (text or bytecode) for a topology and for this process, and
 *  proves the schedule. *program is there after a failure, too, for its diagnostics, unless the
 *  arguments or the memory were at fault.
 *  A graph that leaves sizes open (ncclx.sizes) is proved at the ends of their ranges and between,
 *  and has no plan of its own: ncclxProgramAt gives programs. */
NCCLXRT_EXPORT ncclxResult_t ncclxCompile(const ncclxCompileOptions_t *options, const void *graph,
                                          size_t bytes, ncclxProgram_t *program);

/** The sizes that the graph leaves open, by name; zeros and "" past the end. */
NCCLXRT_EXPORT size_t ncclxProgramNumSizes(ncclxProgram_t program);
NCCLXRT_EXPORT ncclxSize_t ncclxProgramSize(ncclxProgram_t program, size_t index);

/** The program of a graph with open sizes for a value of each, in order: compiled and proved at the
 *  first call, kept for the next. It belongs to `program` and goes with it. *at is there after a
 *  failure, too, for its diagnostics. Whatever the result, a rank may go on to ncclxrtPlanPrepare
 *  with the plan of *at, so that all ranks learn of a failure there: of a value out of its range,
 * with the range, and of ranks that bring different values. Not by two threads at once. */
NCCLXRT_EXPORT ncclxResult_t ncclxProgramAt(ncclxProgram_t program, const int64_t *sizes,
                                            size_t num_sizes, ncclxProgram_t *at);

/** Everything that was said, in order. */
NCCLXRT_EXPORT size_t ncclxProgramNumDiagnostics(ncclxProgram_t program);
/** One of them; zeros and "" past the end. */
NCCLXRT_EXPORT ncclxDiagnostic_t ncclxProgramDiagnostic(ncclxProgram_t program, size_t index);

/** JSON: function, ranks, collectives with algorithm and time, proof, windows with role and place
 *  among the inputs or outputs, memory. "" after a failure. */
NCCLXRT_EXPORT const char *ncclxProgramReport(ncclxProgram_t program);
/** The schedule and its kernels as MLIR text. "" after a failure. */
NCCLXRT_EXPORT const char *ncclxProgramSchedule(ncclxProgram_t program);

/** Number of ranks that the program is for. 0 after a failure. */
NCCLXRT_EXPORT int32_t ncclxProgramRanks(ncclxProgram_t program);
/** What ncclxrtPlanPrepare takes; valid as long as the program. NULL after a failure, but for sizes
 *  out of range: then it is one that ncclxrtPlanPrepare refuses on all ranks. */
NCCLXRT_EXPORT const ncclxrtPlanDesc_t *ncclxProgramPlan(ncclxProgram_t program);
/** What ncclxrtPlanRun takes; its code lives as long as the program. NULL after a failure. */
NCCLXRT_EXPORT ncclxrtProgram_t ncclxProgramEntry(ncclxProgram_t program);

/** Not while a plan of it runs. NULL is a no-op, and so is what ncclxProgramAt gave. */
NCCLXRT_EXPORT void ncclxProgramDestroy(ncclxProgram_t program);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NCCLX_C_NCCLX_H */
