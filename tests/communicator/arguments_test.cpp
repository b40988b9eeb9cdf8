// Arguments that can be judged alone are refused at once, and the communicator stays usable.
#include <cstdint>
#include <limits>
#include <vector>

#include "communicator/ranks.hpp"

namespace rondo {
namespace {

// Every rank makes the same wrong call, then a right one.
template <class Call>
void expect_refused(Call call, const char* says, int n = 3) {
  with_ranks(n, [&](Communicator& comm) {
    std::vector<std::int32_t> room(256);
    std::string text;
    EXPECT_EQ(code_of([&] { call(comm, room.data()); }, &text), ErrorCode::invalid_argument) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
    std::vector<std::int32_t> data(7, 1);
    comm.all_reduce(std::span(data));
    EXPECT_EQ(data, std::vector<std::int32_t>(7, n));
  });
}

TEST(Arguments, NullBuffers) {
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(nullptr, d, 4, DataType::int32); }, "null");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(d, nullptr, 4, DataType::int32); }, "null");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_gather(d, nullptr, 4, DataType::int32); }, "output");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_to_all(nullptr, d, 4, DataType::int32); }, "input");
}

TEST(Arguments, OverlappingBuffersOtherThanTheInPlaceForm) {
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(d, d + 1, 4, DataType::int32); }, "overlap");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_gather(d + 1, d, 4, DataType::int32); }, "overlap");
  expect_refused(
      [](Communicator& c, std::int32_t* d) { c.reduce_scatter(d, d + 4 * c.rank() + 1, 4, DataType::int32); },
      "in-place form");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_to_all(d + 4, d, 4, DataType::int32); }, "overlap");
  // Adjacent is not overlapping.
  with_ranks(2, [](Communicator& comm) {
    std::vector<std::int32_t> d(8, 1);
    comm.all_reduce(d.data(), d.data() + 4, 4, DataType::int32);
    EXPECT_EQ(d[3], 1);
    EXPECT_EQ(d[4], 2);
  });
}

TEST(Arguments, Roots) {
  expect_refused([](Communicator& c, std::int32_t* d) { c.broadcast(d, d, 4, DataType::int32, 3); }, "use 0 to 2");
  expect_refused([](Communicator& c, std::int32_t* d) { c.broadcast(d, d, 4, DataType::int32, -1); }, "root -1");
  expect_refused([](Communicator& c, std::int32_t* d) { c.reduce(d, d, 4, DataType::int32, {}, 17); }, "root 17");
  expect_refused([](Communicator& c, std::int32_t* d) { c.gather(d, d + 16, 4, DataType::int32, 3); }, "root 3");
  expect_refused([](Communicator& c, std::int32_t* d) { c.scatter(d, d + 16, 4, DataType::int32, 3); }, "root 3");
}

TEST(Arguments, TypesAndOperatorsThatDoNotExist) {
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, 4, static_cast<DataType>(12)); }, "type 12");
  expect_refused(
      [](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, 4, DataType::int32, static_cast<ReduceOp>(9)); },
      "operator 9");
  expect_refused([](Communicator& c, std::int32_t* d) { c.broadcast(d, d, 4, static_cast<DataType>(255), 0); },
                 "DataType");
}

TEST(Arguments, OperatorsThatTheTypeDoesNotHave) {
  for (const ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor})
    for (const DataType type : {DataType::float16, DataType::float32, DataType::float8_e5m2})
      expect_refused([=](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, 4, type, op); }, "integers");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, 4, DataType::int32, scaled_sum(2)); },
                 "floating-point");
}

TEST(Arguments, CountsThatFitNoAddressSpace) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, most, DataType::int32); }, "address space");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, most / 4, DataType::int32); },
                 "address space");
  expect_refused([](Communicator& c, std::int32_t* d) { c.all_gather(d, d + 64, most / 2, DataType::int8); },
                 "address space");
  expect_refused([](Communicator& c, std::int32_t* d) { c.reduce_scatter(d, d, most, DataType::int8); },
                 "address space");
}

TEST(Arguments, NegativeDeadlines) {
  const CallOptions negative{nullptr, std::chrono::nanoseconds(-5)};
  expect_refused([&](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, 4, DataType::int32, {}, negative); },
                 "negative");
  const Stream stream;
  const CallOptions queued{&stream, std::chrono::nanoseconds(-5)};
  expect_refused([&](Communicator& c, std::int32_t* d) { c.all_reduce(d, d, 4, DataType::int32, {}, queued); },
                 "negative", 1);
  expect_refused([&](Communicator& c, std::int32_t*) { c.barrier(negative); }, "negative");
}

TEST(Arguments, WindowsOfZeroBytes) {
  expect_refused([](Communicator& c, std::int32_t*) { c.allocate<float>(0); }, "0 bytes");
}

TEST(Arguments, ConfigurationsThatAreMalformed) {
  const auto refused = [](auto change, const char* says) {
    Config config;
    change(config);
    std::string text;
    EXPECT_EQ(code_of([&] { Communicator::create_local(2, config); }, &text), ErrorCode::configuration) << text;
    EXPECT_NE(text.find(says), std::string::npos) << text;
  };
  refused([](Config& c) { c.algorithm = "all_reduce:0-inf=magic"; }, "magic");
  refused([](Config& c) { c.deadline = std::chrono::nanoseconds(-1); }, "RONDO_DEADLINE");
  refused([](Config& c) { c.transports = "pigeon"; }, "pigeon");
  refused([](Config& c) { c.fifo_bytes = 3; }, "RONDO_FIFO_BYTES");
  refused([](Config& c) { c.tcp_channels = 0; }, "RONDO_TCP_CHANNELS");
}

}  // namespace
}  // namespace rondo
