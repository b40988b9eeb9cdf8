#include "bootstrap/handshake.hpp"

#include "base/bytes.hpp"
#include "base/socket.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <sodium.h>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr std::string_view magic = "RONDOHS1";
// purpose (16, zero-padded), initiator's rank, acceptor's rank, hello's length (2), hello (256, zero-padded)
constexpr std::size_t proof_body_bytes = 16 + 4 + 4 + 2 + 256;
constexpr std::uint8_t session_label = 0x10;

enum class Verdict : std::uint8_t { accepted = 1, wrong_key = 2, wrong_rank = 3 };

static_assert(crypto_auth_hmacsha256_KEYBYTES == 32 && crypto_auth_hmacsha256_BYTES == 32);

Error not_authentic(std::string message, std::string hint, int peer) {
  return Error(ErrorCode::authentication, std::move(message), std::move(hint), peer);
}

std::string name_of_rank(int rank) {
  return rank == rendezvous_rank ? std::string("the rendezvous") : fmt::format("rank {}", rank);
}

}  // namespace

Handshake::Handshake(int fd, const Key& key, Role role, int own_rank)
    : fd_(fd), key_(key), role_(role), own_rank_(own_rank) {
  if (sodium_init() < 0) throw Error(ErrorCode::system, "libsodium cannot be initialised");
  randombytes_buf(own_nonce_.data(), own_nonce_.size());
  base::ByteWriter writer;
  writer.put_raw(base::as_bytes(magic)).put_raw(std::as_bytes(std::span(own_nonce_)));
  outgoing_ = writer.take();
}

Handshake Handshake::initiate(int fd, const Key& key, std::string_view purpose, int own_rank, int peer_rank,
                              std::span<const std::byte> hello) {
  if (purpose.empty() || purpose.size() > purpose_limit || purpose.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the purpose '{}' of a connection must have 1 to {} characters", purpose, purpose_limit));
  }
  if (hello.size() > hello_limit) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a hello of {} bytes is too long; at most {} fit", hello.size(), hello_limit));
  }
  Handshake out(fd, key, Role::initiator, own_rank);
  out.purpose_ = purpose;
  out.peer_rank_ = peer_rank;
  out.hello_.assign(hello.begin(), hello.end());
  return out;
}

Handshake Handshake::accept(int fd, const Key& key, int own_rank) {
  return Handshake(fd, key, Role::acceptor, own_rank);
}

Handshake::Handshake(Handshake&&) noexcept = default;
Handshake& Handshake::operator=(Handshake&&) noexcept = default;
Handshake::~Handshake() { sodium_memzero(key_.data(), key_.size()); }

std::vector<std::byte> Handshake::transcript(std::uint8_t role, int initiator_rank, int acceptor_rank) const {
  const bool initiator = role_ == Role::initiator;
  base::ByteWriter writer;
  writer.put_raw(base::as_bytes(magic)).put(role);
  writer.put_raw(std::as_bytes(std::span(initiator ? own_nonce_ : peer_nonce_)));
  writer.put_raw(std::as_bytes(std::span(initiator ? peer_nonce_ : own_nonce_)));
  writer.put(static_cast<std::int32_t>(initiator_rank)).put(static_cast<std::int32_t>(acceptor_rank));
  writer.put_string(purpose_).put_bytes(hello_);
  return writer.take();
}

std::array<std::uint8_t, Handshake::mac_bytes> Handshake::mac(std::uint8_t role) const {
  const bool initiator = role_ == Role::initiator;
  const auto text = transcript(role, initiator ? own_rank_ : peer_rank_, initiator ? peer_rank_ : own_rank_);
  std::array<std::uint8_t, mac_bytes> out{};
  crypto_auth_hmacsha256(out.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), key_.data());
  return out;
}

Key Handshake::session_key(std::uint8_t direction) const {
  return mac(static_cast<std::uint8_t>(session_label + direction % 128));
}

bool Handshake::send_pending() {
  while (sent_ < outgoing_.size()) {
    const auto count = ::send(fd_, outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      // The verdict, if the peer wrote one before it closed, can still be read.
      sent_ = outgoing_.size();
    } else if (errno != EINTR) {
      throw Error(ErrorCode::transport, base::system_error("handshake: send", errno).message(), "", peer_rank_);
    }
  }
  outgoing_.clear();
  sent_ = 0;
  return true;
}

// Reads until `incoming_` holds so many bytes, and not one more.
bool Handshake::fill(std::size_t bytes) {
  while (incoming_.size() < bytes) {
    const std::size_t have = incoming_.size();
    incoming_.resize(bytes);
    const auto count = ::recv(fd_, incoming_.data() + have, bytes - have, 0);
    const int error = errno;
    incoming_.resize(have + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count > 0) continue;
    if (count < 0 && error == EINTR) continue;
    if (count < 0 && error == EAGAIN) return false;
    throw Error(ErrorCode::transport,
                count == 0 ? std::string("the peer closed the connection during the handshake")
                           : base::system_error("handshake: receive", error).message(),
                "", peer_rank_);
  }
  return true;
}

