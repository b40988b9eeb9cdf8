#include "engine/flight_recorder.hpp"

namespace rondo::engine {

std::optional<Record> FlightRecorder::find(std::uint64_t sequence) const {
  const Entry& e = entries_[sequence % capacity];
  if (sequence == 0 || e.stamp.load(std::memory_order_acquire) != sequence) return std::nullopt;
  std::uint64_t w[6];
  for (int i = 0; i < 6; ++i) w[i] = e.words[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with begin()'s fence
  if (e.stamp.load(std::memory_order_relaxed) != sequence) return std::nullopt;
  Record r;
  r.signature.sequence = sequence;
  r.signature.collective = static_cast<Collective>(w[0] & 0xFFU);
  r.signature.type = static_cast<DataType>(w[0] >> 8 & 0xFFU);
  r.signature.op = static_cast<ReduceOp>(w[0] >> 16 & 0xFFU);
  r.signature.root = static_cast<std::int32_t>(static_cast<std::uint32_t>(w[0] >> 32));
  r.signature.count = w[1];
  r.signature.table = w[2];
  r.kind = w[3];
  r.began = w[4];
  r.ended = w[5];
  r.state = w[5] == 0 ? RecordState::running : (w[5] & 1U) != 0 ? RecordState::failed : RecordState::completed;
  return r;
}

std::vector<Record> FlightRecorder::all() const {
  std::vector<Record> records;
  const std::uint64_t last_sequence = last();
  for (std::uint64_t s = last_sequence < capacity ? 1 : last_sequence - capacity + 1; s <= last_sequence; ++s)
    if (auto record = find(s)) records.push_back(*record);
  return records;
}

}  // namespace rondo::engine
