// RONDO_ALGO.
#include "tuner/choice.hpp"

#include "harness/target.hpp"

#include <fmt/format.h>

#include <limits>

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  return {bytes_of("all_reduce:0-4k=one_shot,4k-inf=ring;broadcast:0-inf=chain"), bytes_of("barrier:0-1=one_shot")};
}

bool parse(std::span<const std::byte> input) {
  return accepts(
      [&] {
        const auto pins = tuner::parse_pins(text_of(input));
        std::string printed;
        for (const auto& pin : pins) {
          require(pin.algorithm != nullptr && pin.algorithm->collective == pin.collective && pin.from < pin.to,
                  "a pin names a range and an algorithm of its collective");
          printed += fmt::format("{}:{}-{}={};", name_of(pin.collective), pin.from,
                                 pin.to == std::numeric_limits<std::uint64_t>::max() ? "inf" : std::to_string(pin.to),
                                 pin.algorithm->name);
        }
        const auto again = tuner::parse_pins(printed);
        require(std::equal(pins.begin(), pins.end(), again.begin(), again.end(),
                           [](const tuner::Pin& a, const tuner::Pin& b) {
                             return a.collective == b.collective && a.from == b.from && a.to == b.to &&
                                    a.algorithm == b.algorithm;
                           }),
                "printed pins parse to the same");
      },
      {ErrorCode::configuration});
}

}  // namespace rondo::fuzz
