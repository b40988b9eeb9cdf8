#include "communicator/world.hpp"

#include <rondo/version.hpp>

#include "base/bytes.hpp"
#include "base/fork_guard.hpp"
#include "base/log.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/launch_environment.hpp"
#include "bootstrap/local_link.hpp"
#include "transports/set.hpp"
#include "transports/shm/local_world.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace rondo::communicator {
namespace {

using base::LogLevel;
using base::Subsystem;

std::atomic<bool> forked_child{false};

void watch_forks() {
  base::close_in_forked_children([] { forked_child.store(true, std::memory_order_relaxed); });
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

// With a core for each rank a peer answers soon, so looking pays; else the core must be given away soon. Looking at
// wires costs a system call each, and so does giving the core away; but sleeping until a wire has news takes the
// service thread as well.
void set_back_off(engine::EngineParts& parts, int ranks_here, int cores) {
  if (ranks_here <= cores) return;
  parts.back_off.spins = 20;
  parts.back_off.yields = 20;
  parts.wire_back_off.spins = 1;
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "unknown-host";
  return name;
}

// Equal on all ranks, since it follows from settings that must agree and from the size alone.
std::size_t slice_bytes_for(const base::Settings& settings, int size) {
  const bool wires_only =
      std::find(settings.transports.begin(), settings.transports.end(), "shm") == settings.transports.end();
  if (settings.fifo_bytes != 0) return std::max<std::size_t>(4096, settings.fifo_bytes / (wires_only ? 4 : 8));
  if (wires_only) return 256 * 1024;
  return size <= 8 ? 64 * 1024 : size <= 16 ? 32 * 1024 : size <= 32 ? 16 * 1024 : 8 * 1024;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ",") + w;
  return text;
}

transport::TransportOptions transport_options(const base::Settings& settings, int size, bool fences) {
  transport::TransportOptions options;
  options.list = joined(settings.transports);
  options.ranks = size;
  options.fifo_bytes = settings.fifo_bytes;
  options.interfaces = settings.interfaces;
  options.ringer_fences = fences;
  return options;
}

std::shared_ptr<World> make_world(const base::Settings& settings, int size) {
  auto world = std::make_shared<World>();
  world->settings = settings;
  world->policy.pins = tuner::parse_pins(settings.algorithm);
  world->policy.deterministic = settings.deterministic;
  world->slice_bytes = slice_bytes_for(settings, size);
  const bool wires_only =
      std::find(settings.transports.begin(), settings.transports.end(), "shm") == settings.transports.end();
  world->channels = settings.tcp_channels > 0 && wires_only ? settings.tcp_channels : 1;
  return world;
}

void check_place(int rank, int size) {
  if (size < 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("a communicator of {} ranks", size), "use at least 1");
  if (rank < 0 || rank >= size)
    throw Error(ErrorCode::invalid_argument, fmt::format("rank {} of {}", rank, size),
                fmt::format("use 0 to {}", size - 1));
}

std::vector<int> all_ranks(int size) {
  std::vector<int> members(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) members[static_cast<std::size_t>(r)] = r;
  return members;
}

constexpr std::uint64_t world_context = 1;

}  // namespace

bool is_forked_child() { return forked_child.load(std::memory_order_relaxed); }

void refuse_forked_child() {
  if (is_forked_child())
    throw Error(ErrorCode::invalid_usage, "this process is a forked child: its communicators belong to the parent",
                "make communicators after fork(), or use exec()");
}

void leak(std::shared_ptr<Implementation> implementation) {
  static_cast<void>(new std::shared_ptr<Implementation>(std::move(implementation)));
}

