// UniqueIds: as text ('t' and the digits) and as the 128 bytes of one ('b' and the bytes).
#include <rondo/unique_id.hpp>

#include "bootstrap/rendezvous.hpp"

#include "bootstrap/join.hpp"
#include "harness/target.hpp"

namespace rondo::fuzz {
namespace {

UniqueId example() {
  bootstrap::Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  const std::vector addresses = {base::SocketAddress::parse("10.0.0.1"), base::SocketAddress::parse("127.0.0.1"),
                                 base::SocketAddress::parse("2001:db8::1")};
  return bootstrap::make_unique_id(key, addresses, 29555);
}

bool check(const UniqueId& id) {
  return accepts(
      [&] {
        const auto addresses = bootstrap::addresses_of(id);
        require(!addresses.empty(), "an id leads somewhere");
        const auto key = bootstrap::key_of(id);
        // Made again it may lose addresses (repeated, or a second loopback), and after that nothing more.
        const auto once = bootstrap::make_unique_id(key, addresses, addresses[0].port());
        const auto twice = bootstrap::make_unique_id(key, bootstrap::addresses_of(once), addresses[0].port());
        require(once.bytes == twice.bytes, "an id that was made is what its parts make again");
        require(bootstrap::key_of(once) == key, "the key stays");
      },
      {ErrorCode::invalid_argument});
}

}  // namespace

std::vector<Bytes> seeds() {
  const UniqueId id = example();
  Bytes raw = bytes_of("b");
  raw.insert(raw.end(), id.bytes.begin(), id.bytes.end());
  return {bytes_of("t" + id.to_string()), raw};
}

bool parse(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const auto rest = input.subspan(1);
  UniqueId id;
  if (input[0] == std::byte{'b'}) {
    std::copy_n(rest.begin(), std::min(rest.size(), id.bytes.size()), id.bytes.begin());
    return check(id);
  }
  const bool read = accepts([&] { id = UniqueId::from_string(text_of(rest)); }, {ErrorCode::invalid_argument});
  if (!read) return false;
  require(UniqueId::from_string(id.to_string()).bytes == id.bytes, "a printed id parses to the same");
  check(id);
  return true;
}

}  // namespace rondo::fuzz
