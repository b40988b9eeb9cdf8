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
constexpr std::size_t pair_bytes = 3 * 8;

std::size_t get_count(base::ByteReader& in, std::size_t bytes_each, std::size_t most, const char* what) {
  const std::size_t count = in.get_count(bytes_each);
  if (count > most)
    throw Error(ErrorCode::transport,
                fmt::format("malformed frame: an inquiry of {} {}; at most {} are sent", count, what, most));
  return count;
}

}  // namespace

std::vector<std::byte> encode(const Inquiry& inquiry) {
  base::ByteWriter out;
  out.put(static_cast<std::uint32_t>(inquiry.signatures.size()));
  for (const Signature& signature : inquiry.signatures) put(out, signature);
  out.put(static_cast<std::uint32_t>(inquiry.pairs.size()));
  for (const PairCount& pair : inquiry.pairs) out.put(pair.sequence).put(pair.sends).put(pair.receives);
  out.put<std::uint8_t>(inquiry.blocked ? 1 : 0).put(inquiry.exchanges);
  return out.take();
}

Inquiry decode_inquiry(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  Inquiry inquiry;
  const std::size_t signatures = get_count(in, signature_bytes, Inquiry::most_signatures, "signatures");
  for (std::size_t i = 0; i < signatures; ++i) inquiry.signatures.push_back(get_signature(in));
  const std::size_t pairs = get_count(in, pair_bytes, PairCounts::most, "pairs of counts");
  for (std::size_t i = 0; i < pairs; ++i) {
    PairCount pair;
    pair.sequence = in.get<std::uint64_t>();
    pair.sends = in.get<std::uint64_t>();
    pair.receives = in.get<std::uint64_t>();
    inquiry.pairs.push_back(pair);
  }
  inquiry.blocked = in.get<std::uint8_t>() != 0;
  inquiry.exchanges = in.get<std::uint64_t>();
  in.expect_end();
  return inquiry;
}

std::vector<std::byte> encode(const StatusMessage& status) {
  base::ByteWriter out;
  out.put(status.last_called)
      .put<std::uint8_t>(status.running ? 1 : 0)
      .put_string(status.progress)
      .put_string(status.exchange);
  return out.take();
}

StatusMessage decode_status(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  StatusMessage status;
  status.last_called = in.get<std::uint64_t>();
  status.running = in.get<std::uint8_t>() != 0;
  status.progress = in.get_string();
  status.exchange = in.get_string();
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
