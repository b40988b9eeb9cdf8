// What neighbours send to rank 1 of a control tree of 22: frames, each as its neighbour (1), its length (2), its bytes.
#include "bootstrap/control_tree.hpp"

#include "bootstrap/control_frame.hpp"
#include "harness/target.hpp"

#include <array>
#include <deque>
#include <set>

namespace rondo::fuzz {
namespace {

using namespace bootstrap;

constexpr int ranks = 22;
constexpr int own_rank = 1;
constexpr std::array<int, 5> neighbours = {0, 5, 6, 7, 8};

class Link final : public ControlLink {
 public:
  explicit Link(std::deque<Bytes>& incoming) : incoming_(incoming) {}
  void send(std::span<const std::byte> frame) override {
    const ControlFrame sent = decode_control_frame(frame, ranks);  // throws, and so ends the program, if it is none
    require(same(encode(sent), frame), "a frame is what its parts encode to");
  }
  std::optional<Bytes> receive() override {
    if (incoming_.empty()) return std::nullopt;
    Bytes frame = std::move(incoming_.front());
    incoming_.pop_front();
    return frame;
  }
  bool closed() const override { return false; }
  std::string why() const override { return {}; }

 private:
  std::deque<Bytes>& incoming_;
};

// Time passes only for who waits.
class Clock final : public base::System {
 public:
  base::Nanoseconds now() const override { return time_; }
  void yield() override {}
  void futex_wait(std::atomic<std::uint32_t>&, std::uint32_t, base::Nanoseconds limit) override { time_ += limit; }
  void futex_wake(std::atomic<std::uint32_t>&) override {}
  std::unique_ptr<base::SystemThread> start_thread(std::string, std::function<void()>) override { return nullptr; }
  bool heavy_barrier() override { return true; }
  std::uint32_t spin_limit() const override { return 0; }

 private:
  base::Nanoseconds time_ = 1'000'000'000;
};

class Conversation {
 public:
  void add(std::size_t neighbour, int source, int destination, std::uint32_t type, const Bytes& payload) {
    const Bytes frame = encode(ControlFrame{type, 1, source, destination, payload});
    writer_.put(static_cast<std::uint8_t>(neighbour)).put(static_cast<std::uint16_t>(frame.size())).put_raw(frame);
  }
  Bytes take() { return writer_.take(); }

 private:
  base::ByteWriter writer_;
};

std::uint32_t number(TreeFrame type) { return static_cast<std::uint32_t>(type); }

}  // namespace

std::vector<Bytes> seeds() {
  base::ByteWriter sequence;
  sequence.put(std::uint64_t{1});
  base::ByteWriter part;
  part.put(std::uint64_t{1}).put_raw(bytes_of("part"));
  base::ByteWriter result;
  result.put(std::uint64_t{2}).put(std::uint32_t{2}).put_bytes(bytes_of("zero")).put_bytes(bytes_of("one"));
  base::ByteWriter answer;
  answer.put(std::uint64_t{2}).put(std::uint32_t{1}).put(std::int32_t{0});
  base::ByteWriter failed;
  failed.put(std::int32_t{9}).put_string("rank 9 closed its connection");
  Conversation talk;
  talk.add(1, 5, own_rank, number(TreeFrame::heartbeat), {});
  talk.add(1, 5, to_everybody, 3, bytes_of("to all"));
  talk.add(2, 6, 12, 3, bytes_of("through"));
  talk.add(0, 9, own_rank, 1, bytes_of("from afar"));
  Conversation gather;
  for (const int member : {5, 0}) {
    gather.add(member == 0 ? 0 : 1, member, own_rank, number(TreeFrame::gather_part), part.bytes());
  }
  gather.add(1, 5, own_rank, number(TreeFrame::gather_query), sequence.bytes());
  gather.add(0, 0, own_rank, number(TreeFrame::gather_answer), answer.bytes());
  gather.add(0, 0, own_rank, number(TreeFrame::gather_result), result.bytes());
  Conversation end;
  end.add(0, 9, to_everybody, number(TreeFrame::failed), failed.bytes());
  for (std::size_t i = 1; i < neighbours.size(); ++i) {
    end.add(i, neighbours[i], own_rank, number(TreeFrame::leaving), {});
    end.add(i, neighbours[i], own_rank, number(TreeFrame::subtree_left), {});
  }
  end.add(0, 0, own_rank, number(TreeFrame::leaving), {});
  end.add(0, 0, own_rank, number(TreeFrame::release), {});
  return {talk.take(), gather.take(), end.take()};
}

bool parse(std::span<const std::byte> input) {
  std::array<std::deque<Bytes>, neighbours.size()> incoming;
  std::map<int, std::unique_ptr<ControlLink>> links;
  for (std::size_t i = 0; i < neighbours.size(); ++i) links[neighbours[i]] = std::make_unique<Link>(incoming[i]);
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back("rank " + std::to_string(rank));

  Clock clock;
  base::DoorbellWord bell;
  std::set<int> failed;
  bool malformed = false;
  ControlTree tree(clock, own_rank, ranks, std::move(links), 10'000'000'000, names);
  ControlHandlers handlers;
  handlers.on_message = [](const ControlMessage& message) {
    require(message.type < number(TreeFrame::first), "the tree's own frames stay with it");
    require(message.source >= 0 && message.source < ranks && message.source != own_rank,
            "a message is of another rank");
  };
  handlers.on_rank_failed = [&](int rank, const std::string& why) {
    require(rank >= 0 && rank < ranks && !why.empty(), "who fails is a rank, for a reason");
    require(failed.insert(rank).second, "a rank fails once");
    malformed = malformed || why.find("no control frame") != std::string::npos;
  };
  tree.start(std::move(handlers), bell, [] {});

  Cutter cut(input);
  while (!cut.rest().empty()) {
    auto& queue = incoming[cut.byte() % neighbours.size()];
    const auto frame = cut.take(cut.two_bytes());
    queue.emplace_back(frame.begin(), frame.end());
    tree.progress();
  }
  const std::array<int, 3> collected = {own_rank, 0, 5};
  const std::array<int, 2> contributed = {0, own_rank};
  accepts(
      [&] {
        const auto parts = tree.all_gather(1, 1, collected, bytes_of("own"), clock.now(), {});
        require(parts.size() == collected.size() && same(parts[0], bytes_of("own")),
                "a part of every member, in order");
      },
      {ErrorCode::deadline, ErrorCode::rank_failed});
  accepts(
      [&] {
        const auto parts = tree.all_gather(1, 2, contributed, bytes_of("own"), clock.now(), {});
        require(parts.size() == contributed.size(), "a part of every member");
      },
      {ErrorCode::deadline, ErrorCode::rank_failed, ErrorCode::mismatch});
  tree.leave(clock.now());
  return !malformed;
}

}  // namespace rondo::fuzz
