// The recorder under a reader, and signatures.
#include "engine/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "engine/communicator_state.hpp"

namespace rondo::engine {
namespace {

Signature signature_of(std::uint64_t sequence) {
  Signature s;
  s.sequence = sequence;
  s.collective = static_cast<Collective>(sequence % 5);
  s.type = static_cast<DataType>(sequence % 12);
  s.op = static_cast<ReduceOp>(sequence % 9);
  s.root = static_cast<std::int32_t>(sequence % 7) - 1;
  s.count = sequence * 3;
  return s;
}

TEST(FlightRecorder, GivesBackWhatWasRecorded) {
  FlightRecorder recorder;
  EXPECT_EQ(recorder.last(), 0U);
  EXPECT_TRUE(recorder.all().empty());
  EXPECT_FALSE(recorder.find(0));
  for (std::uint64_t n = 1; n <= 20; ++n) recorder.begin(signature_of(n), n * 11);
  recorder.end(5, false, false);
  recorder.end(6, true, false);
  recorder.end(7, false, true);
  recorder.end(8, true, true);
  EXPECT_EQ(recorder.last(), 20U);
  ASSERT_EQ(recorder.all().size(), 20U);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    const auto record = recorder.find(n);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->signature, signature_of(n));
    EXPECT_EQ(record->kind, n * 11);
    EXPECT_EQ(record->state, n == 5 || n == 7   ? RecordState::completed
                             : n == 6 || n == 8 ? RecordState::failed
                                                : RecordState::running);
    if (n == 7 || n == 8) {
      EXPECT_GE(record->ended, record->began);
    }
  }
  EXPECT_FALSE(recorder.find(21));
}

TEST(FlightRecorder, KeepsAsManyAsItsCapacity) {
  FlightRecorder recorder;
  for (std::uint64_t n = 1; n <= FlightRecorder::capacity + 10; ++n) recorder.begin(signature_of(n), 0);
  EXPECT_FALSE(recorder.find(10));
  EXPECT_TRUE(recorder.find(11));
  EXPECT_EQ(recorder.all().size(), FlightRecorder::capacity);
  EXPECT_EQ(recorder.all().front().signature.sequence, 11U);
}

// A reader of an entry that is being overwritten gets nothing rather than a mixture.
TEST(FlightRecorder, ReadersNeverSeeAMixture) {
  FlightRecorder recorder;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> seen{0};
  std::thread reader([&] {
    while (!stop.load() || seen.load() == 0) {
      const std::uint64_t last = recorder.last();
      for (const std::uint64_t n : {last, last > 1000 ? last - 1000 : last, last > 1023 ? last - 1023 : last})
        if (const auto record = recorder.find(n)) {
          EXPECT_EQ(record->signature, signature_of(n));
          EXPECT_EQ(record->kind, n);
          ++seen;
        }
    }
  });
  for (std::uint64_t n = 1; n <= 200000; ++n) {
    recorder.begin(signature_of(n), n);
    recorder.end(n, false, false);
  }
  stop.store(true);
  reader.join();
}

TEST(Signatures, HashTellsApartWhatRanksMustAgreeOn) {
  std::set<std::uint64_t> hashes;
  Signature s;
  s.count = 100;
  hashes.insert(hash_of_kind(s));
  Signature changed = s;
  changed.collective = Collective::broadcast;
  hashes.insert(hash_of_kind(changed));
  changed = s, changed.type = DataType::float32;
  hashes.insert(hash_of_kind(changed));
  changed = s, changed.op = ReduceOp::max;
  hashes.insert(hash_of_kind(changed));
  changed = s, changed.root = 0;
  hashes.insert(hash_of_kind(changed));
  changed = s, changed.count = 101;
  hashes.insert(hash_of_kind(changed));
  EXPECT_EQ(hashes.size(), 6U);
  changed = s, changed.sequence = 9;
  EXPECT_EQ(hash_of_kind(changed), hash_of_kind(s));
  EXPECT_NE(slot_signature(hash_of_kind(s), 1), slot_signature(hash_of_kind(s), 2));
}

TEST(Signatures, DescribeSaysWhatMatters) {
  Signature s;
  s.sequence = 17;
  s.type = DataType::float32;
  s.count = 1024;
  EXPECT_EQ(describe(s), "all_reduce #17 (1024 x float32, sum)");
  s.collective = Collective::broadcast;
  s.root = 3;
  EXPECT_EQ(describe(s), "broadcast #17 (1024 x float32, root 3)");
  s.collective = Collective::barrier;
  EXPECT_EQ(describe(s), "barrier #17");
}

TEST(CommunicatorState, TheFirstErrorWins) {
  CommunicatorState state(1, "c", {4, 5, 6}, 1);
  EXPECT_FALSE(state.poisoned());
  EXPECT_TRUE(state.poison(Error(ErrorCode::aborted, "first")));
  EXPECT_FALSE(state.poison(Error(ErrorCode::deadline, "second")));
  EXPECT_TRUE(state.poisoned());
  EXPECT_EQ(state.error().message(), "first");
  EXPECT_EQ(state.rank_of_world(6), 2);
  EXPECT_EQ(state.rank_of_world(1), -1);
}

// After a claim no other error counts, but nothing ends before it is published.
TEST(CommunicatorState, AClaimIsNotYetPoison) {
  CommunicatorState state(1, "c", {0}, 0);
  EXPECT_TRUE(state.claim(Error(ErrorCode::aborted, "first")));
  EXPECT_FALSE(state.poisoned());
  EXPECT_FALSE(state.poison(Error(ErrorCode::deadline, "second")));
  EXPECT_FALSE(state.poisoned());
  state.publish();
  EXPECT_TRUE(state.poisoned());
  EXPECT_EQ(state.error().message(), "first");
}

}  // namespace
}  // namespace rondo::engine
