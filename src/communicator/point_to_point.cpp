#include "communicator/point_to_point.hpp"

#include "executor/reduce/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rondo::communicator {
namespace {

constexpr std::uint32_t header_signature = 0x52503250;   // "RP2P"
constexpr std::uint32_t payload_signature = 0x52503244;  // "RP2D"

struct Header {
  std::int64_t tag;
  std::uint64_t bytes;
  std::uint64_t type;
};
static_assert(sizeof(Header) <= transport::inline_bytes);

}  // namespace

SendOperation::SendOperation(std::shared_ptr<engine::CommunicatorState> communicator,
                             executor::ConnectionSource& source, const void* data, std::size_t bytes, DataType type,
                             int destination, int tag)
    : Operation(std::move(communicator)),
      source_(&source),
      data_(static_cast<const std::byte*>(data)),
      bytes_(bytes),
      type_(type),
      destination_(destination),
      tag_(tag) {}

void SendOperation::start() { end_ = source_->open_send(destination_, point_to_point_tag); }

bool SendOperation::done() const {
  return header_sent_ && sent_ == bytes_ && (end_->pump == nullptr || end_->pump->idle());
}

bool SendOperation::advance() {
  bool moved = false;
  if (!header_sent_) {
    if (!end_->try_acquire()) return false;
    const Header header{tag_, bytes_, static_cast<std::uint64_t>(type_)};
    std::memcpy(end_->line().payload, &header, sizeof header);
    end_->publish(header_signature, sizeof header, transport::PayloadKind::inlined);
    header_sent_ = true;
    moved = true;
  }
  while (sent_ < bytes_ && end_->try_acquire()) {
    const std::size_t slice = std::min<std::size_t>(bytes_ - sent_, end_->slot_bytes);
    const bool inlined = slice <= transport::inline_bytes;
    executor::copy(data_ + sent_, inlined ? static_cast<void*>(end_->line().payload) : end_->slot(), slice, false);
    end_->publish(payload_signature, slice, inlined ? transport::PayloadKind::inlined : transport::PayloadKind::slot);
    sent_ += slice;
    moved = true;
  }
  if (moved) end_->flush();
  return moved;
}

void SendOperation::pump() {
  if (end_ != nullptr && end_->pump != nullptr) end_->pump->progress();
}
void SendOperation::arm() {
  if (end_ != nullptr && end_->pump != nullptr) end_->pump->arm();
}
std::string SendOperation::describe() const {
  return fmt::format("send of {} bytes of {} to rank {} with tag {}", bytes_, name_of(type_), destination_, tag_);
}
std::string SendOperation::progress() const {
  return fmt::format("byte {} of {}, waiting for rank {} to receive", sent_, bytes_, destination_);
}

Matcher::Matcher(executor::ConnectionSource& source, int size, std::function<void()> wake)
    : source_(&source), wake_(std::move(wake)), peers_(static_cast<std::size_t>(size)) {}

void Matcher::post(ReceiveOperation& receive) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(&receive);
  // A message that came before?
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (receive.source_ >= 0 && receive.source_ != rank) continue;
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    for (auto message = peer.unexpected.begin(); message != peer.unexpected.end(); ++message) {
      if (message->tag != receive.tag_) continue;
      const bool still_coming =
          peer.in_message && peer.receive == nullptr && message == std::prev(peer.unexpected.end());
      if (still_coming) return;  // progress() hands it over when it is whole
      posted_.pop_back();
      if (message->bytes.size() != receive.bytes_ || message->type != receive.type_) {
        receive.refused_ = std::make_shared<Error>(ErrorCode::mismatch,
                                                   fmt::format("{}: rank {} sent {} bytes of {}", receive.describe(),
                                                               rank, message->bytes.size(), name_of(message->type)),
                                                   "send and receive must name the same count and type", rank);
      } else {
        if (receive.bytes_ > 0) std::memcpy(receive.data_, message->bytes.data(), receive.bytes_);
        receive.source_ = rank;
        receive.arrived_.store(receive.bytes_, std::memory_order_relaxed);
      }
      peer.unexpected.erase(message);
      receive.complete_.store(true, std::memory_order_release);  // pairs with done()
      return;
    }
  }
}

void Matcher::cancel(ReceiveOperation& receive) {
  const std::lock_guard lock(mutex_);
  std::erase(posted_, &receive);
  for (Peer& peer : peers_)
    if (peer.receive == &receive) peer.receive = nullptr;
}

ReceiveOperation* Matcher::find(int source, int tag) {
  const auto it = std::find_if(posted_.begin(), posted_.end(), [&](const ReceiveOperation* r) {
    return r->tag_ == tag && (r->source_ < 0 || r->source_ == source);
  });
  if (it == posted_.end()) return nullptr;
  ReceiveOperation* receive = *it;
  posted_.erase(it);
  return receive;
}