std::shared_ptr<Implementation> join_world(const UniqueId& id, int rank, int size, const Config& config) {
  watch_forks();
  refuse_forked_child();
  check_place(rank, size);
  const base::Settings settings = base::resolve_settings(config);
  base::set_log_rank(rank);
  base::System& system = base::System::real();
  const base::Nanoseconds began = system.now();
  const base::Nanoseconds deadline = began + settings.join_deadline;
  const int cores = usable_cores();
  auto world = make_world(settings, size);

  engine::EngineParts parts;
  parts.system = &system;
  parts.poller = base::Poller::make_real();
  auto transports = std::make_unique<transport::TransportSet>(system, *parts.poller, bootstrap::key_of(id), rank,
                                                              transport_options(settings, size, size > cores));
  bootstrap::JoinOptions options;
  options.rank = rank;
  options.size = size;
  options.deadline = settings.join_deadline;
  options.interfaces = settings.interfaces;
  options.self.host = host_name();
  options.self.pid = getpid();
  options.self.settings = base::settings_fingerprint(settings);
  options.self.blob = transports->address();
  bootstrap::Joined joined = bootstrap::join(id, options, *parts.poller);

  std::vector<std::vector<std::byte>> table;
  int ranks_here = 0;
  for (int r = 0; r < size; ++r) {
    const bootstrap::PeerInfo& peer = joined.peers[static_cast<std::size_t>(r)];
    ranks_here += peer.host == options.self.host ? 1 : 0;
    table.push_back(peer.blob);
    parts.describe.push_back(fmt::format("rank {} ({}, pid {})", r, peer.host, peer.pid));
  }
  transports->start(table);
  parts.bell = &transports->own_bell();
  parts.tree = std::make_unique<bootstrap::ControlTree>(system, rank, size, std::move(joined.links), settings.heartbeat,
                                                        parts.describe);
  transport::TransportSet* set = transports.get();
  parts.fabric = std::move(transports);
  set_back_off(parts, ranks_here, cores);
  world->engine = std::make_shared<engine::Engine>(std::move(parts));
  world->engine->start();
  const base::Nanoseconds tree_ready = system.now();

  auto made = std::make_shared<Implementation>(world, world_context, settings.name, all_ranks(size), rank, true);
  // All or nothing: every rank tells whether it reaches all peers, and which by wires.
  std::string why;
  std::vector<std::byte> wires((static_cast<std::size_t>(size) + 7) / 8);
  try {
    set->probe_all();
    for (int r = 0; r < size; ++r)
      if (set->is_wire(r)) wires[static_cast<std::size_t>(r) / 8] |= std::byte{1} << r % 8;
  } catch (const std::exception& error) {
    why = error.what();
  }
  base::ByteWriter paths;
  paths.put_string(why).put_raw(wires);
  const auto verdicts = world->engine->tree().all_gather(world_context, 0, all_ranks(size), paths.bytes(), deadline,
                                                         [&] { made->check(); });
  for (int r = 0; r < size; ++r) {
    base::ByteReader verdict(verdicts[static_cast<std::size_t>(r)]);
    const std::string failure(verdict.get_string());
    if (failure.empty()) {
      const auto bits = verdict.get_raw(wires.size());
      world->wires.emplace_back(bits.begin(), bits.end());
      continue;
    }
    made->state().poison(Error(ErrorCode::transport, fmt::format("joining failed on rank {}: {}", r, failure),
                               "see RONDO_DEBUG=INFO on that rank for the paths it tried", r));
    throw made->state().error();
  }
  made->learn_paths();
  if (base::log_enabled(LogLevel::info, Subsystem::init)) {
    base::log(LogLevel::info, Subsystem::init, "Rondo {}: rank {} of {} on {} ({} cores for this process)", version(),
              rank, size, host_name(), cores);
    for (int r = 0; r < size; ++r)
      base::log(LogLevel::info, Subsystem::net, "to rank {} by {}: {}", r, set->name(r), set->why(r));
    std::string phases;
    for (const auto& [phase, ms] : joined.phases) phases += fmt::format("{} {:.1f} ms, ", phase, ms);
    base::log(LogLevel::info, Subsystem::init, "joined in {:.1f} ms: {}paths {:.1f} ms",
              static_cast<double>(system.now() - began) / 1e6, phases,
              static_cast<double>(system.now() - tree_ready) / 1e6);
    for (const Collective c :
         {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::broadcast})
      for (std::uint64_t bytes = 8, last = 0; bytes <= (1U << 30U); bytes *= 4) {
        const auto& algorithm = tuner::choose(world->policy, {c, size, 0}, bytes, made->paths());
        const auto now = reinterpret_cast<std::uintptr_t>(&algorithm);
        if (now != last)
          base::log(LogLevel::info, Subsystem::plan, "{} from {} bytes: {}", name_of(c), bytes, algorithm.name);
        last = now;
      }
  }
  return made;
}

