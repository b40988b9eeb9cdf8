// What ranks and the rendezvous tell each other while joining. The first byte says which message.
#include "bootstrap/join_messages.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {
namespace {

using namespace bootstrap;

template <class Decode>
bool check(std::span<const std::byte> bytes, Decode decode) {
  return accepts(
      [&] {
        const Bytes once = encode(decode(bytes));
        require(same(encode(decode(once)), once), "an encoded message decodes to the same");
      },
      {ErrorCode::transport, ErrorCode::configuration});
}

PeerInfo example(int rank) {
  PeerInfo info;
  info.host = "host";
  info.pid = 17 + rank;
  info.settings = "RONDO_ALGO=ring\nRONDO_DETERMINISTIC=0\n";
  info.blob = bytes_of("blob");
  info.addresses = {"10.0.0.1:5000", "[::1]:5000"};
  return info;
}

}  // namespace

std::vector<Bytes> seeds() {
  const Error error(ErrorCode::deadline, "rank 1 did not join", "start it", 1);
  return {with_kind('r', encode(JoinRequest{1, 2, 60'000'000'000, example(1)})),
          with_kind('a', encode(JoinAnswer{std::nullopt, {example(0), example(1)}})),
          with_kind('a', encode(JoinAnswer{error, {}})),
          with_kind('o', encode_outcome(error)),
          with_kind('o', encode_outcome(std::nullopt)),
          with_kind('s', bytes_of("RONDO_ALGO=a\nRONDO_FIFO_BYTES=1\n|RONDO_ALGO=b\n"))};
}

bool parse(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const auto rest = input.subspan(1);
  switch (static_cast<char>(input[0])) {
    case 'r': return check(rest, decode_join_request);
    case 'a': return check(rest, decode_join_answer);
    case 'o':
      return accepts(
          [&] {
            const auto outcome = decode_outcome(rest);
            if (outcome) require(name_of(outcome->code()) != "unknown", "an error has a code that there is");
            const Bytes once = encode_outcome(outcome);
            require(same(encode_outcome(decode_outcome(once)), once), "an encoded outcome decodes to the same");
          },
          {ErrorCode::transport});
    default: {
      const std::string text = text_of(rest);
      const std::size_t middle = std::min(text.find('|'), text.size());
      PeerInfo a = example(0);
      PeerInfo b = example(1);
      a.settings = text.substr(0, middle);
      b.settings = text.substr(std::min(middle + 1, text.size()));
      require(settings_difference(0, a, 0, a).empty(), "settings do not differ from themselves");
      require(settings_difference(0, a, 1, b).empty() == settings_difference(1, b, 0, a).empty(),
              "whether settings differ does not depend on the order");
      return true;
    }
  }
}

}  // namespace rondo::fuzz
