// Sends and receives: their operations, and the matching of messages with receives.
//
// A message travels on its pair's own connection (never a collective's): a header message {tag, type, bytes}, then the
// payload in slices. The matcher looks at the heads of all incoming connections: a header whose tag a posted receive
// wants (the earliest posted one; its source may be any) streams straight into that receive's buffer; another is read
// into memory of our own and waits, so that a receive for a later message never deadlocks behind an earlier one.
//
// The matcher is shared by all receives of a communicator and guarded by its mutex; a send belongs to its operation's
// owner.
#pragma once

#include "engine/engine.hpp"
#include "engine/operation.hpp"
#include "executor/cpu/bound_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rondo::communicator {

inline constexpr std::uint32_t point_to_point_tag = 0x8000'0000U;

class SendOperation final : public engine::Operation {
 public:
  SendOperation(std::shared_ptr<engine::CommunicatorState> communicator, executor::ConnectionSource& source,
                const void* data, std::size_t bytes, DataType type, int destination, int tag);
  void start() override;
  bool advance() override;
  bool done() const override;
  void pump() override;
  void arm() override;
  std::string describe() const override;
  std::string progress() const override;

 private:
  executor::ConnectionSource* source_;
  const std::byte* data_;
  std::size_t bytes_;
  DataType type_;
  int destination_;
  int tag_;
  transport::SendEnd* end_ = nullptr;
  bool header_sent_ = false;
  std::size_t sent_ = 0;
};

class ReceiveOperation;

class Matcher {
 public:
  // `wake` wakes the threads of this rank that wait.
  Matcher(executor::ConnectionSource& source, int size, std::function<void()> wake);
  void post(ReceiveOperation& receive);
  void cancel(ReceiveOperation& receive);
  // Moves what has arrived, for every receive; true if anything moved.
  bool progress();
  void pump();
  void arm();

 private:
  struct Message {  // one that no receive wanted when its header came
    int tag = 0;
    DataType type = DataType::int8;
    std::vector<std::byte> bytes;
    std::size_t arrived = 0;
  };
  struct Peer {
    transport::ReceiveEnd* end = nullptr;
    bool in_message = false;
    int tag = 0;
    DataType type = DataType::int8;
    std::size_t bytes = 0;
    std::size_t arrived = 0;
    ReceiveOperation* receive = nullptr;  // where the current message goes; null: into `unexpected`'s last
    std::list<Message> unexpected;
  };

  bool progress_peer(int rank, Peer& peer);
  void begin(int rank, Peer& peer);
  ReceiveOperation* find(int source, int tag);

  executor::ConnectionSource* source_;
  std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<Peer> peers_;
  std::deque<ReceiveOperation*> posted_;
};

class ReceiveOperation final : public engine::Operation {
 public:
  ReceiveOperation(std::shared_ptr<engine::CommunicatorState> communicator, std::shared_ptr<Matcher> matcher,
                   void* data, std::size_t bytes, DataType type, int source, int tag);
  ~ReceiveOperation() override;
  void start() override;
  bool advance() override;
  bool done() const override { return complete_.load(std::memory_order_acquire); }
  void pump() override { matcher_->pump(); }
  void arm() override { matcher_->arm(); }
  std::string describe() const override;
  std::string progress() const override;
  void ended(bool failed) override;

 private:
  friend class Matcher;
  std::shared_ptr<Matcher> matcher_;
  std::byte* data_;
  std::size_t bytes_;
  DataType type_;
  int source_;
  int tag_;
  bool posted_ = false;
  // Written under the matcher's mutex by whoever moves the data, read by the owner.
  std::atomic<bool> complete_{false};
  std::atomic<std::size_t> arrived_{0};
  std::shared_ptr<Error> refused_;  // the message does not fit: set before complete_
};

}  // namespace rondo::communicator
