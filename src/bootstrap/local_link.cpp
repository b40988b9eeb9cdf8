#include "bootstrap/local_link.hpp"

#include <deque>
#include <mutex>

namespace rondo::bootstrap {
namespace {

struct Pipe {
  std::mutex mutex;
  std::deque<std::vector<std::byte>> frames;
  bool closed = false;
  std::function<void()> wake;  // cleared when the receiver goes
};

class LocalLink final : public ControlLink {
 public:
  LocalLink(std::shared_ptr<Pipe> out, std::shared_ptr<Pipe> in) : out_(std::move(out)), in_(std::move(in)) {}
  ~LocalLink() override {
    {
      const std::lock_guard lock(in_->mutex);
      in_->wake = nullptr;
      in_->frames.clear();
    }
    const std::lock_guard lock(out_->mutex);
    out_->closed = true;
    if (out_->wake) out_->wake();
  }
  void send(std::span<const std::byte> frame) override {
    const std::lock_guard lock(out_->mutex);
    if (!out_->wake) return;
    out_->frames.emplace_back(frame.begin(), frame.end());
    out_->wake();
  }
  std::optional<std::vector<std::byte>> receive() override {
    const std::lock_guard lock(in_->mutex);
    if (in_->frames.empty()) return std::nullopt;
    std::vector<std::byte> frame = std::move(in_->frames.front());
    in_->frames.pop_front();
    return frame;
  }
  bool closed() const override {
    const std::lock_guard lock(in_->mutex);
    return in_->closed && in_->frames.empty();
  }
  std::string why() const override { return "the rank ended"; }

 private:
  std::shared_ptr<Pipe> out_, in_;
};

}  // namespace

std::pair<std::unique_ptr<ControlLink>, std::unique_ptr<ControlLink>> make_local_links(
    std::function<void()> wake_first, std::function<void()> wake_second) {
  const auto to_first = std::make_shared<Pipe>();
  const auto to_second = std::make_shared<Pipe>();
  to_first->wake = std::move(wake_first);
  to_second->wake = std::move(wake_second);
  return {std::make_unique<LocalLink>(to_second, to_first), std::make_unique<LocalLink>(to_first, to_second)};
}

}  // namespace rondo::bootstrap
