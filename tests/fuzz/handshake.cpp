// The handshake, from both sides. The first byte says what the rest is:
//   a, i  what an acceptor, an initiator, gets from a stranger: it must never be let in
//   r     edits (position 2, xor 1) of what goes over between two that know the key: what either believes must be true
//   p     the body of a proof of somebody who knows the key, and what acceptors make of it
#include "bootstrap/handshake.hpp"

#include "base/socket.hpp"
#include "harness/target.hpp"

#include <sodium.h>
#include <sys/socket.h>

#include <array>

namespace rondo::fuzz {
namespace {

using bootstrap::Handshake;
using Progress = Handshake::Progress;

constexpr std::string_view magic = "RONDOHS1";
constexpr std::size_t nonce_end = 8 + 32;
constexpr std::size_t body_bytes = 16 + 4 + 4 + 2 + 256;
constexpr bootstrap::Key key = {1, 2, 3};
constexpr int initiator_rank = 7;
constexpr int acceptor_rank = 3;

// Nonces that are the same in every run, and differ within one.
std::uint32_t counter = 0;
std::uint32_t next_random() { return ++counter * 0x9e3779b9U; }
void fill_random(void* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(next_random() >> 24);
}
void make_random_repeatable() {
  static randombytes_implementation repeatable = [] {
    randombytes_implementation r{};
    r.implementation_name = [] { return "counter"; };
    r.random = next_random;
    r.buf = fill_random;
    return r;
  }();
  static const int once = randombytes_set_implementation(&repeatable);
  static_cast<void>(once);
  counter = 0;
}

struct Wire {
  base::FileDescriptor ours, theirs;
  Wire() {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
    ours = base::FileDescriptor(ends[0]);
    theirs = base::FileDescriptor(ends[1]);
  }
  void write(std::span<const std::byte> bytes) const {
    if (!bytes.empty()) static_cast<void>(::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  Bytes read() const {
    Bytes bytes(4096);
    const auto count = ::recv(ours.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
};

// False when it threw.
bool step(Handshake& side, bool& done) {
  return accepts([&] { done = side.step() == Progress::done; }, {ErrorCode::authentication, ErrorCode::transport});
}

bool stranger(std::span<const std::byte> bytes, bool at_acceptor) {
  const Wire wire;
  Handshake side = at_acceptor ? Handshake::accept(wire.theirs.get(), key, acceptor_rank)
                               : Handshake::initiate(wire.theirs.get(), key, "tcp", initiator_rank, acceptor_rank);
  bool done = false;
  for (std::size_t at = 0; at < bytes.size(); at += 100) {
    wire.write(bytes.subspan(at, std::min<std::size_t>(100, bytes.size() - at)));
    if (!step(side, done)) return false;
    require(!done, "who does not know the key is not let in");
  }
  return true;
}

bool relay(std::span<const std::byte> edits) {
  const Bytes hello = bytes_of("a hello");
  const Wire near;
  const Wire far;
  Handshake initiator = Handshake::initiate(near.theirs.get(), key, "tcp", initiator_rank, acceptor_rank, hello);
  Handshake acceptor = Handshake::accept(far.theirs.get(), key, acceptor_rank);
  std::map<std::size_t, std::byte> changes;  // by position in what goes over, both ways one after the other
  Cutter cut(edits);
  while (!cut.rest().empty()) {
    const std::size_t at = cut.two_bytes();
    changes[at % 512] ^= static_cast<std::byte>(cut.byte());
  }
  std::array<std::size_t, 2> passed = {0, 512 - nonce_end - 33};
  const auto pass = [&](const Wire& from, const Wire& to, std::size_t& at) {
    Bytes bytes = from.read();
    for (std::byte& b : bytes) {
      if (const auto found = changes.find(at++); found != changes.end()) b ^= found->second;
    }
    to.write(bytes);
  };
  bool initiated = false;
  bool accepted = false;
  bool good = true;
  for (int round = 0; round < 6 && good && !(initiated && accepted); ++round) {
    if (!initiated) good = step(initiator, initiated) && good;
    pass(near, far, passed[0]);
    if (!accepted) good = step(acceptor, accepted) && good;
    pass(far, near, passed[1]);
  }
  if (accepted) {
    require(acceptor.purpose() == "tcp" && acceptor.peer_rank() == initiator_rank && same(acceptor.hello(), hello),
            "the acceptor believes what the initiator said");
  }
  if (initiated && accepted) {
    require(initiator.session_key(1) == acceptor.session_key(1), "both sides have one key");
    require(initiator.session_key(1) != initiator.session_key(2), "directions differ");
  }
  const bool untouched =
      std::all_of(changes.begin(), changes.end(), [](const auto& change) { return change.second == std::byte{0}; });
  require(!untouched || (good && initiated && accepted), "without edits both are let in");
  return good;
}

bool prove(std::span<const std::byte> chosen) {
  Bytes body(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(std::min(chosen.size(), body_bytes)));
  body.resize(body_bytes);
  base::ByteReader reader(body);
  std::string purpose = text_of(reader.get_raw(16));
  purpose = purpose.substr(0, purpose.find('\0'));
  const auto own = reader.get<std::int32_t>();
  const auto wanted = reader.get<std::int32_t>();
  const std::size_t length = std::min<std::size_t>(reader.get<std::uint16_t>(), 256);
  const auto hello = reader.rest().first(length);

  const Wire wire;
  Handshake acceptor = Handshake::accept(wire.theirs.get(), key, acceptor_rank);
  bool done = false;
  step(acceptor, done);
  const Bytes greeting = wire.read();
  require(greeting.size() == nonce_end && same(std::span(greeting).first(8), base::as_bytes(magic)), "a greeting");
  const Bytes own_nonce(32, std::byte{0x5a});
  base::ByteWriter signed_text;
  signed_text.put_raw(base::as_bytes(magic)).put(std::uint8_t{1}).put_raw(own_nonce);
  signed_text.put_raw(std::span(greeting).subspan(8)).put(own).put(wanted).put_string(purpose).put_bytes(hello);
  std::array<std::uint8_t, 32> mac{};
  crypto_auth_hmacsha256(mac.data(), reinterpret_cast<const unsigned char*>(signed_text.bytes().data()),
                         signed_text.size(), key.data());
  base::ByteWriter message;
  message.put_raw(base::as_bytes(magic)).put_raw(own_nonce).put_raw(body).put_raw(std::as_bytes(std::span(mac)));
  wire.write(message.bytes());
  const bool good = step(acceptor, done);
  require(good == (wanted == acceptor_rank) && done == good, "who knows the key and wants this rank is let in");
  if (good) {
    require(acceptor.purpose() == purpose && acceptor.peer_rank() == own && same(acceptor.hello(), hello),
            "the acceptor believes what was proved");
  }
  return good;
}

}  // namespace

std::vector<Bytes> seeds() {
  base::ByteWriter proof;
  const Bytes hello = bytes_of("a hello");
  proof.put_raw(bytes_of("ptcp")).put_raw(Bytes(13)).put(std::int32_t{initiator_rank}).put(std::int32_t{acceptor_rank});
  proof.put(static_cast<std::uint16_t>(hello.size())).put_raw(hello).put_raw(Bytes(256 - hello.size()));
  return {bytes_of("a" + std::string(magic)), bytes_of("i" + std::string(magic)), bytes_of("r"), proof.take()};
}

bool parse(std::span<const std::byte> input) {
  if (input.empty()) return false;
  make_random_repeatable();
  const auto rest = input.subspan(1);
  switch (static_cast<char>(input[0])) {
    case 'a': return stranger(rest, true);
    case 'i': return stranger(rest, false);
    case 'r': return relay(rest);
    default: return prove(rest);
  }
}

}  // namespace rondo::fuzz
