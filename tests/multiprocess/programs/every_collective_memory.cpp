// What a rank holds beyond its user's buffers once every collective, send and receive have run, small and large:
// prints "KIB <proportional> <resident>" (of /proc/self/smaps_rollup, less what there was before it joined).
// Proportional counts a page that k ranks share as 1/k in each, so that the ranks' sum is what the host gives.
#include <rondo/rondo.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t largest = std::size_t{1} << 20;  // elements a block: 4 MiB

struct Kibibytes {
  long proportional = 0;
  long resident = 0;
};
Kibibytes held() {
  Kibibytes found;
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word) {
    if (word == "Pss:") file >> found.proportional;
    if (word == "Rss:") file >> found.resident;
  }
  return found;
}

void call_everything(rondo::Communicator& world, const std::vector<float>& in, std::vector<float>& out,
                     std::size_t count) {
  const int n = world.size(), me = world.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  const auto type = rondo::DataType::float32;
  const std::vector<std::size_t> counts(static_cast<std::size_t>(n), count);
  std::vector<std::size_t> starts;
  for (int r = 0; r < n; ++r) starts.push_back(static_cast<std::size_t>(r) * count);
  world.all_reduce(in.data(), out.data(), count, type);
  world.all_gather(in.data(), out.data(), count, type);
  world.reduce_scatter(in.data(), out.data(), count, type);
  world.broadcast(in.data(), out.data(), count, type, 0);
  world.reduce(in.data(), out.data(), count, type, {}, 0);
  world.all_to_all(in.data(), out.data(), count, type);
  world.gather(in.data(), out.data(), count, type, 0);
  world.scatter(in.data(), out.data(), count, type, 0);
  world.all_gather_v(in.data(), out.data(), counts, starts, type);
  world.reduce_scatter_v(in.data(), out.data(), counts, type);
  world.all_to_all_v(in.data(), counts, starts, out.data(), counts, starts, type);
  world.gather_v(in.data(), count, out.data(), counts, starts, type, 0);
  world.scatter_v(in.data(), counts, starts, out.data(), count, type, 0);
  {
    rondo::Group group;
    world.send(in.data(), count, type, next);
    world.receive(out.data(), count, type, before);
  }
  world.barrier();
}

}  // namespace

int main() {
  // Room for the largest call of four ranks, touched before anything is counted.
  const std::vector<float> in(4 * largest, 1.0F);
  std::vector<float> out(4 * largest, 2.0F);
  const Kibibytes before = held();
  rondo::Communicator world = rondo::Communicator::from_environment();
  for (const std::size_t count : {std::size_t{2}, std::size_t{1000}, std::size_t{50'000}, largest})
    call_everything(world, in, out, count);
  const Kibibytes after = held();
  std::printf("KIB %ld %ld\n", after.proportional - before.proportional, after.resident - before.resident);
  world.barrier();  // nobody unmaps before all have looked
  world.close();
}
