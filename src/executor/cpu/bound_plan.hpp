// BoundPlan: one rank's share of a plan with its connections' FIFO ends. Made once per communicator, plan and channel.
#pragma once

#include "plan/plan.hpp"
#include "transports/fifo.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo::executor {

// Where ends come from and how windows are resolved; the communicator implements it. Ranks are the plan's.
class ConnectionSource {
 public:
  ConnectionSource() = default;
  ConnectionSource(const ConnectionSource&) = delete;
  ConnectionSource& operator=(const ConnectionSource&) = delete;
  virtual ~ConnectionSource() = default;
  virtual transport::SendEnd* open_send(int peer, std::uint32_t tag) = 0;
  // Null while the sender has not opened its end.
  virtual transport::ReceiveEnd* try_open_receive(int peer, std::uint32_t tag) = 0;
  // Whether [data, data + bytes) lies in this rank's window memory, and where.
  virtual bool find_window(const std::byte* data, std::size_t bytes, transport::WindowReference& where) = 0;
  // The peer's window memory at `where`, `bytes` long; throws Error(transport) if there is no such window or range.
  virtual const std::byte* peer_window(int peer, transport::WindowReference where, std::size_t bytes) = 0;
};

// The end of one connection that belongs to this rank. Incoming ends appear when the sender opens its side.
struct BoundConnection {
  transport::SendEnd* send = nullptr;
  transport::ReceiveEnd* receive = nullptr;
  int peer = -1;
  std::uint32_t tag = 0;
  bool direct = false;
  bool referenced = false;  // a reference was sent in this operation: drain before it completes
};

struct BoundPlan {
  plan::RankPlan plan;
  std::vector<BoundConnection> connections;
  std::vector<std::byte> scratch;

  // Tags of the plan's connections are shifted by `tag_base`, so that channels and kinds don't meet.
  BoundPlan(plan::RankPlan rank_plan, ConnectionSource& source, std::uint32_t tag_base);
  // Throws Error(plan) unless every outgoing connection holds `slices` times the messages that the plan's proof
  // assumed.
  void require_slots(std::size_t slices) const;
};

}  // namespace rondo::executor
