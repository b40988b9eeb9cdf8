#include "bootstrap/control_tree.hpp"

#include "base/bytes.hpp"
#include "base/wait.hpp"
#include "bootstrap/control_frame.hpp"
#include "bootstrap/gather_table.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr base::Nanoseconds query_patience = 1'000'000'000;
// The slow path: nobody waits here for microseconds.
constexpr base::BackOff back_off{0, 2, 20'000'000};

std::vector<std::byte> sequence_bytes(std::uint64_t sequence) {
  base::ByteWriter writer;
  writer.put(sequence);
  return writer.take();
}

}  // namespace

class ControlTree::Implementation {
 public:
  Implementation(base::System& system, int rank, int size, std::map<int, std::unique_ptr<ControlLink>> links,
                 base::Nanoseconds heartbeat, std::vector<std::string> describe)
      : system_(system), rank_(rank), size_(size), heartbeat_(heartbeat), describe_(std::move(describe)) {
    std::vector<int> expected = tree_children(rank, size);
    if (rank > 0) expected.insert(expected.begin(), tree_parent(rank));
    std::vector<int> given;
    for (const auto& [peer, link] : links) given.push_back(peer);
    if (given != expected || describe_.size() != static_cast<std::size_t>(size)) {
      throw Error(ErrorCode::internal,
                  fmt::format("the control tree of rank {} of {} needs links to ranks {} and {} descriptions; it got "
                              "links to {} and {}",
                              rank, size, fmt::join(expected, ", "), size, fmt::join(given, ", "), describe_.size()));
    }
    for (auto& [peer, link] : links) neighbours_[peer].link = std::move(link);
  }

