// The simulation's control links: frames arrive in order after random delays; a link closes when its other end is
// destroyed or its other rank is isolated.
#include "transports/sim/sim_network.hpp"

#include <algorithm>

namespace rondo::transport::sim {
namespace {

// One direction.
struct Pipe {
  int from;
  int to;
  std::function<void()> wake;  // empty once the receiving end is gone
  std::deque<std::vector<std::byte>> arrived;
  Nanoseconds last = 0;  // when the newest frame arrives
  bool ended = false;    // nothing more is sent
  bool closed = false;   // and the receiver knows
};

void close_later(SimNetwork& network, const std::shared_ptr<Pipe>& pipe, Nanoseconds delay) {
  if (pipe->ended) return;
  pipe->ended = true;
  const Nanoseconds now = network.scheduler().now();
  network.scheduler().after(std::max(pipe->last - now, delay), [pipe] {
    pipe->closed = true;
    if (pipe->wake) pipe->wake();
  });
}

class SimLink final : public bootstrap::ControlLink {
 public:
  SimLink(SimNetwork& network, std::shared_ptr<Pipe> out, std::shared_ptr<Pipe> in)
      : network_(network), out_(std::move(out)), in_(std::move(in)) {}
  ~SimLink() override {
    in_->wake = nullptr;
    close_later(network_, out_, network_.delay());
  }
  void send(std::span<const std::byte> frame) override {
    if (out_->ended || network_.isolated(out_->from)) return;
    Scheduler& scheduler = network_.scheduler();
    out_->last = std::max(out_->last, scheduler.now() + network_.delay());
    scheduler.after(out_->last - scheduler.now(),
                    [pipe = out_, copy = std::vector<std::byte>(frame.begin(), frame.end())]() mutable {
                      if (!pipe->wake) return;
                      pipe->arrived.push_back(std::move(copy));
                      pipe->wake();
                    });
  }
  std::optional<std::vector<std::byte>> receive() override {
    if (in_->arrived.empty()) return std::nullopt;
    std::vector<std::byte> frame = std::move(in_->arrived.front());
    in_->arrived.pop_front();
    return frame;
  }
  bool closed() const override { return in_->closed && in_->arrived.empty(); }
  std::string why() const override { return "the rank ended"; }

 private:
  SimNetwork& network_;
  std::shared_ptr<Pipe> out_, in_;
};

}  // namespace

std::pair<std::unique_ptr<bootstrap::ControlLink>, std::unique_ptr<bootstrap::ControlLink>> make_sim_links(
    SimNetwork& network, int a, std::function<void()> wake_a, int b, std::function<void()> wake_b) {
  auto to_b = std::make_shared<Pipe>(Pipe{a, b, std::move(wake_b), {}});
  auto to_a = std::make_shared<Pipe>(Pipe{b, a, std::move(wake_a), {}});
  network.on_isolate([&network, a, b, to_a, to_b](int rank) {
    if (rank != a && rank != b) return;
    for (const auto& pipe : {to_a, to_b})
      close_later(network, pipe, network.scheduler().random().between(1000, network.options().most_close_delay));
  });
  return {std::make_unique<SimLink>(network, to_b, to_a), std::make_unique<SimLink>(network, to_a, to_b)};
}

}  // namespace rondo::transport::sim
