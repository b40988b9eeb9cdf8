#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rondo::base {
namespace {

TEST(Bytes, IntegersAreLittleEndian) {
  ByteWriter writer;
  writer.put(std::uint32_t{0x01020304}).put(std::int16_t{-2});
  const std::vector<std::byte> expected{std::byte{4}, std::byte{3},    std::byte{2},
                                        std::byte{1}, std::byte{0xfe}, std::byte{0xff}};
  EXPECT_EQ(writer.bytes(), expected);
}

TEST(Bytes, WhatIsWrittenIsRead) {
  ByteWriter writer;
  writer.put(std::numeric_limits<std::int64_t>::min()).put(std::numeric_limits<std::uint64_t>::max());
  writer.put_string("").put_string("rondo").put(ErrorCode::deadline);
  const auto bytes = writer.take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reader.get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(reader.get_string(), "");
  EXPECT_EQ(reader.get_string(), "rondo");
  EXPECT_EQ(reader.get<ErrorCode>(), ErrorCode::deadline);
  EXPECT_NO_THROW(reader.expect_end());
}

TEST(Bytes, EveryTruncationIsRefused) {
  ByteWriter writer;
  writer.put(std::uint16_t{1}).put_string("four").put(std::uint64_t{2});
  const auto bytes = writer.take();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ByteReader reader{std::span(bytes).first(length)};
    const auto read_all = [&] {
      reader.get<std::uint16_t>();
      reader.get_string();
      reader.get<std::uint64_t>();
    };
    EXPECT_THROW(read_all(), Error) << length;
  }
}

TEST(Bytes, ALengthBeyondTheEndIsRefusedWithoutAllocating) {
  ByteWriter writer;
  writer.put(std::numeric_limits<std::uint32_t>::max());
  const auto bytes = writer.take();
  EXPECT_THROW(ByteReader(bytes).get_bytes(), Error);
  EXPECT_THROW(ByteReader(bytes).get_string(), Error);
  EXPECT_THROW(ByteReader(bytes).get_count(1), Error);
}

TEST(Bytes, BytesBehindTheEndAreRefused) {
  const std::vector<std::byte> bytes(5);
  ByteReader reader(bytes);
  reader.get<std::uint32_t>();
  EXPECT_THROW(reader.expect_end(), Error);
}

}  // namespace
}  // namespace rondo::base
