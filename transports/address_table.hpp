// What one rank tells the others about its transports while joining: each one's name and address, as bytes.
//
// Values and pure functions. The addresses themselves are the transports' own.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::transport {

std::vector<std::byte> encode_addresses(std::span<const std::pair<std::string_view, std::vector<std::byte>>> addresses);
// By name; of a name that comes twice the first counts. Throws Error(transport) on malformed bytes.
std::map<std::string, std::vector<std::byte>> decode_addresses(std::span<const std::byte> bytes);

}  // namespace rondo::transport
