#include "base/format.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace rondo::base {
namespace {

TEST(ParseBytes, TakesBinaryUnitsInAnyCase) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4097"), 4097U);
  EXPECT_EQ(parse_bytes("512B"), 512U);
  EXPECT_EQ(parse_bytes("64K"), 65536U);
  EXPECT_EQ(parse_bytes("64kib"), 65536U);
  EXPECT_EQ(parse_bytes("1MB"), 1048576U);
  EXPECT_EQ(parse_bytes("2g"), 2147483648U);
  EXPECT_EQ(parse_bytes("1T"), 1099511627776U);
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "K", "-1", "+1", "1.5M", "64KK", "64 K", " 64", "64X", "1iB", "0x10", "64Ki"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(ParseBytes, RefusesOverflow) {
  EXPECT_EQ(parse_bytes("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_bytes("18446744073709551616"));
  EXPECT_EQ(parse_bytes("16777215T"), 16777215ULL << 40);
  EXPECT_FALSE(parse_bytes("16777216T"));
}

TEST(FormatBytes, IsTheShortestExactForm) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(1023), "1023");
  EXPECT_EQ(format_bytes(65536), "64K");
  EXPECT_EQ(format_bytes(65537), "65537");
  EXPECT_EQ(format_bytes(3ULL << 30), "3G");
}

TEST(ParseDuration, TakesUnitsAndFractions) {
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("5ns"), 5);
  EXPECT_EQ(parse_duration("20us"), 20'000);
  EXPECT_EQ(parse_duration("500ms"), 500'000'000);
  EXPECT_EQ(parse_duration("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_duration("0.000000001s"), 1);
  EXPECT_EQ(parse_duration("10min"), 600'000'000'000);
  EXPECT_EQ(parse_duration("0.5min"), 30'000'000'000);
  EXPECT_EQ(parse_duration("2h"), 7'200'000'000'000);
}

TEST(ParseDuration, RefusesWhatIsNoTime) {
  for (const char* text : {"", "s", "10", "-1s", "1.s", ".5s", "1 s", "1m", "1sec", "0.5ns", "1e3s", "0.0000000001s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(ParseDuration, RefusesOverflow) {
  EXPECT_EQ(parse_duration("9223372036854775807ns"), INT64_MAX);
  EXPECT_FALSE(parse_duration("9223372036854775808ns"));
  EXPECT_FALSE(parse_duration("9223372036854775807s"));
  EXPECT_FALSE(parse_duration("9223372036.9s"));
}

TEST(FormatDuration, IsTheShortestExactForm) {
  EXPECT_EQ(format_duration(0), "0");
  EXPECT_EQ(format_duration(1'500'000'000), "1500ms");
  EXPECT_EQ(format_duration(60'000'000'000), "1min");
  EXPECT_EQ(format_duration(61'000'000'000), "61s");
  EXPECT_EQ(format_duration(7'200'000'000'000), "2h");
  EXPECT_EQ(format_duration(1'001), "1001ns");
}

TEST(Format, PrintedValuesParseToThemselves) {
  for (std::uint64_t v = 1; v < (1ULL << 60); v = v * 3 + 1) {
    EXPECT_EQ(parse_bytes(format_bytes(v)), v);
    EXPECT_EQ(parse_duration(format_duration(static_cast<std::int64_t>(v))), static_cast<std::int64_t>(v));
  }
}

TEST(ParseInteger, TakesNothingAroundTheNumber) {
  EXPECT_EQ(parse_integer("-7"), -7);
  for (const char* text : {"", "7 ", " 7", "7a", "+7", "9223372036854775808"})
    EXPECT_FALSE(parse_integer(text)) << text;
}

}  // namespace
}  // namespace rondo::base
