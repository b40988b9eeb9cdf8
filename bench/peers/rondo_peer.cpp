// Rondo as a measured library: rondo run -n 2 -- rondo_peer DIRECTORY [windows].
#include <rondo/communicator.hpp>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "bench/peers/peer.hpp"

namespace {

using rondo::DataType;
using rondo::ReduceOp;

class RondoPeer final : public rondo::peers::Peer {
 public:
  explicit RondoPeer(bool windows) : communicator_(rondo::Communicator::from_environment()), windows_(windows) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  void barrier() override { communicator_.barrier(); }
  double maximum(double value) override {
    communicator_.all_reduce(std::span(&value, 1), ReduceOp::max);
    return value;
  }
  bool supports(std::string_view) const override { return true; }
  void run(const rondo::peers::Call& call) override {
    constexpr DataType type = DataType::float32;
    if (call.collective == "all_reduce") {
      communicator_.all_reduce(call.input, call.output, call.count, type);
    } else if (call.collective == "all_gather") {
      communicator_.all_gather(call.input, call.output, call.count, type);
    } else if (call.collective == "reduce_scatter") {
      communicator_.reduce_scatter(call.input, call.output, call.count, type);
    } else if (call.collective == "broadcast") {
      communicator_.broadcast(call.output, call.output, call.count, type, 0);
    } else if (call.collective == "reduce") {
      communicator_.reduce(call.input, call.output, call.count, type, ReduceOp::sum, 0);
    } else {
      communicator_.all_to_all(call.input, call.output, call.count, type);
    }
  }
  float* allocate(std::size_t count) override {
    if (windows_) {
      window_ = communicator_.allocate<float>(count);
      return window_.data();
    }
    plain_ = std::make_unique<float[]>(count);
    return plain_.get();
  }
  void close() { communicator_.close(); }

 private:
  rondo::Communicator communicator_;
  bool windows_;
  rondo::Window<float> window_;
  std::unique_ptr<float[]> plain_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: rondo_peer DIRECTORY [windows]; run.py starts it\n", stderr);
    return 2;
  }
  try {
    RondoPeer peer(argc > 2 && std::strcmp(argv[2], "windows") == 0);
    rondo::peers::serve(peer, argv[1]);
    peer.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo_peer: %s\n", error.what());
    return 3;
  }
}
