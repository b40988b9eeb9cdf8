// The collective calls that go over the control tree: split, allocate, close.
#include "base/bytes.hpp"
#include "communicator/implementation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rondo::communicator {

std::vector<std::vector<std::byte>> Implementation::exchange(std::span<const std::byte> bytes, const char* what) {
  refuse_with_group_pending(what);
  base::ByteWriter out;
  out.put_string(what).put_raw(bytes);
  engine::Engine& engine = *world_->engine;
  const engine::OpenExchange open(state_->exchanges, what, engine.system().now());
  auto all = engine.tree().all_gather(state_->context, open.number(), state_->members, out.bytes(),
                                      engine.system().now() + world_->settings.deadline, [this] { check(); });
  for (std::size_t r = 0; r < all.size(); ++r) {
    base::ByteReader in(all[r]);
    const std::string theirs(in.get_string());
    if (theirs != what) {
      const Error error(
          ErrorCode::mismatch,
          fmt::format("ranks of {} disagree: rank {} called {}, rank {} called {}", name(), rank(), what, r, theirs),
          "split, allocate and close are collective: every rank calls them in the same order", state_->members[r]);
      engine.fail(*state_, error);
      throw state_->error();
    }
    all[r].erase(all[r].begin(), all[r].begin() + static_cast<std::ptrdiff_t>(4 + theirs.size()));
  }
  return all;
}

std::shared_ptr<Implementation> Implementation::split(const SplitOptions& options) {
  check();
  const std::uint64_t number = ++splits_;
  base::ByteWriter out;
  out.put<std::uint8_t>(options.color ? 1 : 0)
      .put<std::int64_t>(options.color.value_or(0))
      .put<std::int64_t>(options.key);
  const auto all = exchange(out.bytes(), "split");
  if (!options.color) return nullptr;
  std::vector<std::pair<std::int64_t, int>> chosen;
  for (int r = 0; r < size(); ++r) {
    base::ByteReader in(all[static_cast<std::size_t>(r)]);
    const bool takes_part = in.get<std::uint8_t>() != 0;
    const auto color = in.get<std::int64_t>();
    const auto key = in.get<std::int64_t>();
    if (takes_part && color == *options.color) chosen.emplace_back(key, r);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> members;
  int new_rank = 0;
  for (const auto& [key, r] : chosen) {
    if (r == rank()) new_rank = static_cast<int>(members.size());
    members.push_back(state_->members[static_cast<std::size_t>(r)]);
  }
  std::uint64_t context = state_->context;
  for (const std::uint64_t value :
       {number, static_cast<std::uint64_t>(static_cast<std::int64_t>(*options.color)) + 1}) {
    context = (context ^ value) * 0x9E3779B97F4A7C15ULL;
    context ^= context >> 31;
  }
  std::string name = options.name.empty() ? fmt::format("{}/{}", state_->name, *options.color) : options.name;
  return std::make_shared<Implementation>(world_, context, std::move(name), std::move(members), new_rank, false);
}

std::shared_ptr<transport::WindowMapping> Implementation::allocate(std::size_t bytes) {
  check();
  if (bytes == 0) throw Error(ErrorCode::invalid_argument, "allocate: 0 bytes", "allocate at least one element");
  std::shared_ptr<transport::WindowMapping> window;
  std::string why;
  try {
    window = world_->engine->fabric().allocate_window(bytes);
    if (window == nullptr) {  // no transport shares memory: plain pages serve as well
      struct PlainWindow final : transport::WindowMapping {
        std::vector<std::byte> memory;
      };
      auto plain = std::make_shared<PlainWindow>();
      plain->memory.resize(bytes + 4096);
      plain->data =
          plain->memory.data() + (4096 - reinterpret_cast<std::uintptr_t>(plain->memory.data()) % 4096) % 4096;
      plain->bytes = bytes;
      window = plain;
      plain->id = 0;
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  base::ByteWriter out;
  out.put<std::uint64_t>(bytes).put_string(why);
  const auto all = exchange(out.bytes(), "allocate");
  for (int r = 0; r < size(); ++r) {
    base::ByteReader in(all[static_cast<std::size_t>(r)]);
    const auto theirs = in.get<std::uint64_t>();
    const std::string failure(in.get_string());
    if (!failure.empty())
      throw Error(ErrorCode::system, fmt::format("allocate of {} bytes failed on rank {}: {}", theirs, r, failure),
                  "ask for less, or raise the memory limit of that host", state_->members[static_cast<std::size_t>(r)]);
    if (theirs != bytes) {
      engine().fail(*state_,
                    Error(ErrorCode::mismatch,
                          fmt::format("allocate: rank {} asks for {} bytes, rank {} for {}", rank(), bytes, r, theirs),
                          "windows have the same size on every rank"));
      throw state_->error();
    }
  }
  if (window->id != 0) {
    const std::lock_guard lock(world_->mutex);
    std::erase_if(world_->windows, [](const auto& weak) { return weak.expired(); });
    world_->windows.push_back(window);
    world_->window_count.store(world_->windows.size(), std::memory_order_release);  // pairs with find_window()
  }
  return window;
}

void Implementation::close() {
  check();
  refuse_with_group_pending("close");
  std::shared_ptr<engine::Operation> last;
  std::vector<std::shared_ptr<engine::Operation>> pending;
  {
    const std::lock_guard lock(issue_);
    if (last_collective_ != nullptr) pending.push_back(last_collective_);
  }
  {
    const std::lock_guard lock(point_to_point_mutex_);
    for (const auto& [peer, operation] : last_send_)
      if (operation != nullptr) pending.push_back(operation);
  }
  for (const auto& operation : pending) world_->engine->wait(operation, world_->settings.deadline, true);
  if (state_->poisoned()) throw state_->error();
  exchange({}, "close");
  closed_.store(true, std::memory_order_release);
  if (is_world_ && !world_->engine->leave(world_->engine->system().now() + world_->settings.deadline)) {
    if (state_->poisoned()) throw state_->error();
    throw Error(ErrorCode::deadline, fmt::format("close of {}: not all ranks said goodbye", name()),
                "a rank that is still busy, or has ended without close()");
  }
}

}  // namespace rondo::communicator
