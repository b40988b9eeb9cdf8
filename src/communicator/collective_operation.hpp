// CollectiveOperation: one collective in flight — a prepared plan, the user's buffers, an execution.
#pragma once

#include "engine/engine.hpp"
#include "engine/operation.hpp"
#include "engine/signature.hpp"
#include "executor/cpu/execution.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::communicator {

// What calls of one kind share: the choice of algorithm, its bound plans, chunk tables, kernel. Uneven forms make one a
// call, for their tables differ; even forms keep them.
struct Prepared {
  engine::Signature signature;  // sequence 0
  std::uint64_t kind = 0;       // hash_of_kind(signature)
  std::string_view algorithm;
  std::vector<executor::BoundPlan*> channels;
  executor::ChunkTable tables[2];
  executor::Call call;  // without buffers, factor and slot signature; its tables point into this object
  executor::Script script;
};

class CollectiveOperation final : public engine::Operation {
 public:
  CollectiveOperation(std::shared_ptr<engine::CommunicatorState> communicator, executor::ConnectionSource& source)
      : Operation(std::move(communicator)), source_(&source) {}

  // Must be called before the operation is run or submitted. Records it, so peers that ask see that it was called.
  void set(const std::shared_ptr<const Prepared>& prepared, const void* input, void* output, double factor,
           std::uint64_t sequence) {
    // The same kind of call as last time, which is how training loops call: the execution is only rewound.
    same_kind_ = prepared_ == prepared;
    if (!same_kind_) prepared_ = prepared;
    sequence_ = sequence;
    input_ = static_cast<const std::byte*>(input);
    output_ = static_cast<std::byte*>(output);
    factor_ = factor;
    engine::Signature signature = prepared_->signature;
    signature.sequence = sequence;
    communicator().recorder.begin(signature, prepared_->kind);
  }

  void start() override {
    const std::uint32_t signature = engine::slot_signature(prepared_->kind, sequence_);
    if (!same_kind_) execution_.prepare(prepared_->channels, *source_, prepared_->call, prepared_->script);
    execution_.start(input_, output_, factor_, signature);
  }
  bool advance() override { return execution_.advance(); }
  bool done() const override { return execution_.done(); }
  void pump() override { execution_.pump(); }
  void arm() override { execution_.arm(); }
  std::string describe() const override {
    engine::Signature signature = prepared_->signature;
    signature.sequence = sequence_;
    return engine::describe(signature);
  }
  std::string progress() const override { return execution_.progress(); }
  std::uint64_t sequence() const override { return sequence_; }
  void ended(bool failed) override { communicator().recorder.end(sequence_, failed, timing.started); }

 private:
  executor::ConnectionSource* source_;
  std::shared_ptr<const Prepared> prepared_;
  bool same_kind_ = false;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  double factor_ = 1.0;
  executor::Execution execution_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rondo::communicator
