// What a peer writes into a tcp connection: slots (1), their size (1), the size of its writes (1), then the stream.
#include "harness/target.hpp"
#include "transports/tcp/receiver.hpp"

#include <sys/socket.h>

#include <array>

namespace rondo::fuzz {
namespace {

using namespace transport;

struct Message {
  std::uint32_t signature;
  Bytes payload;
  bool operator==(const Message&) const = default;
};

// What the stream holds, by the rules of the header alone. `good`: no message is malformed.
std::vector<Message> messages_of(std::span<const std::byte> stream, std::size_t slot_bytes, bool& good) {
  std::vector<Message> messages;
  base::ByteReader reader(stream);
  good = true;
  while (reader.left() >= tcp::header_bytes) {
    const auto signature = reader.get<std::uint32_t>();
    const auto packed = reader.get<std::uint32_t>();
    const auto number = reader.get<std::uint64_t>();
    const std::size_t length = packed >> 2;
    good = number == messages.size() + 1 && (packed & 3U) < 2 && length <= ((packed & 3U) == 0 ? 48 : slot_bytes);
    if (!good || length > reader.left()) break;
    const auto payload = reader.get_raw(length);
    messages.push_back({signature, {payload.begin(), payload.end()}});
  }
  return messages;
}

void take_messages(ReceiveEnd& end, std::vector<Message>& got) {
  while (const SlotLine* line = end.try_peek()) {
    const std::size_t length = ReceiveEnd::length(*line);
    const std::byte* payload = ReceiveEnd::kind(*line) == PayloadKind::inlined ? line->payload : end.slot();
    got.push_back({line->signature, Bytes(payload, payload + length)});
    end.release();
  }
}

}  // namespace

std::vector<Bytes> seeds() {
  base::ByteWriter stream;
  stream.put(std::uint8_t{2}).put(std::uint8_t{3}).put(std::uint8_t{9});
  std::uint64_t number = 0;
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{100}, std::size_t{256}, std::size_t{48}, std::size_t{1}}) {
    const auto kind = length <= 48 ? PayloadKind::inlined : PayloadKind::slot;
    const auto packed = static_cast<std::uint32_t>(length << 2) | static_cast<std::uint32_t>(kind);
    stream.put_raw(tcp::encode(tcp::MessageHeader{77, packed, ++number})).put_raw(Bytes(length, std::byte{0x42}));
  }
  return {stream.take()};
}

bool parse(std::span<const std::byte> input) {
  static const std::unique_ptr<base::Poller> poller = base::Poller::make_real();
  static tcp::WireEvents events(*poller);
  static const bootstrap::Key key{};
  static base::DoorbellWord bell;

  Cutter cut(input.first(std::min<std::size_t>(input.size(), 32768)));  // a socket takes that without being read
  const std::uint32_t slots = 1U << (cut.byte() % 4);
  const std::uint32_t slot_bytes = 64U * (1U + cut.byte() % 16U);
  const std::size_t chunk = std::size_t{cut.byte()} * 16 + 1;
  const auto stream = cut.rest();
  bool good = false;
  const auto expected = messages_of(stream, slot_bytes, good);

  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
  base::FileDescriptor wire(ends[0]);
  const auto receiver = tcp::TcpReceiver::create({base::System::real(), bell, events, key, 1}, {1, 0, 1, 0},
                                                 {slots, slot_bytes}, base::FileDescriptor(ends[1]));
  ReceiveEnd& end = receiver->end();
  std::vector<Message> got;
  bool refused = false;
  const auto progress = [&] {
    std::size_t before = 0;
    do {
      before = got.size();
      refused = !accepts([&] { receiver->progress(); }, {ErrorCode::transport});
      take_messages(end, got);
    } while (got.size() != before && !refused);
  };
  for (std::size_t at = 0; at < stream.size() && !refused; at += chunk) {
    const auto part = stream.subspan(at, std::min(chunk, stream.size() - at));
    static_cast<void>(::send(wire.get(), part.data(), part.size(), MSG_NOSIGNAL));
    progress();
  }
  require(refused == !good, "a malformed message is refused, and nothing else");
  require(got == expected, "the messages are those that were written");
  wire.reset();
  refused = false;
  for (int i = 0; i < 2 && !refused; ++i) progress();  // the first may take what the socket still holds
  require(refused && got == expected, "the end of the wire is told once all has been taken");
  return good;
}

}  // namespace rondo::fuzz
