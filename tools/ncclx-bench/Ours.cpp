//===- Ours.cpp - The ranks of this project's side -------------------------===//
#include "Bench.h"

#include "ncclxrt/launch.h"

using namespace ncclx_bench;
using namespace mlir::ncclx;

namespace {

thread_local int64_t barrierRanks;

/// Everybody signals everybody, and waits for all.
int32_t barrier(int64_t exec) {
  int32_t s = 0;
  for (int64_t peer = 0; peer < barrierRanks; ++peer)
    s = ncclxrt_signal(s, exec, 0, 0, 0, peer, ncclxrt_rank(exec));
  return ncclxrt_wait(s, exec, 0, 0, 0, 0, barrierRanks, ncclxrt_run(exec) + 1);
}

struct Ours {
  const std::vector<Program> &programs;
  ncclxrtComm_t comm = nullptr;
  ncclxrtPlan_t meeting = nullptr, plan = nullptr;
  ncclxrtProgram_t entry = nullptr;
  float *from = nullptr, *to = nullptr;
  size_t next = 0;

  bool join(const ncclxrt::LaunchedRank &launched) {
    ncclxrtCommConfig_t config = launched.config();
    barrierRanks = launched.nranks;
    const ncclxrtSlotsDesc_t slots = {"all", launched.nranks, 1, 0};
    const ncclxrtLaneDesc_t lane = {"host0", ncclxrtLaneHost, 0};
    const ncclxrtOpDesc_t op = {"meet", nullptr};
    ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;
    desc.name = "meeting";
    desc.slots = &slots;
    desc.lanes = &lane;
    desc.ops = &op;
    desc.num_slots = desc.num_lanes = desc.num_ops = 1;
    return !ncclxrtCommInit(&config, &comm) && !ncclxrtPlanPrepare(comm, &desc, &meeting);
  }
  bool prepare(const Cell &) {
    const Compilation &compilation = *programs[next++].compilation;
    PlanDescription description(compilation.plan(), 0);
    if (ncclxrtPlanPrepare(comm, description.get(), &plan))
      return false;
    entry = compilation.entry();
    for (auto [w, window] : llvm::enumerate(compilation.plan().windows)) {
      void *data;
      size_t bytes;
      if (ncclxrtPlanBuffer(plan, w, 0, &data, &bytes))
        return false;
      if (window.role == mlir::ctran::WindowRole::Input)
        from = static_cast<float *>(data);
      else if (window.role == mlir::ctran::WindowRole::Output)
        to = static_cast<float *>(data);
    }
    return true;
  }
  bool finish() { return !ncclxrtPlanDestroy(std::exchange(plan, nullptr)); }
  float *input() { return from; }
  float *output() { return to; }
  bool meet() { return !ncclxrtPlanRun(meeting, barrier); }
  bool run() { return !ncclxrtPlanRun(plan, entry); }
};

} // namespace

bool ncclx_bench::runOurs(Stage &stage, const Options &options,
                          const std::vector<Program> &programs) {
  ncclxrt::LaunchOptions launch;
  launch.nranks = stage.nranks;
  launch.transport = options.transport;
  launch.job = "ncclx-bench";
  launch.timeoutMs = 300'000; // the other side's turns count as waiting
  launch.graceMs = 5'000;
  bool ok = true;
  for (const ncclxrt::RankExit &exit :
       ncclxrt::launch(launch, [&](const ncclxrt::LaunchedRank &launched) {
         Ours ours{programs};
         if (ours.join(launched) && play(stage, ours, 0, launched.rank)) {
           ncclxrtPlanDestroy(ours.meeting);
           return int(ncclxrtCommDestroy(ours.comm));
         }
         llvm::errs() << "rank " << launched.rank << ": " << ncclxrtGetLastError(ours.comm) << "\n";
         stage.fail();
         return 1;
       }))
    ok &= exit.ok();
  return ok;
}
