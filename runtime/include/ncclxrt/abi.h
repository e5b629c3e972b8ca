/* ncclxrt/abi.h - the C interface of the ncclx runtime.
 *
 * Group A is called by the program that hosts a rank; group B is called by compiled programs.
 *
 * Rules for all of it:
 *  - C linkage, no exception leaves a call, no call ends the process. Strings are UTF-8 and end in
 * 0.
 *  - Opaque handles. A struct that starts with struct_size may grow: fill it from its _INIT macro.
 *    A longer struct than the runtime knows is accepted if the unknown tail is zero. Structs
 * without struct_size are frozen for one NCCLXRT_ABI_VERSION.
 *  - Every call returns an ncclxrtResult_t; ncclxrtGetLastError gives the sentence that goes with
 * it.
 *  - Every wait inside ends at the latest at the communicator's deadline, or at once on an abort.
 *  - Threads: a communicator and its plans may be used by one thread at a time. Only
 * ncclxrtCommAbort, ncclxrtCommFailure and ncclxrtGetLastError may be called by any thread before
 * ncclxrtCommDestroy. Different communicators are independent; several of them (also several ranks
 * of one job, one thread each) may live in one process.
 */
#ifndef NCCLXRT_ABI_H
#define NCCLXRT_ABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define NCCLXRT_EXPORT __attribute__((visibility("default")))
#else
#define NCCLXRT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this interface. It changes when a call, a frozen struct or a meaning changes. */
#define NCCLXRT_ABI_VERSION 4

/** What a call came to. 0 is success; the numbers are stable. */
typedef enum ncclxrtResult {
  ncclxrtSuccess = 0,
  ncclxrtInvalidArgument = 1, /**< A value that the caller or the plan passed is out of range. */
  ncclxrtInvalidUsage = 2,    /**< Right values at the wrong time. */
  ncclxrtSystemError = 3,     /**< The operating system refused something. */
  ncclxrtOutOfMemory = 4,
  ncclxrtTimeout = 5,      /**< A deadline passed; the sentence names the ranks it knows of. */
  ncclxrtPeerFailed = 6,   /**< A rank died or its connection broke; the sentence names it. */
  ncclxrtPlanMismatch = 7, /**< The ranks prepared different plans, are about to take different
                                branches of one, or do not agree; the sentence names who. */
  ncclxrtAborted = 8,      /**< A rank called ncclxrtCommAbort or its program failed. */
  ncclxrtUnsupported = 9,  /**< The transport cannot do this (a get over tcp). */
  ncclxrtVersionMismatch = 10,
  ncclxrtInternalError = 11
} ncclxrtResult_t;

typedef struct ncclxrtComm *ncclxrtComm_t; /**< One rank of one job. */
typedef struct ncclxrtPlan *ncclxrtPlan_t; /**< Windows and slots of one compiled program. */

/** A compiled program: plays the host side of one rank's schedule by group B calls, in issue order,
 *  on the calling thread. `exec` is passed on to each of them; the value returned is the last
 * status. */
typedef int32_t (*ncclxrtProgram_t)(int64_t exec);

/* ------------------------------------------------------------------ group A: the hosting program
 */

/** Who runs the rendezvous server. */
typedef enum ncclxrtServer {
  ncclxrtServerRank0 = 0,   /**< Rank 0 listens on the rendezvous address. */
  ncclxrtServerExternal = 1 /**< A launcher does (ncclxrt/launch.h). */
} ncclxrtServer_t;

/** How a rank joins its job. Zero, NULL or -1 means: take the environment or the default. */
typedef struct ncclxrtCommConfig {
  size_t struct_size;
  uint32_t abi_version;   /**< NCCLXRT_ABI_VERSION of the caller. */
  int32_t rank;           /**< -1: RANK. */
  int32_t nranks;         /**< 0: WORLD_SIZE. */
  int32_t server;         /**< ncclxrtServer_t. */
  const char *transport;  /**< "shm" (default) or "tcp". */
  const char *rendezvous; /**< "host:port" (IPv4). NULL: NCCLXRT_RENDEZVOUS, else
                               MASTER_ADDR:MASTER_PORT of torchrun; one port higher where torchrun's
                               agent holds that port itself (TORCHELASTIC_USE_AGENT_STORE). A job of
                               one rank needs none. */
  const char *job;        /**< Name of the job: a rank of another job is turned away. Default "". */
  int64_t timeout_ms;     /**< Deadline of each wait and of each collective step. Default 30000. */
} ncclxrtCommConfig_t;
#define NCCLXRT_COMM_CONFIG_INIT                                                                   \
  {sizeof(ncclxrtCommConfig_t), NCCLXRT_ABI_VERSION, -1, 0, ncclxrtServerRank0, 0, 0, 0, 0}

