// Addresses, port ranges and interface filters. The first byte says which.
#include "base/socket.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const char* text : {"a10.0.0.1:5000", "a[2001:db8::1]:5000", "a::1", "a[::ffff:10.0.0.1]", "p5000-5100",
                           "p65535", "ieth0\neth,^docker, ib"}) {
    inputs.push_back(bytes_of(text));
  }
  return inputs;
}

bool parse(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const std::string text = text_of(input.subspan(1));
  switch (static_cast<char>(input[0])) {
    case 'a':
      return accepts(
          [&] {
            const auto address = base::SocketAddress::parse(text);
            require(text.find_first_not_of("0123456789abcdefABCDEF.:[]") == std::string::npos,
                    "an address has nothing but numbers");
            require(base::SocketAddress::parse(address.to_string()).to_string() == address.to_string(),
                    "a printed address parses to the same");
            const auto again = base::SocketAddress::from_bytes(address.address_bytes(), address.port());
            require(again.to_string() == address.to_string(), "an address's bytes are all of it");
            require(base::SocketAddress::from_native(address.native()).to_string() == address.to_string(),
                    "the kernel's form is all of it");
          },
          {ErrorCode::invalid_argument});
    case 'p':
      return accepts(
          [&] {
            const auto range = base::PortRange::parse(text, "RONDO_PORT_RANGE");
            require(range.first >= 1 && range.first <= range.last, "a range rises");
            const auto again =
                base::PortRange::parse(std::to_string(range.first) + '-' + std::to_string(range.last), "");
            require(again.first == range.first && again.last == range.last, "a printed range parses to the same");
          },
          {ErrorCode::configuration});
    default: {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string name = text.substr(0, end);
      const std::string filter = text.substr(std::min(end + 1, text.size()));
      const bool allowed = base::interface_allowed(name, filter);
      require(base::interface_allowed(name, filter + ",") == allowed, "an empty part of a filter says nothing");
      return true;
    }
  }
}

}  // namespace rondo::fuzz
