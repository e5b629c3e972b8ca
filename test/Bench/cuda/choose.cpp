#include "choose.h"

#include <algorithm>

namespace bench {

/// Bytes that a rank sends to each of its peers.
static int64_t sent(const Call &call, int ranks) {
  bool whole =
      call.coll == Coll::AllReduce || call.coll == Coll::Broadcast || call.coll == Coll::Permute;
  return whole ? call.bytes : call.bytes / ranks;
}

Config choose(const Call &call, int ranks) {
  int64_t bytes = sent(call, ranks);
  bool reduces = call.coll == Coll::ReduceScatter || call.coll == Coll::AllReduce;
  auto blocks = [&](int64_t bytesEach, int most) {
    return int(std::clamp<int64_t>((bytes + bytesEach - 1) / bytesEach, 1, most));
  };
  if (bytes <= (64 << 10)) // one unit a thread
    return {Algo::Packet16, blocks(1024, 64), 128, 1, true};
  if (bytes <= (256 << 10))
    return {Algo::Packet128, blocks(1024, 128), bytes <= (128 << 10) ? 128 : 256, 1, true};
  if (bytes <= (4 << 20))
    return {Algo::Packet128, 132, 512, 1, true};
  // Zero-copy kernels, and from where the 20 us that copy engines take to start do not show, these.
  // A reduce-scatter does nothing beside its last addition, so its kernel is worth while for
  // longer.
  if (bytes <= (64 << 20) || (call.coll == Coll::ReduceScatter && bytes <= (128 << 20)))
    return {Algo::Direct, 132, 512, 1, true};
  if (call.coll == Coll::ReduceScatter)
    return {Algo::CopyEngine, 128, 512, 16, false};
  if (reduces)
    return {Algo::CopyEngine, 16, 512, 4, false};
  return {Algo::CopyEngine, 1, 32, 2, false};
}

std::vector<Config> candidates(const Call &call, int ranks) {
  int64_t bytes = sent(call, ranks);
  bool reduces = call.coll == Coll::ReduceScatter || call.coll == Coll::AllReduce;
  std::vector<Config> all;
  auto add = [&](Algo algo, std::initializer_list<int64_t> each,
                 std::initializer_list<int> threads) {
    std::vector<std::pair<int, int>> seen;
    for (int64_t e : each)
      for (int t : threads) {
        int blocks = int(std::clamp<int64_t>((bytes + e - 1) / e, 1, 132));
        if (std::find(seen.begin(), seen.end(), std::pair(blocks, t)) != seen.end())
          continue;
        seen.push_back({blocks, t});
        all.push_back({algo, blocks, t, 1, true});
      }
  };
  if (bytes <= (64 << 10)) // one unit a thread
    add(Algo::Packet16, {512, 1024, 2048, 4096}, {64, 128, 256});
  if (bytes <= (1 << 20))
    add(Algo::Packet128, {1024, 2048, 4096, 8192, 16384}, {128, 256, 512});
  else if (bytes <= (64 << 20))
    add(Algo::Packet128, {8192, bytes / 64}, {512});
  if (bytes >= (1 << 20) && bytes <= (256 << 20))
    add(Algo::Direct, {16384, bytes / 32}, {512});
  if (bytes >= (16 << 20))
    for (Algo algo : {Algo::CopyEngine, Algo::MeetEngine}) {
      if (reduces)
        for (int chunks : {2, 4, 8, 16, 32})
          for (int blocks : {16, 128})
            all.push_back({algo, blocks, 512, chunks, false});
      else
        for (int pieces : {1, 2})
          all.push_back({algo, 1, 32, pieces, false});
    }
  if (bytes <= (64 << 10)) {
    Config late = all.front();
    late.early = false; // what the early launch brings
    all.push_back(late);
  }
  return all;
}

} // namespace bench
