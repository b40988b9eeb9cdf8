// What ranks tell each other of their transports before a connection: addresses, hellos. The first byte says which.
#include "harness/target.hpp"
#include "transports/address_table.hpp"
#include "transports/shm/messages.hpp"
#include "transports/tcp/wire.hpp"

namespace rondo::fuzz {
namespace {

using namespace transport;

Bytes encode_all(const std::map<std::string, Bytes>& addresses) {
  std::vector<std::pair<std::string_view, Bytes>> list(addresses.begin(), addresses.end());
  return encode_addresses(list);
}

}  // namespace

std::vector<Bytes> seeds() {
  const std::vector listening = {base::SocketAddress::parse("10.0.0.1:5000"), base::SocketAddress::parse("[::1]:5000")};
  return {with_kind('a', encode_all({{"shm", bytes_of("x")}, {"tcp", {}}})),
          with_kind('t', tcp::encode_address(listening)),
          with_kind('s', encode(ShmAddress{{1, 2, 3, 4}, "rondo-0123456789abcdef"})),
          with_kind('m', encode(MemoryRequest{MemoryKind::window, 9})),
          with_kind('h', tcp::encode(tcp::Hello{tcp::HelloKind::data, {5, 0, 1, 2}, {4, 262144}})),
          with_kind('h', tcp::encode(tcp::Hello{tcp::HelloKind::probe, {}, {}}))};
}

bool parse(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const auto rest = input.subspan(1);
  return accepts(
      [&] {
        switch (static_cast<char>(input[0])) {
          case 'a': {
            const auto addresses = decode_addresses(rest);
            require(decode_addresses(encode_all(addresses)) == addresses, "encoded addresses decode to the same");
            break;
          }
          case 't':
            require(same(tcp::encode_address(tcp::decode_address(rest, 1)), rest), "an address is its parts");
            break;
          case 's': require(same(encode(decode_shm_address(rest, 1)), rest), "an address is its parts"); break;
          case 'm': require(same(encode(decode_memory_request(rest)), rest), "a request is its parts"); break;
          default: {
            const tcp::Hello hello = tcp::decode_hello(rest);
            require(same(tcp::encode(hello), rest), "a hello is its parts");
            // What is accepted will be allocated.
            require(hello.kind != tcp::HelloKind::data || hello.layout.bytes() <= std::size_t{5} << 28,
                    "a connection takes about a gibibyte at most");
          }
        }
      },
      {ErrorCode::transport});
}

}  // namespace rondo::fuzz
