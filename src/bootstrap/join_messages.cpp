#include "bootstrap/join_messages.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr std::uint32_t protocol_version = 1;

void put_info(base::ByteWriter& writer, const PeerInfo& info) {
  writer.put_string(info.host).put(info.pid).put_string(info.settings).put_bytes(info.blob);
  writer.put(static_cast<std::uint32_t>(info.addresses.size()));
  for (const auto& address : info.addresses) writer.put_string(address);
}

PeerInfo get_info(base::ByteReader& reader) {
  PeerInfo info;
  info.host = reader.get_string();
  info.pid = reader.get<std::int64_t>();
  info.settings = reader.get_string();
  const auto blob = reader.get_bytes();
  info.blob.assign(blob.begin(), blob.end());
  const std::size_t addresses = reader.get_count(4);
  for (std::size_t i = 0; i < addresses; ++i) info.addresses.push_back(reader.get_string());
  return info;
}

void put_outcome(base::ByteWriter& writer, const std::optional<Error>& error) {
  writer.put(static_cast<std::uint8_t>(error ? 1 : 0));
  if (!error) return;
  writer.put(error->code()).put_string(error->message()).put_string(error->hint());
  writer.put(static_cast<std::int32_t>(error->peer()));
}

std::optional<Error> get_outcome(base::ByteReader& reader) {
  if (reader.get<std::uint8_t>() == 0) return std::nullopt;
  const ErrorCode code = base::get_error_code(reader);
  auto message = reader.get_string();
  auto hint = reader.get_string();
  const int peer = reader.get<std::int32_t>();
  return Error(code, std::move(message), std::move(hint), peer);
}

std::map<std::string, std::string> parse_settings(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    out[line.substr(0, equals)] = equals == std::string::npos ? std::string() : line.substr(equals + 1);
  }
  return out;
}

}  // namespace

std::vector<std::byte> encode(const JoinRequest& request) {
  base::ByteWriter writer;
  writer.put(protocol_version).put(request.rank).put(request.size).put(request.patience);
  put_info(writer, request.self);
  return writer.take();
}

JoinRequest decode_join_request(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  const auto version = reader.get<std::uint32_t>();
  if (version != protocol_version) {
    throw Error(ErrorCode::configuration,
                fmt::format("a rank joins with version {} of the protocol, the rendezvous speaks version {}", version,
                            protocol_version),
                "run the same version of Rondo on all ranks");
  }
  JoinRequest request;
  request.rank = reader.get<std::int32_t>();
  request.size = reader.get<std::int32_t>();
  request.patience = reader.get<base::Nanoseconds>();
  request.self = get_info(reader);
  reader.expect_end();
  return request;
}

std::vector<std::byte> encode(const JoinAnswer& answer) {
  base::ByteWriter writer;
  put_outcome(writer, answer.error);
  if (!answer.error) {
    writer.put(static_cast<std::uint32_t>(answer.peers.size()));
    for (const auto& info : answer.peers) put_info(writer, info);
  }
  return writer.take();
}

JoinAnswer decode_join_answer(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  JoinAnswer answer;
  answer.error = get_outcome(reader);
  if (!answer.error) {
    constexpr std::size_t least = 4 + 8 + 4 + 4 + 4;
    const std::size_t count = reader.get_count(least);
    for (std::size_t i = 0; i < count; ++i) answer.peers.push_back(get_info(reader));
  }
  reader.expect_end();
  return answer;
}

std::vector<std::byte> encode_outcome(const std::optional<Error>& error) {
  base::ByteWriter writer;
  put_outcome(writer, error);
  return writer.take();
}

std::optional<Error> decode_outcome(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  auto error = get_outcome(reader);
  reader.expect_end();
  return error;
}

std::string describe(int rank, const PeerInfo& info) {
  return fmt::format("rank {} ({}, pid {})", rank, info.host, info.pid);
}

std::string settings_difference(int rank_a, const PeerInfo& a, int rank_b, const PeerInfo& b) {
  if (a.settings == b.settings) return {};
  const auto theirs = parse_settings(a.settings);
  const auto ours = parse_settings(b.settings);
  const auto value_in = [](const std::map<std::string, std::string>& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("unset") : "'" + found->second + "'";
  };
  auto names = theirs;
  names.insert(ours.begin(), ours.end());
  for (const auto& [name, unused] : names) {
    const auto value_a = value_in(theirs, name);
    const auto value_b = value_in(ours, name);
    if (value_a != value_b) {
      return fmt::format("{} is {} on {} and {} on {}", name, value_a, describe(rank_a, a), value_b,
                         describe(rank_b, b));
    }
  }
  return {};
}

}  // namespace rondo::bootstrap
