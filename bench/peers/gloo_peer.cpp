// Gloo over TCP as a measured library: gloo_peer DIRECTORY RANK SIZE, once for each rank. The ranks meet through files
// in DIRECTORY/store.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "bench/peers/peer.hpp"

namespace {

// Names one of Gloo's overloads.
using Function = void (*)(void*, const void*, const void*, std::size_t);

class GlooPeer final : public rondo::peers::Peer {
 public:
  GlooPeer(const std::string& directory, int rank, int size)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(address);
    gloo::rendezvous::FileStore store(directory + "/store");
    context_->connectFullMesh(store, device);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  double maximum(double value) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(&value, 1);
    options.setReduceFunction(static_cast<Function>(&gloo::max<double>));
    gloo::allreduce(options);
    return value;
  }
  bool supports(std::string_view collective) const override {
    return collective != "reduce_scatter";  // this version of Gloo has none
  }
  void run(const rondo::peers::Call& call) override {
    // Gloo takes inputs by mutable pointer and leaves them as they are.
    float* const input = const_cast<float*>(call.input);
    const std::size_t all = call.count * static_cast<std::size_t>(size());
    if (call.collective == "all_reduce") {
      gloo::AllreduceOptions options(context_);
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      options.setInput(input, call.count);
      options.setOutput(call.output, call.count);
      options.setReduceFunction(static_cast<Function>(&gloo::sum<float>));
      gloo::allreduce(options);
    } else if (call.collective == "all_gather") {
      gloo::AllgatherOptions options(context_);
      options.setInput(input, call.count);
      options.setOutput(call.output, all);
      gloo::allgather(options);
    } else if (call.collective == "broadcast") {
      gloo::BroadcastOptions options(context_);
      options.setOutput(call.output, call.count);
      options.setRoot(0);
      gloo::broadcast(options);
    } else if (call.collective == "reduce") {
      gloo::ReduceOptions options(context_);
      options.setInput(input, call.count);
      options.setOutput(call.output, call.count);
      options.setReduceFunction(static_cast<Function>(&gloo::sum<float>));
      options.setRoot(0);
      gloo::reduce(options);
    } else {
      gloo::AlltoallOptions options(context_);
      options.setInput(input, all);
      options.setOutput(call.output, all);
      gloo::alltoall(options);
    }
  }
  float* allocate(std::size_t count) override {
    memory_ = std::make_unique<float[]>(count);
    return memory_.get();
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::unique_ptr<float[]> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: gloo_peer DIRECTORY RANK SIZE; run.py starts it\n", stderr);
    return 2;
  }
  try {
    GlooPeer peer(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
    rondo::peers::serve(peer, argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_peer: %s\n", error.what());
    return 3;
  }
}
