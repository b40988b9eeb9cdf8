#include "engine/messages.hpp"

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <utility>

namespace rondo::engine {
namespace {

void put(base::ByteWriter& out, const Signature& s) {
  out.put(s.sequence).put(s.collective).put(s.type).put(s.op).put(s.root).put(s.count).put(s.table);
}
Signature get_signature(base::ByteReader& in) {
  Signature s;
  s.sequence = in.get<std::uint64_t>();
  s.collective = in.get<Collective>();
  s.type = in.get<DataType>();
  s.op = in.get<ReduceOp>();
  s.root = in.get<std::int32_t>();
  s.count = in.get<std::uint64_t>();
  s.table = in.get<std::uint64_t>();
  return s;
}
constexpr std::size_t signature_bytes = 8 + 1 + 1 + 1 + 4 + 8 + 8;

}  // namespace

std::vector<std::byte> encode_inquiry(std::span<const Signature> signatures) {
  base::ByteWriter out;
  out.put(static_cast<std::uint32_t>(signatures.size()));
  for (const Signature& signature : signatures) put(out, signature);
  return out.take();
}

std::vector<Signature> decode_inquiry(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  const std::size_t count = in.get_count(signature_bytes);
  if (count > signatures_an_inquiry) {
    throw Error(ErrorCode::transport, fmt::format("malformed frame: an inquiry of {} signatures; at most {} are sent",
                                                  count, signatures_an_inquiry));
  }
  std::vector<Signature> signatures;
  for (std::size_t i = 0; i < count; ++i) signatures.push_back(get_signature(in));
  in.expect_end();
  return signatures;
}

std::vector<std::byte> encode(const StatusMessage& status) {
  base::ByteWriter out;
  out.put(status.last_called).put<std::uint8_t>(status.running ? 1 : 0).put_string(status.progress);
  return out.take();
}

StatusMessage decode_status(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  StatusMessage status;
  status.last_called = in.get<std::uint64_t>();
  status.running = in.get<std::uint8_t>() != 0;
  status.progress = in.get_string();
  in.expect_end();
  return status;
}

std::vector<std::byte> encode_verdict(const Error& error) {
  base::ByteWriter out;
  out.put(error.code()).put(static_cast<std::int32_t>(error.peer()));
  out.put_string(error.message()).put_string(error.hint());
  return out.take();
}

Error decode_verdict(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  const ErrorCode code = base::get_error_code(in);
  const auto peer = in.get<std::int32_t>();
  std::string message = in.get_string();
  std::string hint = in.get_string();
  in.expect_end();
  return Error(code, std::move(message), std::move(hint), peer);
}

}  // namespace rondo::engine
