// An MPI library (Open MPI) as a measured library: mpirun -n 2 mpi_peer DIRECTORY.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "bench/peers/peer.hpp"

namespace {

class MpiPeer final : public rondo::peers::Peer {
 public:
  MpiPeer(int* argc, char*** argv) {
    MPI_Init(argc, argv);  // errors are fatal by MPI's default, with its message
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiPeer() override { MPI_Finalize(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  double maximum(double value) override {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  }
  bool supports(std::string_view) const override { return true; }
  void run(const rondo::peers::Call& call) override {
    const int count = static_cast<int>(call.count);
    if (call.collective == "all_reduce") {
      MPI_Allreduce(call.input, call.output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (call.collective == "all_gather") {
      MPI_Allgather(call.input, count, MPI_FLOAT, call.output, count, MPI_FLOAT, MPI_COMM_WORLD);
    } else if (call.collective == "reduce_scatter") {
      MPI_Reduce_scatter_block(call.input, call.output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (call.collective == "broadcast") {
      MPI_Bcast(call.output, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    } else if (call.collective == "reduce") {
      MPI_Reduce(call.input, call.output, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    } else {
      MPI_Alltoall(call.input, count, MPI_FLOAT, call.output, count, MPI_FLOAT, MPI_COMM_WORLD);
    }
  }
  float* allocate(std::size_t count) override {
    memory_ = std::make_unique<float[]>(count);
    return memory_.get();
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  std::unique_ptr<float[]> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: mpi_peer DIRECTORY; run.py starts it\n", stderr);
    return 2;
  }
  MpiPeer peer(&argc, &argv);
  try {
    rondo::peers::serve(peer, argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_peer: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 3;
  }
}
