// What engines tell each other of operations that take long and of failures. The first byte says which message.
#include "engine/messages.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {
namespace {

using namespace engine;

char letter(MessageType type) { return static_cast<char>(type); }

}  // namespace

std::vector<Bytes> seeds() {
  const std::vector<Signature> signatures = {{1, Collective::all_reduce, DataType::float32, ReduceOp::sum, -1, 1024, 5},
                                             {2, Collective::broadcast, DataType::int8, ReduceOp::sum, 3, 7, 5},
                                             {3, Collective::barrier, DataType::int8, ReduceOp::sum, -1, 0, 5}};
  const Signature uneven{4, Collective::all_to_all_v, DataType::float32, ReduceOp::sum, -1, 0, 5};
  return {
      with_kind(letter(MessageType::inquiry), encode(Inquiry{signatures, {}, true, 2})),
      with_kind(letter(MessageType::inquiry), encode(Inquiry{{uneven}, {{4, 10, 0}}, false, 0})),
      with_kind(letter(MessageType::status), encode(StatusMessage{17, true, "step 3 of 9", "split"})),
      with_kind(letter(MessageType::verdict), encode_verdict(Error(ErrorCode::mismatch, "they differ", "agree", 2)))};
}

bool parse(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const auto rest = input.subspan(1);
  return accepts(
      [&] {
        switch (static_cast<MessageType>(input[0])) {
          case MessageType::inquiry: {
            const Inquiry inquiry = decode_inquiry(rest);
            for (const Signature& s : inquiry.signatures) require(!describe(s).empty(), "a signature can be named");
            const Bytes once = encode(inquiry);
            require(same(encode(decode_inquiry(once)), once), "an encoded inquiry decodes to the same");
            break;
          }
          case MessageType::status: {
            const StatusMessage status = decode_status(rest);
            const Bytes once = encode(status);
            require(same(encode(decode_status(once)), once), "an encoded status decodes to the same");
            break;
          }
          default: {
            const Error error = decode_verdict(rest);
            require(name_of(error.code()) != "unknown", "an error has a code that there is");
            const Bytes once = encode_verdict(error);
            require(same(encode_verdict(decode_verdict(once)), once), "an encoded verdict decodes to the same");
          }
        }
      },
      {ErrorCode::transport});
}

}  // namespace rondo::fuzz