void Handshake::take_nonce() {
  base::ByteReader reader(incoming_);
  const auto theirs = reader.get_raw(magic.size());
  const auto expected = base::as_bytes(magic);
  if (!std::equal(theirs.begin(), theirs.end(), expected.begin())) {
    throw not_authentic("the peer does not speak Rondo's handshake, version 1",
                        "something else uses this port, or the ranks run different versions of Rondo", peer_rank_);
  }
  const auto nonce = reader.get_raw(nonce_bytes);
  std::transform(nonce.begin(), nonce.end(), peer_nonce_.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  if (peer_nonce_ == own_nonce_) {
    throw not_authentic("the peer sent this side's own bytes back", "", peer_rank_);
  }
  incoming_.clear();
}

void Handshake::send_proof() {
  base::ByteWriter writer;
  const std::vector<std::byte> zeros(hello_limit);
  writer.put_raw(base::as_bytes(purpose_)).put_raw(std::span(zeros).first(purpose_limit - purpose_.size()));
  writer.put(static_cast<std::int32_t>(own_rank_)).put(static_cast<std::int32_t>(peer_rank_));
  writer.put(static_cast<std::uint16_t>(hello_.size())).put_raw(hello_);
  writer.put_raw(std::span(zeros).first(hello_limit - hello_.size()));
  const auto proof = mac(static_cast<std::uint8_t>(Role::initiator));
  writer.put_raw(std::as_bytes(std::span(proof)));
  const auto bytes = writer.take();
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
}

void Handshake::check_proof() {
  base::ByteReader reader(incoming_);
  const auto purpose = reader.get_raw(purpose_limit);
  for (const std::byte character : purpose) {
    if (character == std::byte{0}) break;
    purpose_.push_back(static_cast<char>(character));
  }
  peer_rank_ = reader.get<std::int32_t>();
  const int wanted = reader.get<std::int32_t>();
  const std::size_t hello_bytes = std::min<std::size_t>(reader.get<std::uint16_t>(), hello_limit);
  const auto hello = reader.get_raw(hello_limit).first(hello_bytes);
  hello_.assign(hello.begin(), hello.end());
  const auto theirs = reader.get_raw(mac_bytes);

  // Over the rank that the initiator wanted: a wrong rank is then told apart from a wrong key.
  const auto text = transcript(static_cast<std::uint8_t>(Role::initiator), peer_rank_, wanted);
  const bool authentic =
      crypto_auth_hmacsha256_verify(reinterpret_cast<const unsigned char*>(theirs.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), key_.data()) == 0;
  incoming_.clear();
  const Verdict verdict = !authentic            ? Verdict::wrong_key
                          : wanted != own_rank_ ? Verdict::wrong_rank
                                                : Verdict::accepted;
  base::ByteWriter writer;
  writer.put(verdict);
  if (verdict == Verdict::accepted) {
    const auto proof = mac(static_cast<std::uint8_t>(Role::acceptor));
    writer.put_raw(std::as_bytes(std::span(proof)));
  } else {
    writer.put_raw(std::vector<std::byte>(mac_bytes));
  }
  const auto bytes = writer.take();
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
  if (verdict == Verdict::accepted) return;
  send_pending();  // a courtesy; the connection ends either way
  if (verdict == Verdict::wrong_key) {
    purpose_.clear();
    hello_.clear();
    throw not_authentic("a peer does not know this job's key", "another job, or an outsider, uses this port", -1);
  }
  throw not_authentic(fmt::format("{} wanted {} and reached {}", name_of_rank(peer_rank_), name_of_rank(wanted),
                                  name_of_rank(own_rank_)),
                      "", peer_rank_);
}

void Handshake::check_verdict() {
  base::ByteReader reader(incoming_);
  const auto verdict = reader.get<Verdict>();
  const auto theirs = reader.get_raw(mac_bytes);
  const auto ours = mac(static_cast<std::uint8_t>(Role::acceptor));
  if (verdict == Verdict::wrong_rank) {
    throw not_authentic(
        fmt::format("{} wanted {} and reached another rank", name_of_rank(own_rank_), name_of_rank(peer_rank_)), "",
        peer_rank_);
  }
  if (verdict != Verdict::accepted) {
    throw not_authentic(fmt::format("{} refused this rank's key", name_of_rank(peer_rank_)),
                        "all ranks of a job need the same unique id: check that none is left over from another job",
                        peer_rank_);
  }
  if (sodium_memcmp(theirs.data(), ours.data(), mac_bytes) != 0) {
    throw not_authentic(fmt::format("what answers as {} does not know this job's key", name_of_rank(peer_rank_)),
                        "all ranks of a job need the same unique id: check that none is left over from another job",
                        peer_rank_);
  }
  incoming_.clear();
}

Handshake::Progress Handshake::step() {
  for (;;) {
    const bool flushed = send_pending();
    switch (state_) {
      case State::nonces:
        if (!fill(magic.size() + nonce_bytes)) return flushed ? Progress::want_read : Progress::want_write;
        take_nonce();
        if (role_ == Role::initiator) {
          send_proof();
          state_ = State::verdict;
        } else {
          state_ = State::proof;
        }
        break;
      case State::proof:
        if (!fill(proof_body_bytes + mac_bytes)) return flushed ? Progress::want_read : Progress::want_write;
        check_proof();
        state_ = State::flush;
        break;
      case State::verdict:
        if (!fill(1 + mac_bytes)) return flushed ? Progress::want_read : Progress::want_write;
        check_verdict();
        state_ = State::done;
        break;
      case State::flush:
        if (!flushed) return Progress::want_write;
        state_ = State::done;
        break;
      case State::done: return Progress::done;
    }
  }
}

void Handshake::run(base::Nanoseconds deadline) {
  for (;;) {
    const Progress progress = step();
    if (progress == Progress::done) return;
    const base::Nanoseconds left = deadline - base::System::real().now();
    if (left <= 0) {
      throw Error(ErrorCode::deadline, "the peer did not finish the handshake in time",
                  "it is busy, stopped, or not a rank of this job", peer_rank_);
    }
    pollfd entry{fd_, static_cast<short>(progress == Progress::want_write ? POLLIN | POLLOUT : POLLIN), 0};
    if (::poll(&entry, 1, base::to_milliseconds(left)) < 0 && errno != EINTR) {
      throw base::system_error("poll", errno);
    }
  }
}

}  // namespace rondo::bootstrap
