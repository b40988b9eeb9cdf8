#include "transports/sim/sim_connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rondo::transport::sim {

SimConnection::SimConnection(SimNetwork& its_network, const ConnectionKey& its_key, base::System& sender)
    : network(its_network),
      key(its_key),
      shared(its_network.share_memory(its_key.source, its_key.destination)),
      sender_memory_(its_network.options().layout) {
  const FifoLayout& layout = network.options().layout;
  if (!shared) receiver_memory_.emplace(layout);
  send.lines = sender_memory_.parts().lines;
  send.data = sender_memory_.parts().data;
  send.credit = sender_memory_.parts().credit;
  send.slots = layout.slots;
  send.slot_bytes = layout.slot_bytes;
  send.peer_bell = &network.bell(key.destination);
  send.system = &sender;
  send.pump = shared ? nullptr : &send_pump_;
  send.peer = key.destination;
  send.maps_windows = shared;
}

void SimConnection::take(base::System& receiver) {
  const Fifo& memory = shared ? sender_memory_.parts() : receiver_memory_->parts();
  receive.lines = memory.lines;
  receive.data = memory.data;
  receive.credit = memory.credit;
  receive.slots = send.slots;
  receive.slot_bytes = send.slot_bytes;
  receive.peer_bell = &network.bell(key.source);
  receive.system = &receiver;
  receive.pump = shared ? nullptr : &receive_pump_;
  receive.peer = key.source;
}

void SimConnection::SendPump::flush() {
  SimNetwork& wires = c_.network;
  Scheduler& scheduler = wires.scheduler();
  for (; flushed_ < c_.send.sent; ++flushed_) {
    if (wires.isolated(c_.key.source)) continue;
    const SlotLine& line = c_.sender_memory_.line(flushed_);
    const std::size_t length = ReceiveEnd::length(line);
    const std::byte* from =
        ReceiveEnd::kind(line) == PayloadKind::inlined ? line.payload : c_.sender_memory_.slot(flushed_);
    Message message{line.signature, line.length_and_kind, {from, from + length}};
    c_.last_message_ = std::max(c_.last_message_, scheduler.now() + wires.delay());
    scheduler.after(
        c_.last_message_ - scheduler.now(),
        [connection = c_.shared_from_this(), m = std::move(message)]() mutable { connection->arrive(std::move(m)); });
  }
}

void SimConnection::arrive(Message message) {
  announced = true;
  arrived_.push_back(std::move(message));
  if (!network.options().ring_when_armed || receive.pump == nullptr || receive_pump_.take_armed())
    network.ring(key.destination);
}

void SimConnection::ReceivePump::progress() {
  while (!c_.arrived_.empty()) {
    // The sender has a credit for each, so the slot is free.
    const Message& message = c_.arrived_.front();
    SlotLine& line = c_.receiver_memory_->line(put_);
    std::byte* to = ReceiveEnd::kind(SlotLine{{}, 0, message.length_and_kind, {}}) == PayloadKind::inlined
                        ? line.payload
                        : c_.receiver_memory_->slot(put_);
    if (!message.payload.empty()) std::memcpy(to, message.payload.data(), message.payload.size());
    line.signature = message.signature;
    line.length_and_kind = message.length_and_kind;
    line.number.store(++put_, std::memory_order_release);
    c_.arrived_.pop_front();
  }
}

void SimConnection::ReceivePump::flush() {
  SimNetwork& wires = c_.network;
  Scheduler& scheduler = wires.scheduler();
  const std::uint64_t count = c_.receive.received - flushed_;
  flushed_ = c_.receive.received;
  if (count == 0 || wires.isolated(c_.key.destination)) return;
  c_.last_credit_ = std::max(c_.last_credit_, scheduler.now() + wires.delay());
  const std::uint64_t kept = wires.loses_this_credit() ? count - 1 : count;
  scheduler.after(c_.last_credit_ - scheduler.now(),
                  [connection = c_.shared_from_this(), kept] { connection->credit(kept); });
}

void SimConnection::credit(std::uint64_t count) {
  credit_arrived_ += count;
  if (!network.options().ring_when_armed || send_pump_.take_armed()) network.ring(key.source);
}

void SimConnection::SendPump::progress() {
  c_.send.credit->consumed.store(c_.credit_arrived_, std::memory_order_release);
}

}  // namespace rondo::transport::sim