void Matcher::begin(int rank, Peer& peer) {
  const transport::SlotLine& line = *peer.end->try_peek();
  Header header{};
  if (line.signature != header_signature || transport::ReceiveEnd::length(line) != sizeof header)
    throw Error(ErrorCode::internal, fmt::format("rank {} sent a point-to-point message without header", rank), {},
                rank);
  std::memcpy(&header, line.payload, sizeof header);
  peer.end->release();
  peer.in_message = true;
  peer.tag = static_cast<int>(header.tag);
  peer.type = static_cast<DataType>(header.type);
  peer.bytes = header.bytes;
  peer.arrived = 0;
  peer.receive = find(rank, peer.tag);
  if (peer.receive != nullptr) {
    peer.receive->source_ = rank;
    if (peer.receive->bytes_ != peer.bytes || peer.receive->type_ != peer.type) {
      peer.receive->refused_ =
          std::make_shared<Error>(ErrorCode::mismatch,
                                  fmt::format("{}: rank {} sent {} bytes of {}", peer.receive->describe(), rank,
                                              peer.bytes, name_of(peer.type)),
                                  "send and receive must name the same count and type", rank);
      peer.receive->complete_.store(true, std::memory_order_release);
      peer.receive = nullptr;
    }
  }
  if (peer.receive == nullptr) peer.unexpected.push_back({peer.tag, peer.type, std::vector<std::byte>(peer.bytes), 0});
}

bool Matcher::progress_peer(int rank, Peer& peer) {
  if (peer.end == nullptr) peer.end = source_->try_open_receive(rank, point_to_point_tag);
  if (peer.end == nullptr) return false;
  bool moved = false;
  for (;;) {
    if (!peer.in_message) {
      if (peer.end->try_peek() == nullptr) break;
      begin(rank, peer);
      moved = true;
    }
    while (peer.arrived < peer.bytes) {
      const transport::SlotLine* line = peer.end->try_peek();
      if (line == nullptr) break;
      const std::size_t slice = transport::ReceiveEnd::length(*line);
      if (line->signature != payload_signature || slice == 0 || slice > peer.bytes - peer.arrived)
        throw Error(ErrorCode::internal, fmt::format("rank {} sent a malformed point-to-point message", rank), {},
                    rank);
      const std::byte* from =
          transport::ReceiveEnd::kind(*line) == transport::PayloadKind::inlined ? line->payload : peer.end->slot();
      std::byte* to = peer.receive != nullptr ? peer.receive->data_ : peer.unexpected.back().bytes.data();
      executor::copy(from, to + peer.arrived, slice, false);
      peer.end->release();
      peer.arrived += slice;
      if (peer.receive != nullptr) peer.receive->arrived_.store(peer.arrived, std::memory_order_relaxed);
      moved = true;
    }
    if (peer.arrived < peer.bytes) break;
    peer.in_message = false;
    if (peer.receive != nullptr) {
      peer.receive->complete_.store(true, std::memory_order_release);  // pairs with done()
      peer.receive = nullptr;
    } else if (ReceiveOperation* late = find(rank, peer.tag)) {
      // Posted while the message was coming.
      std::list<Message>::iterator first = std::find_if(peer.unexpected.begin(), peer.unexpected.end(),
                                                        [&](const Message& m) { return m.tag == peer.tag; });
      if (first->bytes.size() == late->bytes_ && first->type == late->type_) {
        if (late->bytes_ > 0) std::memcpy(late->data_, first->bytes.data(), late->bytes_);
        late->source_ = rank;
        late->arrived_.store(late->bytes_, std::memory_order_relaxed);
      } else {
        late->refused_ = std::make_shared<Error>(ErrorCode::mismatch,
                                                 fmt::format("{}: rank {} sent {} bytes of {}", late->describe(), rank,
                                                             first->bytes.size(), name_of(first->type)),
                                                 "send and receive must name the same count and type", rank);
      }
      peer.unexpected.erase(first);
      late->complete_.store(true, std::memory_order_release);
    }
  }
  if (moved) peer.end->flush();
  return moved;
}

bool Matcher::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  bool moved = false;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank)
    if (progress_peer(rank, peers_[static_cast<std::size_t>(rank)])) moved = true;
  // A receive that another thread waits for may have completed.
  if (moved) wake_();
  return moved;
}

void Matcher::pump() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (Peer& peer : peers_)
    if (peer.end != nullptr && peer.end->pump != nullptr) peer.end->pump->progress();
}

void Matcher::arm() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (Peer& peer : peers_)
    if (peer.end != nullptr && peer.end->pump != nullptr) peer.end->pump->arm();
}

ReceiveOperation::ReceiveOperation(std::shared_ptr<engine::CommunicatorState> communicator,
                                   std::shared_ptr<Matcher> matcher, void* data, std::size_t bytes, DataType type,
                                   int source, int tag)
    : Operation(std::move(communicator)),
      matcher_(std::move(matcher)),
      data_(static_cast<std::byte*>(data)),
      bytes_(bytes),
      type_(type),
      source_(source),
      tag_(tag) {}

ReceiveOperation::~ReceiveOperation() {
  if (posted_) matcher_->cancel(*this);
}

void ReceiveOperation::start() {
  posted_ = true;
  matcher_->post(*this);
}

bool ReceiveOperation::advance() {
  const bool moved = !done() && matcher_->progress();
  if (done() && refused_) throw Error(*refused_);
  return moved && !done();
}

void ReceiveOperation::ended(bool) {
  matcher_->cancel(*this);
  posted_ = false;
  if (work) {
    work->source = source_;
    work->bytes = bytes_;
  }
}

std::string ReceiveOperation::describe() const {
  return fmt::format("receive of {} bytes of {} from {} with tag {}", bytes_, name_of(type_),
                     source_ < 0 ? std::string("any rank") : fmt::format("rank {}", source_), tag_);
}

std::string ReceiveOperation::progress() const {
  return fmt::format("byte {} of {}", arrived_.load(std::memory_order_relaxed), bytes_);
}

}  // namespace rondo::communicator
