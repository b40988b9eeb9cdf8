// What a neighbour writes into the socket of a control link: the size of its writes (1), then the stream.
#include "bootstrap/stream_link.hpp"

#include "harness/target.hpp"

#include <sys/socket.h>

#include <array>

namespace rondo::fuzz {
namespace {

std::array<base::FileDescriptor, 2> socket_pair() {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

// What the stream holds, by the rule alone. `good`: no frame is longer than allowed.
std::vector<Bytes> frames_of(std::span<const std::byte> stream, bool& good) {
  std::vector<Bytes> frames;
  base::ByteReader reader(stream);
  good = true;
  while (reader.left() >= 4) {
    const std::size_t length = reader.get<std::uint32_t>();
    good = length <= bootstrap::StreamLink::frame_limit;
    if (!good || length > reader.left()) break;
    const auto frame = reader.get_raw(length);
    frames.emplace_back(frame.begin(), frame.end());
  }
  return frames;
}

}  // namespace

std::vector<Bytes> seeds() {
  base::ByteWriter stream;
  stream.put(std::uint8_t{3}).put_string("first").put_string("").put_string(std::string(300, 'x'));
  return {stream.take()};
}

bool parse(std::span<const std::byte> input) {
  Cutter cut(input.first(std::min<std::size_t>(input.size(), 32768)));  // a socket takes that without being read
  const std::size_t chunk = std::size_t{cut.byte()} * 16 + 1;
  const auto stream = cut.rest();
  bool good = false;
  const auto expected = frames_of(stream, good);

  std::vector<Bytes> got;
  auto [wire, end] = socket_pair();
  bootstrap::StreamLink link(std::move(end));
  for (std::size_t at = 0; at < stream.size(); at += chunk) {
    const auto part = stream.subspan(at, std::min(chunk, stream.size() - at));
    static_cast<void>(::send(wire.get(), part.data(), part.size(), MSG_NOSIGNAL));
    while (auto frame = link.receive()) got.push_back(std::move(*frame));
  }
  require(got == expected, "the frames are those that were written");
  require(link.closed() == !good && link.why().empty() == good, "a frame that is too long breaks the link");
  wire.reset();
  require(!link.receive() && link.closed(), "half a frame never comes");

  auto [first, second] = socket_pair();
  bootstrap::StreamLink from(std::move(first));
  bootstrap::StreamLink to(std::move(second));
  std::vector<Bytes> back;
  for (const Bytes& frame : got) from.send(frame);
  while (auto frame = to.receive()) back.push_back(std::move(*frame));
  require(back == got || got.size() > 64, "what is sent arrives");  // more may fill the socket
  return good;
}

}  // namespace rondo::fuzz