  void start(ControlHandlers handlers, base::DoorbellWord& bell, std::function<void()> wake) {
    handlers_ = std::move(handlers);
    bell_ = &bell;
    wake_ = std::move(wake);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  void send(int destination, std::uint32_t type, std::uint64_t context, std::span<const std::byte> payload) {
    check_rank(destination);
    check_type(type);
    if (destination != rank_) return route({type, context, rank_, destination, payload});
    {
      const std::lock_guard lock(mutex_);
      to_self_.push_back({type, context, rank_, {payload.begin(), payload.end()}});
    }
    if (wake_) wake_();
  }

  void flood(std::uint32_t type, std::uint64_t context, std::span<const std::byte> payload) {
    check_type(type);
    spread({type, context, rank_, to_everybody, payload}, -1);
  }

  std::vector<std::vector<std::byte>> all_gather(std::uint64_t context, std::uint64_t sequence,
                                                 std::span<const int> members, std::span<const std::byte> bytes,
                                                 base::Nanoseconds deadline, const std::function<void()>& check) {
    check_members(members);
    const GatherKey key{context, sequence};
    const WaitedGather waited(*this, key);
    return rank_ == members[0] ? collect(key, members, bytes, deadline, check)
                               : contribute(key, members, bytes, deadline, check);
  }

  bool leave(base::Nanoseconds deadline) {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    for (auto& [peer, neighbour] : neighbours_) tell(peer, TreeFrame::leaving);
    advance_leave();
    wait(deadline, [&] {
      const std::lock_guard lock(mutex_);
      return released_ || parent_gone_ || !failed_.empty();
    });
    const std::lock_guard lock(mutex_);
    return released_;
  }

  void leave_with_error(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_ || released_) return;
      ended_ = true;
    }
    spread_failure(rank_, fmt::format("{} ended: {}", name(rank_), why), -1);
  }

  base::Nanoseconds progress() {
    const base::Nanoseconds now = system_.now();
    // A neighbour can't be blamed for silence while nobody listened: a job that was stopped as a whole, or a host that
    // slept, goes on where it was.
    const bool irregular = last_progress_ == base::never || now - last_progress_ > heartbeat_ / 2;
    last_progress_ = now;
    if (irregular) {
      for (auto& [peer, neighbour] : neighbours_) neighbour.heard = now;
    }
    deliver_to_self();
    for (auto& [peer, neighbour] : neighbours_) {
      if (neighbour.open) listen(peer, neighbour, now);
    }
    return heartbeat_ > 0 ? beat(now) : base::never;
  }

 private:
  struct Neighbour {
    std::unique_ptr<ControlLink> link;
    std::atomic<base::Nanoseconds> sent{0};  // any thread; only paces the heartbeat, orders nothing
    base::Nanoseconds heard = 0;             // the service thread's
    bool open = true;                        // the service thread's
    bool trusted = true;                     // the service thread's: no frame was malformed; else none is looked at
  };

  // Marks a gather as waited for as long as its caller is in it.
  class WaitedGather {
   public:
    WaitedGather(Implementation& tree, const GatherKey& key) : tree_(tree), key_(key) {
      const std::lock_guard lock(tree_.mutex_);
      tree_.gathers_.at(key_).waited = true;
    }
    ~WaitedGather() {
      const std::lock_guard lock(tree_.mutex_);
      tree_.gathers_.give_up(key_);
    }
    WaitedGather(const WaitedGather&) = delete;
    WaitedGather& operator=(const WaitedGather&) = delete;

   private:
    Implementation& tree_;
    GatherKey key_;
  };

  // --- sending: any thread -------------------------------------------------------------------------------------------

  void write(int peer, std::span<const std::byte> frame) {
    const auto found = neighbours_.find(peer);
    if (found == neighbours_.end()) return;
    found->second.sent.store(system_.now(), std::memory_order_relaxed);
    found->second.link->send(frame);
  }
  void route(const ControlFrame& frame) { write(next_hop(rank_, frame.destination), encode(frame)); }
  // One at a time, since a neighbour may react to a frame before the next one has it: news of that reaction must not
  // overtake the frame.
  void spread(const ControlFrame& frame, int except) {
    const auto bytes = encode(frame);
    const std::lock_guard lock(spreading_);
    for (auto& [peer, neighbour] : neighbours_) {
      if (peer != except) write(peer, bytes);
    }
  }
  void tell(int destination, TreeFrame type, std::uint64_t context = 0, std::span<const std::byte> payload = {}) {
    route({static_cast<std::uint32_t>(type), context, rank_, destination, payload});
  }
  void spread_failure(int failed, const std::string& why, int except) {
    base::ByteWriter writer;
    writer.put(static_cast<std::int32_t>(failed)).put_string(why);
    spread({static_cast<std::uint32_t>(TreeFrame::failed), 0, rank_, to_everybody, writer.bytes()}, except);
  }

  // --- receiving: the service thread ---------------------------------------------------------------------------------

  void deliver_to_self() {
    std::vector<ControlMessage> messages;
    {
      const std::lock_guard lock(mutex_);
      messages.swap(to_self_);
    }
    for (const auto& message : messages) {
      if (handlers_.on_message) handlers_.on_message(message);
    }
  }

  void listen(int peer, Neighbour& neighbour, base::Nanoseconds now) {
    while (const auto bytes = neighbour.link->receive()) {
      neighbour.heard = now;
      if (!neighbour.trusted) continue;  // read all the same, or the poller would report it for ever
      try {
        handle(peer, *bytes);
      } catch (const Malformed& malformed) {
        neighbour.trusted = false;
        // The neighbour is told as well: it is alive, and must not believe that all is well.
        fail(peer, fmt::format("{} sent bytes that are no control frame: {}", name(peer), malformed.why), -1);
      }
    }
    if (!neighbour.link->closed()) return;
    neighbour.open = false;
    bool expected = false;
    {
      const std::lock_guard lock(mutex_);
      // A parent that goes in good order has released this rank before.
      expected = released_ || (left_.contains(peer) && peer != tree_parent(rank_));
      if (expected && peer == tree_parent(rank_)) parent_gone_ = true;
      if (expected) subtree_left_.insert(peer);
    }
    if (expected) {
      advance_leave();
      notify();
      return;
    }
    const std::string why = neighbour.link->why();
    fail(peer, fmt::format("{} closed its control connection{}{}", name(peer), why.empty() ? "" : ": ", why), peer);
  }

  struct Malformed {
    std::string why;
  };

  // Throws Malformed. Errors of handlers, which are the owner's, pass through as they are.
  ControlFrame parse(int from, std::span<const std::byte> bytes) const {
    ControlFrame frame;
    try {
      frame = decode_control_frame(bytes, size_);
    } catch (const Error& error) {
      throw Malformed{error.message()};
    }
    // From where it can't come, or back to where it came from: in a tree both are lies.
    if (frame.source == rank_ || next_hop(rank_, frame.source) != from) {
      throw Malformed{fmt::format("a frame of rank {} can't come from there", frame.source)};
    }
    if (frame.destination != to_everybody && frame.destination != rank_ && next_hop(rank_, frame.destination) == from) {
      throw Malformed{fmt::format("a frame for rank {} does not lead here", frame.destination)};
    }
    return frame;
  }

  void handle(int from, std::span<const std::byte> bytes) {
    const ControlFrame frame = parse(from, bytes);
    if (frame.type == static_cast<std::uint32_t>(TreeFrame::failed)) {
      int failed = -1;
      std::string why;
      guarded([&] {
        base::ByteReader reader(frame.payload);
        failed = reader.get<std::int32_t>();
        why = reader.get_string();
        reader.expect_end();
      });
      if (failed < 0 || failed >= size_) throw Malformed{fmt::format("rank {} can't have failed", failed)};
      // It becomes the text of an error: everybody would be told nothing.
      if (why.empty()) throw Malformed{fmt::format("rank {} can't have failed without a reason", failed)};
      return fail(failed, why, from);
    }
    if (frame.destination != rank_ && frame.destination != to_everybody) return route(frame);
    if (frame.destination == to_everybody) spread(frame, from);
    if (frame.type >= static_cast<std::uint32_t>(TreeFrame::first)) {
      guarded([&] { handle_own(from, frame); });
    } else if (handlers_.on_message) {
      handlers_.on_message({frame.type, frame.context, frame.source, {frame.payload.begin(), frame.payload.end()}});
    }
  }

  template <class Parse>
  static void guarded(Parse&& parse) {
    try {
      parse();
    } catch (const Error& error) {
      throw Malformed{error.message()};
    }
  }

  void handle_own(int from, const ControlFrame& frame) {
    base::ByteReader reader(frame.payload);
    const auto type = static_cast<TreeFrame>(frame.type);
    const bool between_neighbours = frame.source == from && frame.destination == rank_;
    switch (type) {
      case TreeFrame::heartbeat: return;
      case TreeFrame::leaving: {
        if (!between_neighbours) throw Malformed{"a goodbye of somebody else"};
        const std::lock_guard lock(mutex_);
        left_.insert(from);
        return;
      }
      case TreeFrame::subtree_left: {
        if (!between_neighbours || from == tree_parent(rank_)) throw Malformed{"a goodbye of no child"};
        {
          const std::lock_guard lock(mutex_);
          subtree_left_.insert(from);
        }
        return advance_leave();
      }
      case TreeFrame::release:
        if (!between_neighbours || from != tree_parent(rank_)) throw Malformed{"a release of no parent"};
        return release();
      case TreeFrame::gather_part: {
        const GatherKey key{frame.context, reader.get<std::uint64_t>()};
        const auto rest = reader.rest();
        {
          const std::lock_guard lock(mutex_);
          gathers_.at(key).parts[frame.source].assign(rest.begin(), rest.end());
        }
        return notify();
      }
      case TreeFrame::gather_result: {
        const GatherKey key{frame.context, reader.get<std::uint64_t>()};
        std::vector<std::vector<std::byte>> result(reader.get_count(4));
        for (auto& block : result) {
          const auto bytes = reader.get_bytes();
          block.assign(bytes.begin(), bytes.end());
        }
        reader.expect_end();
        {
          const std::lock_guard lock(mutex_);
          gathers_.at(key).result = std::move(result);
        }
        return notify();
      }
      case TreeFrame::gather_query: return answer_query(frame);
      case TreeFrame::gather_answer: {
        const GatherKey key{frame.context, reader.get<std::uint64_t>()};
        std::vector<int> arrived(reader.get_count(4));
        for (int& member : arrived) member = reader.get<std::int32_t>();
        reader.expect_end();
        {
          const std::lock_guard lock(mutex_);
          gathers_.at(key).arrived = std::move(arrived);
        }
        return notify();
      }
      case TreeFrame::first:
      case TreeFrame::failed: break;
    }
    throw Malformed{fmt::format("unknown type {:#x}", frame.type)};
  }

  void answer_query(const ControlFrame& frame) {
    const auto sequence = base::ByteReader(frame.payload).get<std::uint64_t>();
    base::ByteWriter writer;
    writer.put(sequence);
    {
      const std::lock_guard lock(mutex_);
      const auto& parts = gathers_.at({frame.context, sequence}).parts;
      writer.put(static_cast<std::uint32_t>(parts.size()));
      for (const auto& [member, bytes] : parts) writer.put(static_cast<std::int32_t>(member));
    }
    tell(frame.source, TreeFrame::gather_answer, frame.context, writer.bytes());
  }

  // The first news of a rank's failure goes on to everybody but who brought it; later ones are old.
  void fail(int failed, const std::string& why, int from) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_.contains(failed)) return;
    }
    spread_failure(failed, why, from);
    // Before failed_ shows: whoever a blocking call lets go may ask its communicator why.
    if (handlers_.on_rank_failed) handlers_.on_rank_failed(failed, why);
    {
      const std::lock_guard lock(mutex_);
      failed_.emplace(failed, why);
    }
    notify();
  }

  base::Nanoseconds beat(base::Nanoseconds now) {
    bool accuse = true;
    std::set<int> left;
    {
      const std::lock_guard lock(mutex_);
      accuse = !released_ && !ended_;
      left = left_;
    }
    const base::Nanoseconds pace = std::max<base::Nanoseconds>(heartbeat_ / 4, 1);
    base::Nanoseconds next = now + pace;
    for (auto& [peer, neighbour] : neighbours_) {
      if (!neighbour.open) continue;
      if (now - neighbour.sent.load(std::memory_order_relaxed) >= pace) tell(peer, TreeFrame::heartbeat);
      next = std::min(next, neighbour.sent.load(std::memory_order_relaxed) + pace);
      if (!accuse || left.contains(peer) || now - neighbour.heard <= heartbeat_) continue;
      // Told also to the accused, if it can still hear: it must not believe that all is well.
      fail(peer,
           fmt::format("{} was silent for {:.1f} s", name(peer), static_cast<double>(now - neighbour.heard) / 1e9), -1);
    }
    return next;
  }

  // --- leaving ------------------------------------------------------------------------------------------------------

  // Says goodbye for the whole subtree once, when this rank and everybody below are leaving.
  void advance_leave() {
    {
      const std::lock_guard lock(mutex_);
      if (!leaving_ || said_goodbye_) return;
      for (const int child : tree_children(rank_, size_)) {
        if (!subtree_left_.contains(child)) return;
      }
      said_goodbye_ = true;
    }
    if (rank_ == 0) return release();
    tell(tree_parent(rank_), TreeFrame::subtree_left);
  }

  void release() {
    // Before released_ shows: the caller of leave() may destroy the tree at once.
    for (const int child : tree_children(rank_, size_)) tell(child, TreeFrame::release);
    {
      const std::lock_guard lock(mutex_);
      released_ = true;
    }
    notify();
  }

  // --- all_gather
  // -----------------------------------------------------------------------------------------------------

  std::vector<std::vector<std::byte>> collect(const GatherKey& key, std::span<const int> members,
                                              std::span<const std::byte> bytes, base::Nanoseconds deadline,
                                              const std::function<void()>& check) {
    {
      const std::lock_guard lock(mutex_);
      gathers_.at(key).parts[rank_].assign(bytes.begin(), bytes.end());
    }
    std::vector<std::vector<std::byte>> result;
    const auto ready = [&] {
      if (check) check();
      const std::lock_guard lock(mutex_);
      auto& parts = gathers_.at(key).parts;
      const bool all = std::all_of(members.begin(), members.end(), [&](int member) { return parts.contains(member); });
      if (!all) {
        throw_if_cut(members);
        return false;
      }
      for (const int member : members) result.push_back(std::move(parts[member]));
      parts.clear();
      return true;
    };
    if (wait(deadline, ready) == base::WaitResult::deadline) {
      std::vector<int> arrived;
      {
        const std::lock_guard lock(mutex_);
        for (const auto& [member, part] : gathers_.at(key).parts) arrived.push_back(member);
      }
      throw missing(members, arrived);
    }
    base::ByteWriter writer;
    writer.put(key.sequence).put(static_cast<std::uint32_t>(result.size()));
    for (const auto& block : result) writer.put_bytes(block);
    if (members.size() == static_cast<std::size_t>(size_)) {
      spread({static_cast<std::uint32_t>(TreeFrame::gather_result), key.context, rank_, to_everybody, writer.bytes()},
             -1);
    } else {
      for (const int member : members) {
        if (member != rank_) tell(member, TreeFrame::gather_result, key.context, writer.bytes());
      }
    }
    const std::lock_guard lock(mutex_);
    gathers_.erase(key);
    return result;
  }

  std::vector<std::vector<std::byte>> contribute(const GatherKey& key, std::span<const int> members,
                                                 std::span<const std::byte> bytes, base::Nanoseconds deadline,
                                                 const std::function<void()>& check) {
    base::ByteWriter writer;
    writer.put(key.sequence).put_raw(bytes);
    tell(members[0], TreeFrame::gather_part, key.context, writer.bytes());
    const auto ready = [&] {
      if (check) check();
      const std::lock_guard lock(mutex_);
      if (gathers_.at(key).result) return true;
      throw_if_cut(members);
      return false;
    };
    if (wait(deadline, ready) == base::WaitResult::deadline) ask_who_is_missing(key, members, check);
    const std::lock_guard lock(mutex_);
    auto result = std::move(*gathers_.at(key).result);
    gathers_.erase(key);
    if (result.size() != members.size()) {
      throw Error(ErrorCode::mismatch,
                  fmt::format("rank {} gathers from {} ranks, {} from {}", rank_, members.size(), name(members[0]),
                              result.size()),
                  "the members must be the same on all of them", members[0]);
    }
    return result;
  }

  // Only members[0] knows whose bytes are missing. Returns if the result has come meanwhile; else throws.
  void ask_who_is_missing(const GatherKey& key, std::span<const int> members, const std::function<void()>& check) {
    tell(members[0], TreeFrame::gather_query, key.context, sequence_bytes(key.sequence));
    const base::Nanoseconds now = system_.now();
    const auto answered = wait(now > base::never - query_patience ? base::never : now + query_patience, [&] {
      if (check) check();
      const std::lock_guard lock(mutex_);
      const auto& gather = gathers_.at(key);
      if (gather.result || gather.arrived) return true;
      throw_if_cut(members);
      return false;
    });
    const std::lock_guard lock(mutex_);
    const auto& gather = gathers_.at(key);
    if (gather.result) return;
    if (answered == base::WaitResult::deadline) {
      throw Error(ErrorCode::deadline,
                  fmt::format("{}, which collects for all, does not answer over the control tree", name(members[0])),
                  "it, or a rank between, is stopped or cut off", members[0]);
    }
    throw missing(members, *gather.arrived);
  }

  Error missing(std::span<const int> members, std::span<const int> arrived) const {
    std::vector<std::string> names;
    int first = -1;
    for (const int member : members) {
      if (std::find(arrived.begin(), arrived.end(), member) != arrived.end()) continue;
      if (first < 0) first = member;
      names.push_back(name(member));
    }
    return Error(ErrorCode::deadline,
                 fmt::format("{} {} not called it within the deadline", fmt::join(names, ", "),
                             names.size() == 1 ? "has" : "have"),
                 "they are slow, stuck elsewhere, or run another program", first);
  }

  // mutex_ is held. Bytes go by members[0], so every rank on the way to it counts.
  void throw_if_cut(std::span<const int> members) const {
    for (const auto& [failed, why] : failed_) {
      const int rank = failed;
      if (std::any_of(members.begin(), members.end(), [&](int m) { return on_path(rank, members[0], m); })) {
        throw Error(ErrorCode::rank_failed, why, "look at its output", rank);
      }
    }
  }

  void check_members(std::span<const int> members) const {
    std::set<int> seen;
    for (const int member : members) {
      check_rank(member);
      if (!seen.insert(member).second) {
        throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is given twice as a member", member));
      }
    }
    if (!seen.contains(rank_)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("rank {} is not among the members {}", rank_, fmt::join(members, ", ")));
    }
  }
  void check_rank(int rank) const {
    if (rank < 0 || rank >= size_) {
      throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is not in 0 ... {}", rank, size_ - 1));
    }
  }
  static void check_type(std::uint32_t type) {
    if (type >= static_cast<std::uint32_t>(TreeFrame::first)) {
      throw Error(ErrorCode::invalid_argument, fmt::format("message type {:#x} is the control tree's own; use less "
                                                           "than 0x80000000",
                                                           type));
    }
  }

  // --- small things ------------------------------------------------------------------------------------------------

  template <class Ready>
  base::WaitResult wait(base::Nanoseconds deadline, Ready&& ready) {
    return base::wait_until(system_, *bell_, back_off, deadline, ready, [] {});
  }
  void notify() {
    if (bell_ != nullptr) base::ring(*bell_, system_);
  }
  const std::string& name(int rank) const { return describe_[static_cast<std::size_t>(rank)]; }

  base::System& system_;
  const int rank_;
  const int size_;
  const base::Nanoseconds heartbeat_;
  const std::vector<std::string> describe_;
  std::map<int, Neighbour> neighbours_;  // the map itself never changes after construction
  ControlHandlers handlers_;
  base::DoorbellWord* bell_ = nullptr;
  std::function<void()> wake_;
  base::Nanoseconds last_progress_ = base::never;  // the service thread's

  std::mutex spreading_;      // taken alone
  mutable std::mutex mutex_;  // all below; held for a few instructions, never while sending or calling out
  std::map<int, std::string> failed_;
  std::vector<ControlMessage> to_self_;
  GatherTable gathers_;
  std::set<int> left_;          // neighbours that said they leave
  std::set<int> subtree_left_;  // children below which everybody leaves
  bool leaving_ = false;
  bool said_goodbye_ = false;
  bool released_ = false;
  bool parent_gone_ = false;
  bool ended_ = false;
};

