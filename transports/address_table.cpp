#include "transports/address_table.hpp"

#include "base/bytes.hpp"

namespace rondo::transport {

std::vector<std::byte> encode_addresses(
    std::span<const std::pair<std::string_view, std::vector<std::byte>>> addresses) {
  base::ByteWriter writer;
  writer.put(static_cast<std::uint32_t>(addresses.size()));
  for (const auto& [name, address] : addresses) writer.put_string(name).put_bytes(address);
  return writer.take();
}

std::map<std::string, std::vector<std::byte>> decode_addresses(std::span<const std::byte> bytes) {
  std::map<std::string, std::vector<std::byte>> addresses;
  base::ByteReader reader(bytes);
  const std::size_t count = reader.get_count(8);
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = reader.get_string();
    const auto address = reader.get_bytes();
    addresses.emplace(std::move(name), std::vector<std::byte>(address.begin(), address.end()));
  }
  reader.expect_end();
  return addresses;
}

}  // namespace rondo::transport
