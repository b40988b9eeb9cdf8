// Ranks of which one calls something else: mismatched_ranks KIND RANK. Each rank prints
// "FAILED <ms since the call> <code> <text>" and exits with 3 once its communicator has failed; 0 if it never does.
#include <rondo/rondo.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t usual = 1024;
constexpr std::size_t large = 300'000;  // another algorithm than `usual`

struct Calls {
  rondo::Communicator& world;
  std::vector<float> input = std::vector<float>(large * 8, 1.0F);
  std::vector<float> output = std::vector<float>(large * 8);

  void all_reduce(std::size_t count, rondo::DataType type, rondo::ReduceOp op) {
    world.all_reduce(input.data(), output.data(), count, type, op);
  }
  void all_to_all_v(bool differs) {  // sends one element less to the next rank than that expects
    const auto size = static_cast<std::size_t>(world.size());
    const std::vector<std::size_t> counts(size, usual);
    std::vector<std::size_t> sent = counts;
    if (differs) --sent[(static_cast<std::size_t>(world.rank()) + 1) % size];
    std::vector<std::size_t> at(size);
    for (std::size_t r = 0; r < size; ++r) at[r] = r * usual;
    world.all_to_all_v(input.data(), sent, at, output.data(), counts, at, rondo::DataType::float32);
  }
  void all_gather() { world.all_gather(input.data(), output.data(), usual, rondo::DataType::float32); }

  void run(const std::string& kind, bool differs) {
    using rondo::DataType;
    using rondo::ReduceOp;
    if (kind == "operation") {
      if (differs) all_gather();
      else all_reduce(usual, DataType::float32, ReduceOp::sum);
    } else if (kind == "count") {
      all_reduce(differs ? usual - 1 : usual, DataType::float32, ReduceOp::sum);
    } else if (kind == "algorithm") {
      all_reduce(differs ? large : 1, DataType::float32, ReduceOp::sum);
    } else if (kind == "type") {
      all_reduce(usual, differs ? DataType::int32 : DataType::float32, ReduceOp::sum);
    } else if (kind == "op") {
      all_reduce(usual, DataType::float32, differs ? ReduceOp::max : ReduceOp::sum);
    } else if (kind == "root") {
      world.broadcast(input.data(), output.data(), usual, DataType::float32, differs ? 1 : 0);
    } else if (kind == "reduce_root") {
      world.reduce(input.data(), output.data(), usual, DataType::float32, ReduceOp::sum, differs ? 1 : 0);
    } else if (kind == "order") {
      if (differs) all_gather();
      all_reduce(usual, DataType::float32, ReduceOp::sum);
      if (!differs) all_gather();
    } else if (kind == "close") {
      if (differs) world.close();
      all_reduce(usual, DataType::float32, ReduceOp::sum);
    } else if (kind == "end") {
      if (differs) throw std::runtime_error("this rank ends as if all were well");
      all_reduce(usual, DataType::float32, ReduceOp::sum);
    } else if (kind == "uneven") {
      all_to_all_v(differs);
    } else {
      std::fprintf(stderr, "there is no kind %s\n", kind.c_str());
      std::exit(2);
    }
    // A rank that gave its part may be through: it learns with its next call.
    world.barrier();
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  rondo::Communicator world = rondo::Communicator::from_environment();
  Calls calls{world};
  auto began = std::chrono::steady_clock::now();
  try {
    // The others' error may reach a rank that is still in here.
    calls.all_reduce(usual, rondo::DataType::float32, rondo::ReduceOp::sum);
    began = std::chrono::steady_clock::now();
    calls.run(argv[1], world.rank() == std::atoi(argv[2]));
    world.close();  // a rank that only had to send learns of the others' error here
  } catch (const rondo::Error& error) {
    const auto passed = std::chrono::steady_clock::now() - began;
    std::printf("FAILED %lld %s %s\n",
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()),
                std::string(name_of(error.code())).c_str(), error.what());
    std::fflush(stdout);
    return 3;
  } catch (const std::runtime_error&) {
  }
  return 0;
}
