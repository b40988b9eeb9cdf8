// Handshake: the mutual challenge-response that opens every connection, before a byte of it is parsed.
//
//   both:       magic, nonce (32 random bytes)
//   initiator:  purpose, its rank, the rank it wants, hello, MAC
//   acceptor:   verdict, MAC
//
// Each MAC (HMAC-SHA-256 of the world's key) covers the sender's role, both nonces, the purpose, both ranks and the
// hello; so neither an old conversation nor one's own bytes sent back prove anything. Every message has one fixed size:
// nothing that an outsider wrote is interpreted, and nothing behind the handshake is read from the socket.
//
// The descriptor is a connected non-blocking stream socket (TCP or Unix), not owned. One thread at a time. Usage:
//   Handshake handshake = Handshake::accept(fd, key, rank);
//   whenever fd is ready: switch (handshake.step()) { want_read, want_write: wait for that; done: route by purpose(). }
// The owner bounds the time it takes (an acceptor must not let a silent stranger hold a descriptor for ever).
#pragma once

#include "base/system.hpp"
#include "bootstrap/key.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bootstrap {

// What connections are for. A purpose is 1 to 16 characters; acceptors refuse those they do not know.
inline constexpr std::string_view purpose_rendezvous = "rendezvous";
inline constexpr std::string_view purpose_control = "control";
inline constexpr std::string_view purpose_tcp = "tcp";
inline constexpr std::string_view purpose_shm = "shm";

// The "rank" of a rendezvous service.
inline constexpr int rendezvous_rank = -1;

class Handshake {
 public:
  enum class Progress : std::uint8_t { want_read, want_write, done };
  static constexpr std::size_t purpose_limit = 16;
  static constexpr std::size_t hello_limit = 256;

  // `hello`: at most 256 bytes for the acceptor, authenticated but not secret. Throws Error(invalid_argument) when
  // purpose or hello are too long.
  static Handshake initiate(int fd, const Key& key, std::string_view purpose, int own_rank, int peer_rank,
                            std::span<const std::byte> hello = {});
  static Handshake accept(int fd, const Key& key, int own_rank);

  Handshake(Handshake&&) noexcept;
  Handshake& operator=(Handshake&&) noexcept;
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;
  ~Handshake();  // wipes the key

  // Goes on as far as the socket allows. Throws Error(authentication) when the peer does not know the key, is not the
  // rank wanted, or speaks another protocol; Error(transport) when the connection breaks. After a throw only
  // destruction is allowed.
  Progress step();
  // Blocks in poll() until done; throws Error(deadline) at `deadline` (System::real().now() time).
  void run(base::Nanoseconds deadline);

  // After done:
  const std::string& purpose() const { return purpose_; }
  int peer_rank() const { return peer_rank_; }
  const std::vector<std::byte>& hello() const { return hello_; }
  // A fresh key of this connection, the same on both sides, for transports that encrypt. `direction` tells several
  // apart.
  Key session_key(std::uint8_t direction) const;

 private:
  enum class Role : std::uint8_t { initiator = 1, acceptor = 2 };
  enum class State : std::uint8_t { nonces, proof, verdict, flush, done };
  static constexpr std::size_t nonce_bytes = 32;
  static constexpr std::size_t mac_bytes = 32;

  Handshake(int fd, const Key& key, Role role, int own_rank);
  bool send_pending();
  bool fill(std::size_t bytes);
  void take_nonce();
  void send_proof();
  void check_proof();
  void check_verdict();
  std::vector<std::byte> transcript(std::uint8_t role, int initiator_rank, int acceptor_rank) const;
  std::array<std::uint8_t, mac_bytes> mac(std::uint8_t role) const;

  int fd_;
  Key key_;
  Role role_;
  State state_ = State::nonces;
  int own_rank_;
  int peer_rank_ = 0;
  std::string purpose_;
  std::vector<std::byte> hello_;
  std::array<std::uint8_t, nonce_bytes> own_nonce_{};
  std::array<std::uint8_t, nonce_bytes> peer_nonce_{};
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;
  std::vector<std::byte> incoming_;
};

}  // namespace rondo::bootstrap