typedef enum ncclxrtRole {
  ncclxrtRoleScratch = 0,
  ncclxrtRoleInput = 1,
  ncclxrtRoleOutput = 2
} ncclxrtRole_t;

/** Symmetric memory: the same size on every rank. Starts zeroed, 64-byte aligned. */
typedef struct ncclxrtWindowDesc {
  const char *name;
  uint64_t bytes;      /**< Of one generation. */
  int32_t generations; /**< At least 1; run e uses generation e mod generations. */
  int32_t role;        /**< ncclxrtRole_t. */
} ncclxrtWindowDesc_t;

/** An array of monotone 64-bit counters on every rank, all 0 at the start. */
typedef struct ncclxrtSlotsDesc {
  const char *name;
  int64_t count;       /**< Of one generation. */
  int32_t generations; /**< At least 1; run e uses generation e mod generations. */
  int32_t writers;     /**< Ranks that may raise one counter; 0: any number. A counter with one is
                            the quickest. A rank beyond them may be taken for not having signalled. */
} ncclxrtSlotsDesc_t;

typedef enum ncclxrtLaneKind {
  ncclxrtLaneHost = 0,
  ncclxrtLaneCe = 1,
  ncclxrtLaneCompute = 2,
  ncclxrtLaneSm = 3,
  ncclxrtLaneNic = 4 /**< The one kind whose copies may be done after the call returned. */
} ncclxrtLaneKind_t;

typedef struct ncclxrtLaneDesc {
  const char *name;
  int32_t kind;  /**< ncclxrtLaneKind_t. */
  int32_t index; /**< Which one of its kind. */
} ncclxrtLaneDesc_t;

/** An op of the schedule, for messages and traces. */
typedef struct ncclxrtOpDesc {
  const char *name;
  const char *location; /**< Source location; may be NULL. */
} ncclxrtOpDesc_t;

/** A size that the program's graph leaves open, and what it is here. */
typedef struct ncclxrtSizeDesc {
  const char *name;
  const char *place; /**< Where it is found, for messages: "dimension 0 of argument 2". */
  int64_t min, max;  /**< A value outside is refused, */
  int64_t multiple;  /**< and so is one that is no multiple of this (at least 1). */
  int64_t value;     /**< What the program was made for; compared between ranks. */
} ncclxrtSizeDesc_t;

/** An input or output of a plan that is one of another plan of the same communicator: the same
 *  memory, which lives until the last of them is destroyed, in any order. Both windows have the
 * same bytes and one generation. */
typedef struct ncclxrtSharing {
  size_t window; /**< Of the plan that is prepared. */
  ncclxrtPlan_t plan;
  size_t with; /**< The other plan's window. */
} ncclxrtSharing_t;

