//===- Plan.cpp - Preparing and running a program -------------------------===//
#include "Plan.h"
#include "Wire.h"

using namespace ncclxrt;

/// The first rank that could not do its part.
static Status firstFailure(const std::string &name, const std::vector<std::string> &parts,
                           std::vector<Reader> &readers) {
  for (size_t r = 0; r < parts.size(); ++r) {
    Reader &reader = readers.emplace_back(parts[r]);
    auto code = ncclxrtResult_t(reader.get<int32_t>());
    std::string text = reader.text();
    if (code != ncclxrtSuccess)
      return error(code, "plan '{}': rank {} cannot prepare it: {}", name, r, text);
  }
  return {};
}

static Writer &putStatus(Writer &writer, const Status &status) {
  return writer.put(int32_t(status.code())).put(std::string_view(status.text()));
}

Status Plan::prepare(Comm &comm, const ncclxrtPlanDesc_t *desc, std::unique_ptr<Plan> &result) {
  struct Meeting {
    Comm &comm;
    explicit Meeting(Comm &comm) : comm(comm) { comm.place.phase = RankState::Meeting; }
    ~Meeting() { comm.place.phase = RankState::Idle; }
  } meeting(comm);
  Shape shape;
  std::map<int64_t, Plan *> sharers; // by number
  Status mine = Shape::make(
      desc,
      [&](ncclxrtPlan_t other, int64_t &number) -> const Shape * {
        if (!other || &other->plan->comm != &comm)
          return nullptr;
        number = other->plan->id;
        sharers[number] = other->plan.get();
        return &other->plan->shape;
      },
      shape);
  int64_t id = comm.nextPlan();
  std::unique_ptr<Plan> plan(new Plan(comm, id, std::move(shape)));
  Shape &s = plan->shape;
  auto ownerOf = [&](int rank) { return uint64_t(id) << 32 | uint64_t(rank); };
  if (mine.ok())
    mine = Segment::create(s.bytes, s.windowsAt, ownerOf(comm.rank()), plan->own);
  if (mine.ok())
    mine = plan->shareWindows(comm.rank(), sharers);
  Writer writer;
  putStatus(writer, mine);
  if (mine.ok())
    writer.put(std::string_view(s.manifest()))
        .put(std::string_view(comm.transport().offer(id, plan->own)));

  // A rank that cannot still comes, so that the others need not wait for the deadline.
  std::vector<std::string> parts, offers, manifests;
  std::vector<Reader> readers;
  const std::string what = fmt::format("all ranks to prepare plan '{}'", s.name);
  if (Status g = comm.meet("prepare", what, writer.take(), parts); !g.ok())
    return g;
  if (Status f = firstFailure(s.name, parts, readers); !f.ok())
    return f;
  for (Reader &reader : readers) {
    manifests.push_back(reader.text());
    offers.push_back(reader.text());
  }
  if (Status c = compareManifests(manifests); !c.ok())
    return c;

  mine = comm.transport().attach(id, s.bytes, offers, plan->peers);
  for (int r = 0; r < comm.nranks() && mine.ok(); ++r)
    if (plan->peers[r])
      mine = plan->shareWindows(r, sharers);
  Writer second;
  putStatus(second, mine);
  readers.clear();
  if (Status g = comm.meet("attach", what, second.take(), parts); !g.ok())
    return g;
  if (Status f = firstFailure(s.name, parts, readers); !f.ok())
    return f;
  plan->own->closeFile();
  plan->peers[comm.rank()] = plan->own;
  for (size_t i = 0; i < s.lanes.size(); ++i)
    plan->lanes.emplace_back();
  plan->trace.resize(size_t(s.traceCapacity));
  if (comm.transport().hasBarrier())
    plan->sent = SentCounts(size_t(comm.nranks()), size_t(s.slotCount));
  for (const Shape::Window &w : s.windows)
    plan->windows.push_back({{w.offset, w.pitch, w.generations}, w.bytes});
  for (const Shape::Slots &a : s.slots)
    plan->slots.push_back(
        {{a.first, a.count, a.generations}, a.count, plan->sent && a.writers == 1});
  comm.add(*plan);
  result = std::move(plan);
  return {};
}