std::shared_ptr<Implementation> join_from_environment(const Config& config) {
  const bootstrap::LaunchEnvironment launch = bootstrap::read_launch_environment(bootstrap::process_environment());
  base::log(LogLevel::info, Subsystem::init, "rank {} of {} by {}", launch.rank, launch.size, launch.source);
  return join_world(launch.id, launch.rank, launch.size, config);
}

std::vector<std::shared_ptr<Implementation>> make_local_world(int size, const Config& config) {
  watch_forks();
  refuse_forked_child();
  check_place(0, size);
  base::Settings settings = base::resolve_settings(config);
  settings.transports = {"shm"};
  base::System& system = base::System::real();
  const int cores = usable_cores();
  const auto local = std::make_shared<transport::LocalWorld>(size);
  const auto count = static_cast<std::size_t>(size);

  std::vector<std::map<int, std::unique_ptr<bootstrap::ControlLink>>> links(count);
  std::vector<std::unique_ptr<base::Poller>> pollers;
  std::vector<std::string> describe;
  for (int r = 0; r < size; ++r) {
    pollers.push_back(base::Poller::make_real());
    describe.push_back(fmt::format("rank {} (a thread of pid {})", r, getpid()));
  }
  for (int child = 1; child < size; ++child) {
    const int parent = (child - 1) / bootstrap::control_tree_arity;
    base::Poller* up = pollers[static_cast<std::size_t>(parent)].get();
    base::Poller* down = pollers[static_cast<std::size_t>(child)].get();
    auto [to_child, to_parent] = bootstrap::make_local_links([up] { up->wake(); }, [down] { down->wake(); });
    links[static_cast<std::size_t>(parent)][child] = std::move(to_child);
    links[static_cast<std::size_t>(child)][parent] = std::move(to_parent);
  }
  std::vector<std::unique_ptr<transport::TransportSet>> sets;
  std::vector<std::vector<std::byte>> table;
  for (int r = 0; r < size; ++r) {
    sets.push_back(
        std::make_unique<transport::TransportSet>(system, local, r, transport_options(settings, size, size > cores)));
    table.push_back(sets.back()->address());
  }
  std::vector<std::shared_ptr<Implementation>> ranks;
  for (int r = 0; r < size; ++r) {
    const auto i = static_cast<std::size_t>(r);
    sets[i]->start(table);
    engine::EngineParts parts;
    parts.system = &system;
    parts.poller = std::move(pollers[i]);
    parts.tree =
        std::make_unique<bootstrap::ControlTree>(system, r, size, std::move(links[i]), base::Nanoseconds{0}, describe);
    parts.bell = &sets[i]->own_bell();
    parts.fabric = std::move(sets[i]);
    set_back_off(parts, size, cores);
    parts.describe = describe;
    auto world = make_world(settings, size);
    world->engine = std::make_shared<engine::Engine>(std::move(parts));
    ranks.push_back(std::make_shared<Implementation>(world, world_context, settings.name, all_ranks(size), r, true));
  }
  for (const auto& rank : ranks) rank->engine().start();
  return ranks;
}

}  // namespace rondo::communicator