/** What a program needs. All ranks must bring the same; the runtime copies what it keeps. */
typedef struct ncclxrtPlanDesc {
  size_t struct_size;
  const char *name;
  uint64_t hash; /**< Of the compiled program; compared between ranks. */
  const ncclxrtWindowDesc_t *windows;
  size_t num_windows;
  const ncclxrtSlotsDesc_t *slots;
  size_t num_slots;
  const ncclxrtLaneDesc_t *lanes;
  size_t num_lanes;
  const ncclxrtOpDesc_t *ops;
  size_t num_ops;
  size_t trace_capacity; /**< Trace events to keep; 0: no trace. Not compared between ranks. */
  const ncclxrtSizeDesc_t *sizes; /**< Since here, a description may end before. */
  size_t num_sizes;
  const ncclxrtSharing_t *sharing; /**< Windows that are another plan's, each once. */
  size_t num_sharing;
} ncclxrtPlanDesc_t;
#define NCCLXRT_PLAN_DESC_INIT                                                                     \
  {sizeof(ncclxrtPlanDesc_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** One op of one run as it happened. Times are CLOCK_MONOTONIC, comparable on one machine. */
typedef struct ncclxrtTraceEvent {
  int64_t op;
  int64_t lane;
  int64_t run;
  int64_t start_ns; /**< When the call began. */
  int64_t end_ns;   /**< Local completion; 0: still in flight. */
  int64_t bytes;    /**< Moved, or stored by a reduction. */
} ncclxrtTraceEvent_t;

/** NCCLXRT_ABI_VERSION of the runtime. Any thread. */
NCCLXRT_EXPORT int32_t ncclxrtVersion(void);

/** A short name of a result ("timeout"). Static. Any thread. */
NCCLXRT_EXPORT const char *ncclxrtResultString(ncclxrtResult_t result);

/** The sentence of the communicator's first error: rank, op, step, reason. With comm NULL, that of
 *  this thread's last failed call that had no communicator. Never NULL, "" if all is well. The
 * string belongs to the calling thread until its next call of this function. Any thread, any time.
 */
NCCLXRT_EXPORT const char *ncclxrtGetLastError(ncclxrtComm_t comm);

/** Joins the job; returns when every rank is there. Collective. On failure *comm is NULL. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCommInit(const ncclxrtCommConfig_t *config,
                                               ncclxrtComm_t *comm);

/** Leaves the job. Collective: waits until every rank leaves, or for the deadline, which is then
 *  the error. Does not wait in a job that has failed, and returns that error if no call of this
 * rank has. Refused while plans of the communicator are not destroyed; frees it otherwise, whatever
 * the result. NULL is a no-op. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCommDestroy(ncclxrtComm_t comm);

/** Ends the job for all ranks: every wait returns soon, here and there, and the communicator is
 *  good for nothing but destruction. The first reason of a job wins. Any thread, any time. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCommAbort(ncclxrtComm_t comm, const char *reason);

/** Gives every rank what every rank brought: `all` gets a piece of `bytes` of each rank, in their
 *  order. Collective; 0 is success. With ncclxrtCommFailure, what lets a communicator of
 *  ncclxrt/cuda.h stand on this one, whose handle is then the context of both. */
NCCLXRT_EXPORT int32_t ncclxrtCommAllgather(void *comm, const void *mine, size_t bytes, void *all);

/** Why the job has failed, here or elsewhere, or NULL. Belongs to the calling thread until its next
 *  call. Any thread. */
NCCLXRT_EXPORT const char *ncclxrtCommFailure(void *comm);

/** Makes the windows and slots of a plan. Collective, in the same order on every rank. If the ranks
 *  bring different plans or sizes, or one of them cannot, or has a size out of range, all get the
 *  error and none gets a plan; the communicator stays usable. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtPlanPrepare(ncclxrtComm_t comm, const ncclxrtPlanDesc_t *desc,
                                                  ncclxrtPlan_t *plan);

/** This rank's memory of one generation of a window: fill inputs and read outputs in place, between
 *  runs. Valid until ncclxrtPlanDestroy. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtPlanBuffer(ncclxrtPlan_t plan, size_t window,
                                                 int32_t generation, void **data, size_t *bytes);

/** Calls the program once, for the next run. A failure aborts the job, since other ranks may wait
 *  for this one. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtPlanRun(ncclxrtPlan_t plan, ncclxrtProgram_t program);

/** The events kept so far, in issue order; valid until the next run, clear or destruction. Events
 *  beyond the plan's trace_capacity are dropped. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtPlanTrace(ncclxrtPlan_t plan,
                                                const ncclxrtTraceEvent_t **events, size_t *count);

/** Forgets the events kept so far. Not while copies of a nic lane are in flight. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtPlanTraceClear(ncclxrtPlan_t plan);

/** Gives back the plan's memory. Local; the other ranks need not have come as far. NULL is a no-op.
 */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtPlanDestroy(ncclxrtPlan_t plan);

/* --------------------------------------------------------------------- group B: compiled programs
 *
 * Only inside a program that ncclxrtPlanRun called, on its thread. A call that takes a status does
 * nothing and returns it when it is not 0; else it returns 0 or an ncclxrtResult_t: the status is
 * the order token. Indices are those of the plan's arrays; every one is checked, and so is every
 * range.
 *
 * A range is six numbers: window, peer (a rank, or -1 for own memory), offset (bytes), rows,
 * stride, row_bytes: `rows` pieces of row_bytes, `stride` bytes apart. It means the bytes of its
 * pieces in order; pieces of a destination must not overlap. rows or row_bytes 0 is an empty range.
 * Windows and slots are those of the current run's generation, on the own rank and on peers.
 */

/** Of a reduction. min and max are IEEE 754-2019 minimum and maximum: a NaN operand gives a NaN,
 * and -0 is less than +0. Sums of integers wrap; min and max of integers are signed. */
typedef enum ncclxrtReduceKind {
  ncclxrtReduceSum = 0,
  ncclxrtReduceMin = 1,
  ncclxrtReduceMax = 2,
  ncclxrtReduceProd = 3
} ncclxrtReduceKind_t;

typedef enum ncclxrtDtype {
  ncclxrtF32 = 0,
  ncclxrtF64 = 1,
  ncclxrtBf16 = 2,
  ncclxrtF16 = 3,
  ncclxrtI32 = 4,
  ncclxrtI64 = 5,
  ncclxrtI8 = 6,
  ncclxrtI16 = 7,
  ncclxrtU8 = 8,
  ncclxrtU16 = 9,
  ncclxrtU32 = 10,
  ncclxrtU64 = 11,
  ncclxrtE4m3 = 12, /**< OCP: no infinities; past the largest it is a NaN. */
  ncclxrtE5m2 = 13
} ncclxrtDtype_t;

/** This rank. */
NCCLXRT_EXPORT int64_t ncclxrt_rank(int64_t exec);

/** Number of this run, from 0; behind a choice, among the runs of the branch chosen. */
NCCLXRT_EXPORT int64_t ncclxrt_run(int64_t exec);

/** Address of the own window's memory for this run. A bad window gives 0 and an error from the next
 *  call that takes a status. */
NCCLXRT_EXPORT int64_t ncclxrt_address(int64_t exec, int64_t window);

/** Copies the bytes of src to dst (equal totals; pieces may differ in size), then raises slot
 *  notify_index of notify_slots (-1: none) at notify_peer by one. An empty copy moves nothing and
 *  still notifies. On a nic lane the call may return before the source may be reused (see
 *  ncclxrt_complete); on any other lane the copy has landed when the call returns.
 *  tcp: src must be own memory, and a put can notify only the rank it goes to. */
NCCLXRT_EXPORT int32_t ncclxrt_copy(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                    int64_t dst_window, int64_t dst_peer, int64_t dst_offset,
                                    int64_t dst_rows, int64_t dst_stride, int64_t dst_row_bytes,
                                    int64_t src_window, int64_t src_peer, int64_t src_offset,
                                    int64_t src_rows, int64_t src_stride, int64_t src_row_bytes,
                                    int64_t notify_slots, int64_t notify_peer,
                                    int64_t notify_index);

/** dst = a[0] op a[1] op ... op a[count - 1] op b, in this order, for each element; source a[i] is
 * the range a moved by i * a_step bytes; b_window -1: no b. count may be 0 only with b. Each
 * operand is converted to acc_dtype once and multiplied by scale (the bits of a double, rounded to
 * acc_dtype; 1.0 for integers), each op rounds to acc_dtype; the total is divided by divisor (at
 * least 1; floats as doubles and rounded to acc_dtype, integers towards zero) and rounded to dtype
 * once (all to nearest even, no contraction). Integers wrap; min and max of floats: a NaN wins,
 * -0 < +0. acc_dtype is dtype or a wider one of its kind (float, signed, unsigned). Pieces are
 * whole elements. dst may be one of the sources, but not overlap one in part. tcp: all three are
 * own memory. */
NCCLXRT_EXPORT int32_t ncclxrt_reduce(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                      int64_t kind, int64_t dtype, int64_t acc_dtype, int64_t scale,
                                      int64_t divisor, int64_t dst_window, int64_t dst_peer,
                                      int64_t dst_offset, int64_t dst_rows, int64_t dst_stride,
                                      int64_t dst_row_bytes, int64_t a_window, int64_t a_peer,
                                      int64_t a_offset, int64_t a_rows, int64_t a_stride,
                                      int64_t a_row_bytes, int64_t count, int64_t a_step,
                                      int64_t b_window, int64_t b_peer, int64_t b_offset,
                                      int64_t b_rows, int64_t b_stride, int64_t b_row_bytes);

/** Names a further source of the next reduction of this op, which takes such sources behind b, in
 * the order of these calls, each as large as its destination. */
NCCLXRT_EXPORT int32_t ncclxrt_operand(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                       int64_t window, int64_t peer, int64_t offset, int64_t rows,
                                       int64_t stride, int64_t row_bytes);

/** Raises a slot of a rank (-1: own) by one. It releases what this rank did before on lanes other
 * than nic and all that it acquired by waits. */
NCCLXRT_EXPORT int32_t ncclxrt_signal(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                      int64_t slots, int64_t peer, int64_t index);

/** Waits until each of the own slots [index, index + count) is at least value. */
NCCLXRT_EXPORT int32_t ncclxrt_wait(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                    int64_t slots, int64_t index, int64_t count, int64_t value);

/** Reads a number of `bytes` (4 or 8, signed) at `offset` of the own window; ncclxrt_size gives it
 *  from then on. One below 0 or above max ends the job. */
NCCLXRT_EXPORT int32_t ncclxrt_count(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                     int64_t window, int64_t offset, int64_t bytes, int64_t max);

/** What the last ncclxrt_count has read; 0 before, or where that failed. */
NCCLXRT_EXPORT int64_t ncclxrt_size(int64_t exec);

/** Chooses what comes next: reads a signed 64-bit number at the start of the own window and meets
 *  all other ranks, which must have come to the same choice with the same number, from 0 to
 *  branches - 1: anything else ends the job. From then on ncclxrt_branch gives the number, and
 *  ncclxrt_run, generations and a slot's runs count the earlier runs of this branch alone: a choice
 *  begins the next of them. Nothing may be in flight; a run may choose before its first copy,
 *  signal or wait, and again as often as it likes. */
NCCLXRT_EXPORT int32_t ncclxrt_choose(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                      int64_t window, int64_t branches);

/** What the last ncclxrt_choose of this run has chosen; -1 before, or where that failed. */
NCCLXRT_EXPORT int64_t ncclxrt_branch(int64_t exec);

/** Meets all other ranks, which must have come to the same place with the same bits: those of one
 *  number of `dtype` (no 8-bit float) at the start of the own window. Ranks that differ end the
 *  job, with an error that names two of them and what they have. */
NCCLXRT_EXPORT int32_t ncclxrt_agree(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                     int64_t window, int64_t dtype);

/** Makes landings that this lane awaited visible to the whole rank. On shm and tcp a wait does. */
NCCLXRT_EXPORT int32_t ncclxrt_flush(int32_t status, int64_t exec, int64_t op, int64_t lane);

/** Waits until every copy issued so far on the lane is locally complete. */
NCCLXRT_EXPORT int32_t ncclxrt_complete(int32_t status, int64_t exec, int64_t op, int64_t lane);

/** The first of two statuses that is not 0. */
NCCLXRT_EXPORT int32_t ncclxrt_join(int32_t a, int32_t b);

/** Around a computation that the program calls itself: marks it in the trace and in the messages of
 *  ranks that wait for this one. One at a time. */
NCCLXRT_EXPORT int32_t ncclxrt_compute_begin(int32_t status, int64_t exec, int64_t op,
                                             int64_t lane);
NCCLXRT_EXPORT int32_t ncclxrt_compute_end(int32_t status, int64_t exec, int64_t op, int64_t lane);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NCCLXRT_ABI_H */