Status Plan::shareWindows(int rank, const std::map<int64_t, Plan *> &sharers) {
  Segment &mapped = *segmentOf(rank);
  if (mapped.isAliased()) // a rank of this process has done so itself
    return {};
  for (const Shape::Window &w : shape.windows)
    if (w.plan >= 0 && w.bytes > 0)
      if (Status s = mapped.alias(w.offset, *sharers.at(w.plan)->segmentOf(rank), w.from, w.bytes);
          !s.ok())
        return s;
  return {};
}

Plan::~Plan() {
  // The job's puts hold pointers into the plan: all have been sent, or the job has failed.
  for (LaneProgress &lane : lanes)
    if (Status s = comm.transport().complete(lane); !s.ok())
      comm.fail(s);
  comm.remove(*this);
  comm.transport().forget(id);
}

Status Plan::buffer(size_t window, int32_t generation, void **data, size_t *bytes) {
  if (!data || !bytes)
    return error(ncclxrtInvalidArgument, "PlanBuffer: an out-parameter is null");
  if (window >= shape.windows.size())
    return error(ncclxrtInvalidArgument, "plan '{}': no window {}, it has {}", shape.name, window,
                 shape.windows.size());
  const Shape::Window &w = shape.windows[window];
  if (generation < 0 || generation >= w.generations)
    return error(ncclxrtInvalidArgument, "plan '{}': window '{}' has no generation {}, it has {}",
                 shape.name, w.name, generation, w.generations);
  *data = own->base() + w.offset + generation * w.pitch;
  *bytes = size_t(w.bytes);
  return {};
}

ncclxrtResult_t Plan::run(ncclxrtProgram_t program) {
  struct Running { // also when the program throws, which the caller turns into an error
    bool &flag;
    explicit Running(bool &flag) : flag(flag) { flag = true; }
    ~Running() { flag = false; }
  } guard(running);
  branchRun = ++runNumber;
  branch = -1;
  for (WindowNow &w : windows)
    w.step();
  for (SlotsNow &s : slots)
    s.step();
  step = 0;
  currentOp = -1;
  computing = false;
  hasBadWindow = false;
  comm.place.plan.store(id, std::memory_order_relaxed);
  comm.place.run.store(runNumber, std::memory_order_relaxed);
  comm.place.op.store(-1, std::memory_order_relaxed);
  comm.place.phase.store(RankState::Working, std::memory_order_relaxed);
  int32_t status = program(int64_t(reinterpret_cast<intptr_t>(this)));
  if (status == 0 && hasBadWindow)
    status = fail(ncclxrtInvalidArgument, fmt::format("there is no window {}", badWindow));
  if (status != 0 && comm.failure() == ncclxrtSuccess)
    fail(ncclxrtAborted, fmt::format("the program ended with status {}", status));
  comm.place.phase.store(RankState::Idle, std::memory_order_relaxed);
  if (status == 0)
    return ncclxrtSuccess;
  comm.addPlace(describePlace());
  return comm.failure();
}

std::string Plan::opName(int64_t op) const {
  if (op < 0 || op >= int64_t(shape.ops.size()))
    return "(none)";
  const Shape::Op &o = shape.ops[op];
  return "'" + o.name + "'" + (o.location.empty() ? "" : " at " + o.location);
}

std::string Plan::describePlace() const {
  return fmt::format("rank {}, plan '{}', run {}, step {}, op {}", comm.rank(), shape.name,
                     runNumber, step, opName(currentOp));
}

std::string Plan::describeNextRun() const {
  return fmt::format("rank {} came to run {} of plan '{}'", comm.rank(), runNumber + 1, shape.name);
}

ncclxrtResult_t Plan::fail(ncclxrtResult_t code, const std::string &reason) {
  return comm.fail(error(code, "{}: {}", describePlace(), reason));
}
