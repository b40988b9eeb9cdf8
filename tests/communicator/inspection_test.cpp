// flight_record() and explain(): what they say must be so.
#include <nlohmann/json.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include "algorithms/registry.hpp"
#include "communicator/ranks.hpp"

namespace rondo {
namespace {

using nlohmann::json;

TEST(FlightRecord, IsJsonThatListsTheCollectivesInOrder) {
  with_ranks(2, [](Communicator& comm) {
    std::vector<float> data(12, 1);
    comm.all_reduce(std::span(data), ReduceOp::max);
    comm.broadcast(std::span(data).first(5), 1);
    comm.barrier();
    const json record = json::parse(comm.flight_record());
    EXPECT_EQ(record["communicator"], "world");
    EXPECT_EQ(record["rank"], comm.rank());
    EXPECT_EQ(record["size"], 2);
    EXPECT_TRUE(record["error"].is_null());
    const json& operations = record["operations"];
    ASSERT_EQ(operations.size(), 3U);
    EXPECT_EQ(operations[0]["collective"], "all_reduce");
    EXPECT_EQ(operations[0]["op"], "max");
    EXPECT_EQ(operations[0]["count"], 12);
    EXPECT_EQ(operations[0]["type"], "float32");
    EXPECT_EQ(operations[1]["collective"], "broadcast");
    EXPECT_EQ(operations[1]["root"], 1);
    EXPECT_EQ(operations[1]["count"], 5);
    EXPECT_EQ(operations[2]["collective"], "barrier");
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(operations[i]["sequence"], i + 1);
      EXPECT_EQ(operations[i]["state"], "completed");
      EXPECT_GT(operations[i]["began_ticks"], 0U);
    }
  });
}

TEST(FlightRecord, KeepsTheLast1024) {
  with_ranks(2, [](Communicator& comm) {
    for (int i = 0; i < 1100; ++i) comm.barrier();
    const json record = json::parse(comm.flight_record());
    ASSERT_EQ(record["operations"].size(), 1024U);
    EXPECT_EQ(record["operations"].front()["sequence"], 77);
    EXPECT_EQ(record["operations"].back()["sequence"], 1100);
  });
}

TEST(FlightRecord, TellsARunningFromAFailedOperation) {
  std::atomic<bool> looked{false};
  with_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      while (!looked.load()) std::this_thread::yield();
      comm.abort("a \"quoted\"\treason\n\\ with all kinds of characters");
      return;
    }
    const Stream stream;
    std::vector<float> data(3);
    comm.all_reduce(std::span(data), {}, {&stream, {}});
    EXPECT_EQ(json::parse(comm.flight_record())["operations"][0]["state"], "running");
    looked.store(true);
    EXPECT_EQ(code_of([&] { stream.synchronize(); }), ErrorCode::aborted);
    const json record = json::parse(comm.flight_record());
    EXPECT_EQ(record["operations"][0]["state"], "failed");
    EXPECT_NE(record["error"].get<std::string>().find("a \"quoted\"\treason\n\\ with"), std::string::npos);
  });
}

TEST(FlightRecord, EscapesTheName) {
  Config config = test_config();
  config.name = "a \"name\" \\";
  with_ranks(
      1, [](Communicator& comm) { EXPECT_EQ(json::parse(comm.flight_record())["communicator"], "a \"name\" \\"); },
      config);
}

TEST(FlightRecord, MayBeTakenByAnotherThreadAtAnyTime) {
  with_ranks(2, [](Communicator& comm) {
    std::atomic<bool> stop{false};
    std::thread reader([&] {
      while (!stop.load()) {
        const json record = json::parse(comm.flight_record());
        std::uint64_t last = 0;
        for (const json& operation : record["operations"]) {
          EXPECT_GT(operation["sequence"].get<std::uint64_t>(), last);
          last = operation["sequence"].get<std::uint64_t>();
          EXPECT_TRUE(operation["collective"] == "all_reduce" || operation["collective"] == "barrier");
        }
      }
    });
    std::vector<float> data(10);
    for (int i = 0; i < 300; ++i) {
      comm.all_reduce(std::span(data));
      comm.barrier();
    }
    stop.store(true);
    reader.join();
  });
}

TEST(Explain, HasALineForEachCandidateAndNamesTheChosen) {
  with_ranks(2, [](Communicator& comm) {
    for (int c = 0; c < static_cast<int>(Collective::barrier); ++c) {
      const auto collective = static_cast<Collective>(c);
      const std::string text = comm.explain(collective, 1000, DataType::float32);
      std::size_t chosen = 0, at = 0;
      while ((at = text.find("chosen", at)) != std::string::npos) ++chosen, ++at;
      EXPECT_EQ(chosen, 1U) << text;
      for (const auto& a : algorithms::all()) {
        if (a.collective == collective) {
          EXPECT_NE(text.find(a.name), std::string::npos) << text;
        }
      }
    }
  });
}

TEST(Explain, NamesThePinnedAlgorithmInItsRangeOnly) {
  with_ranks(
      4,
      [](Communicator& comm) {
        const std::string small = comm.explain(Collective::all_reduce, 100, DataType::float32);
        const std::string large = comm.explain(Collective::all_reduce, 100000, DataType::float32);
        EXPECT_EQ(small.find("pinned"), std::string::npos) << small;
        const std::size_t ring = large.find("ring");
        ASSERT_NE(ring, std::string::npos);
        EXPECT_NE(large.substr(ring, large.find('\n', ring) - ring).find("chosen: pinned"), std::string::npos) << large;
      },
      pinned("all_reduce:4k-inf=ring"));
}

}  // namespace
}  // namespace rondo