ControlTree::ControlTree(base::System& system, int rank, int size, std::map<int, std::unique_ptr<ControlLink>> links,
                         base::Nanoseconds heartbeat, std::vector<std::string> describe)
    : implementation_(
          std::make_unique<Implementation>(system, rank, size, std::move(links), heartbeat, std::move(describe))) {}
ControlTree::~ControlTree() = default;
void ControlTree::start(ControlHandlers handlers, base::DoorbellWord& bell, std::function<void()> wake) {
  implementation_->start(std::move(handlers), bell, std::move(wake));
}
int ControlTree::rank() const { return implementation_->rank(); }
int ControlTree::size() const { return implementation_->size(); }
void ControlTree::send(int destination, std::uint32_t type, std::uint64_t context, std::span<const std::byte> payload) {
  implementation_->send(destination, type, context, payload);
}
void ControlTree::flood(std::uint32_t type, std::uint64_t context, std::span<const std::byte> payload) {
  implementation_->flood(type, context, payload);
}
std::vector<std::vector<std::byte>> ControlTree::all_gather(std::uint64_t context, std::uint64_t sequence,
                                                            std::span<const int> members,
                                                            std::span<const std::byte> bytes,
                                                            base::Nanoseconds deadline,
                                                            const std::function<void()>& check) {
  return implementation_->all_gather(context, sequence, members, bytes, deadline, check);
}
bool ControlTree::leave(base::Nanoseconds deadline) { return implementation_->leave(deadline); }
void ControlTree::leave_with_error(const std::string& why) { implementation_->leave_with_error(why); }
base::Nanoseconds ControlTree::progress() { return implementation_->progress(); }

}  // namespace rondo::bootstrap
