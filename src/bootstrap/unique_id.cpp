// The layout of a UniqueId, 128 bytes:
//   0  "RNDO"   4  version (1)   5  number of addresses   6  port (2, little-endian)   8  key (32)
//   40 addresses: a length byte (4 or 16) and that many bytes in network order each; zeros behind
#include <rondo/error.hpp>
#include <rondo/unique_id.hpp>

#include "base/bytes.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/rendezvous.hpp"

#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>

namespace rondo {
namespace {

constexpr std::size_t id_bytes = 128;
constexpr std::uint8_t id_version = 1;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The rendezvous services that UniqueId::create() started in this process.
class Services {
 public:
  void keep(bootstrap::Rendezvous service) {
    const std::lock_guard lock(mutex_);
    services_.remove_if([](const bootstrap::Rendezvous& old) { return old.finished(); });
    services_.push_back(std::move(service));
  }
  static Services& of_this_process() {
    static Services services;
    return services;
  }

 private:
  std::mutex mutex_;
  std::list<bootstrap::Rendezvous> services_;
};

}  // namespace

UniqueId UniqueId::create() {
  const auto addresses = base::usable_addresses(environment("RONDO_INTERFACES"));
  auto service =
      bootstrap::start_rendezvous(addresses, bootstrap::port_range_from_environment(), bootstrap::random_key());
  const UniqueId id = service.id();
  Services::of_this_process().keep(std::move(service));
  return id;
}

std::string UniqueId::to_string() const {
  std::string text;
  for (const std::byte value : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(value));
  return text;
}

UniqueId UniqueId::from_string(std::string_view text) {
  // The text is a secret: the error says only what is wrong with it.
  if (text.size() != 2 * id_bytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a unique id has {} hexadecimal digits, not {}", 2 * id_bytes, text.size()),
                "pass on what UniqueId::to_string() returned");
  }
  const auto digit = [&](std::size_t at) -> unsigned {
    const char c = text[at];
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
    throw Error(ErrorCode::invalid_argument, fmt::format("character {} of a unique id is no hexadecimal digit", at),
                "pass on what UniqueId::to_string() returned");
  };
  UniqueId id;
  for (std::size_t i = 0; i < id_bytes; ++i) id.bytes[i] = static_cast<std::byte>(digit(2 * i) * 16 + digit(2 * i + 1));
  return id;
}

namespace bootstrap {
namespace {

constexpr std::string_view id_magic = "RNDO";

base::ByteReader open_id(const UniqueId& id, std::uint8_t& count, std::uint16_t& port) {
  base::ByteReader reader(id.bytes);
  const auto magic = reader.get_raw(id_magic.size());
  const auto expected = base::as_bytes(id_magic);
  if (!std::equal(magic.begin(), magic.end(), expected.begin()) || reader.get<std::uint8_t>() != id_version) {
    throw Error(ErrorCode::invalid_argument, "these 128 bytes are no unique id of this version of Rondo",
                "make it with UniqueId::create() and pass all 128 bytes to every rank");
  }
  count = reader.get<std::uint8_t>();
  port = reader.get<std::uint16_t>();
  return reader;
}

}  // namespace

Key random_key() {
  if (sodium_init() < 0) throw Error(ErrorCode::system, "libsodium cannot be initialised");
  Key key{};
  randombytes_buf(key.data(), key.size());
  return key;
}

UniqueId make_unique_id(const Key& key, std::span<const base::SocketAddress> addresses, std::uint16_t port) {
  std::size_t room = id_bytes - 40;
  std::vector<std::vector<std::byte>> kept;
  const auto keep = [&](const base::SocketAddress& address) {
    auto bytes = address.address_bytes();
    if (bytes.size() + 1 > room || std::find(kept.begin(), kept.end(), bytes) != kept.end()) return;
    room -= bytes.size() + 1;
    kept.push_back(std::move(bytes));
  };
  const auto loopback = std::find_if(addresses.begin(), addresses.end(), [](const auto& a) { return a.is_loopback(); });
  const std::size_t reserved = loopback == addresses.end() ? 0 : loopback->address_bytes().size() + 1;
  room -= reserved;
  for (const auto& address : addresses) {
    if (!address.is_loopback()) keep(address);
  }
  room += reserved;
  if (loopback != addresses.end()) keep(*loopback);
  if (kept.empty()) throw Error(ErrorCode::invalid_argument, "a unique id needs at least one address");

  base::ByteWriter writer;
  writer.put_raw(base::as_bytes(id_magic)).put(id_version).put(static_cast<std::uint8_t>(kept.size())).put(port);
  writer.put_raw(std::as_bytes(std::span(key)));
  for (const auto& bytes : kept) writer.put(static_cast<std::uint8_t>(bytes.size())).put_raw(bytes);
  UniqueId id;
  std::copy(writer.bytes().begin(), writer.bytes().end(), id.bytes.begin());
  return id;
}

std::vector<base::SocketAddress> addresses_of(const UniqueId& id) {
  std::uint8_t count = 0;
  std::uint16_t port = 0;
  auto reader = open_id(id, count, port);
  reader.get_raw(sizeof(Key));
  std::vector<base::SocketAddress> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = reader.left() == 0 ? 0 : reader.get<std::uint8_t>();
    if (length > reader.left()) {
      throw Error(ErrorCode::invalid_argument, "the unique id ends within an address",
                  "make it with UniqueId::create() and pass all 128 bytes to every rank");
    }
    out.push_back(base::SocketAddress::from_bytes(reader.get_raw(length), port));
  }
  if (out.empty()) throw Error(ErrorCode::invalid_argument, "the unique id holds no address");
  return out;
}

Key key_of(const UniqueId& id) {
  std::uint8_t count = 0;
  std::uint16_t port = 0;
  auto reader = open_id(id, count, port);
  Key key{};
  const auto bytes = reader.get_raw(key.size());
  std::transform(bytes.begin(), bytes.end(), key.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return key;
}

base::PortRange port_range_from_environment() {
  const std::string text = environment("RONDO_PORT_RANGE");
  return text.empty() ? base::PortRange{} : base::PortRange::parse(text, "RONDO_PORT_RANGE");
}

}  // namespace bootstrap
}  // namespace rondo
