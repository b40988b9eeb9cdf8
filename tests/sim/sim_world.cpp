#include "sim/sim_world.hpp"

#include "transports/sim/sim_fabric.hpp"

#include <fmt/format.h>

#include <utility>

namespace rondo::testing {

std::vector<int> spread_over(int ranks, int hosts) {
  std::vector<int> of;
  for (int r = 0; r < ranks; ++r) of.push_back(r % hosts);
  return of;
}

SimWorld::SimWorld(const WorldOptions& options)
    : options_(options), scheduler_(options.scheduler), network_(scheduler_, options.network) {
  const auto count = static_cast<std::size_t>(size());
  links_.resize(count);
  implementations_.resize(count);
  for (int r = 0; r < size(); ++r) {
    systems_.push_back(options_.make_system ? options_.make_system(scheduler_, r)
                                            : std::make_unique<sim::SimSystem>(scheduler_, r));
    pollers_.push_back(std::make_unique<sim::SimPoller>(*systems_.back()));
    describe_.push_back(fmt::format("rank {} (simulated)", r));
  }
  for (int child = 1; child < size(); ++child) {
    const int parent = (child - 1) / bootstrap::control_tree_arity;
    base::Poller* up = pollers_[static_cast<std::size_t>(parent)].get();
    base::Poller* down = pollers_[static_cast<std::size_t>(child)].get();
    auto [at_parent, at_child] = sim::make_sim_links(
        network_, parent, [up] { up->wake(); }, child, [down] { down->wake(); });
    links_[static_cast<std::size_t>(parent)][child] = std::move(at_parent);
    links_[static_cast<std::size_t>(child)][parent] = std::move(at_child);
  }
}

SimWorld::~SimWorld() = default;

void SimWorld::run(std::function<void(Communicator&)> body) {
  for (int r = 0; r < size(); ++r) scheduler_.spawn(r, "caller", [this, r, &body] { run_rank(r, body); });
  scheduler_.run();
}

void SimWorld::run_rank(int rank, const std::function<void(Communicator&)>& body) {
  const auto i = static_cast<std::size_t>(rank);
  scheduler_.sleep(scheduler_.random().between(0, 30'000));
  auto world = std::make_shared<communicator::World>();
  world->settings.deadline = options_.deadline;
  world->settings.heartbeat = options_.heartbeat;
  world->policy.pins = options_.pins;
  world->policy.deterministic = options_.deterministic;
  world->slice_bytes = options_.slice_bytes != 0 ? options_.slice_bytes : options_.network.layout.slot_bytes;
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) members.push_back(r);

  engine::EngineParts parts;
  parts.system = systems_[i].get();
  parts.poller = std::move(pollers_[i]);
  parts.tree = std::make_unique<bootstrap::ControlTree>(*systems_[i], rank, size(), std::move(links_[i]),
                                                        options_.heartbeat, describe_);
  parts.fabric = std::make_unique<sim::SimFabric>(network_, rank, *systems_[i]);
  parts.bell = &network_.bell(rank);
  parts.back_off.yields = 2;
  parts.describe = describe_;
  world->engine = std::make_shared<engine::Engine>(std::move(parts));
  auto made = std::make_shared<communicator::Implementation>(world, 1, "world", members, rank, true);
  made->engine().start();
  implementations_[i] = made;
  world.reset();
  {
    Communicator comm(std::move(made));
    body(comm);
  }
  ended_.insert(rank);
  release_gone();
}

void SimWorld::kill(int rank) {
  network_.isolate(rank);
  stop(rank);
}

void SimWorld::stop(int rank) {
  if (has_ended(rank)) return;
  gone_.insert(rank);
  scheduler_.freeze(rank);
  release_gone();
}

void SimWorld::release_gone() {
  for (int r = 0; r < size(); ++r)
    if (!ended_.contains(r) && !gone_.contains(r)) return;
  if (std::exchange(released_, true)) return;
  scheduler_.after(0, [this] {
    for (const int rank : gone_) {
      network_.isolate(rank);
      if (const auto implementation = implementations_[static_cast<std::size_t>(rank)].lock())
        implementation->state().poison(Error(ErrorCode::aborted, "this rank was killed", {}, rank));
      scheduler_.thaw(rank);
    }
  });
}

}  // namespace rondo::testing
