// SimConnection: the two ends of one simulated connection, and between hosts the wire in the middle.
//
// Shared: one piece of memory, no pump. Wire: each end has memory of its own and a pump. A message is copied when it is
// flushed, arrives after a delay and rings the receiver's bell; the receiver's pump puts it into its lines. Credits go
// the other way.
#pragma once

#include "transports/sim/sim_network.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace rondo::transport::sim {

struct SimConnection : std::enable_shared_from_this<SimConnection> {
  SimConnection(SimNetwork& its_network, const ConnectionKey& its_key, base::System& sender);
  SimConnection(const SimConnection&) = delete;
  SimConnection& operator=(const SimConnection&) = delete;
  // The receiver has heard of the connection and takes its end.
  void take(base::System& receiver);

  SimNetwork& network;
  const ConnectionKey key;
  const bool shared;
  bool announced = false;
  SendEnd send;
  ReceiveEnd receive;

 private:
  struct Message {
    std::uint32_t signature;
    std::uint32_t length_and_kind;
    std::vector<std::byte> payload;
  };
  class SendPump final : public Pump {
   public:
    explicit SendPump(SimConnection& connection) : c_(connection) {}
    void flush() override;
    void progress() override;
    void arm() override { armed_ = true; }
    bool idle() const override { return true; }  // flushed messages are copies
    bool take_armed() { return std::exchange(armed_, false); }

   private:
    SimConnection& c_;
    std::uint64_t flushed_ = 0;
    bool armed_ = false;
  };
  class ReceivePump final : public Pump {
   public:
    explicit ReceivePump(SimConnection& connection) : c_(connection) {}
    void flush() override;
    void progress() override;
    void arm() override { armed_ = true; }
    bool idle() const override { return true; }
    bool take_armed() { return std::exchange(armed_, false); }

   private:
    SimConnection& c_;
    std::uint64_t flushed_ = 0;  // credits
    std::uint64_t put_ = 0;      // messages put into the lines
    bool armed_ = false;
  };
  void arrive(Message message);
  void credit(std::uint64_t count);

  LocalFifo sender_memory_;
  std::optional<LocalFifo> receiver_memory_;
  SendPump send_pump_{*this};
  ReceivePump receive_pump_{*this};
  Nanoseconds last_message_ = 0;  // when the newest arrives: messages don't overtake each other
  Nanoseconds last_credit_ = 0;
  std::deque<Message> arrived_;
  std::uint64_t credit_arrived_ = 0;
};

}  // namespace rondo::transport::sim
