#include "perf/harness/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rondo::perf {
namespace {

Options parse(std::vector<std::string> arguments) { return parse_options(arguments); }

std::string refusal(std::vector<std::string> arguments) {
  try {
    parse_options(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PerfOptions, DefaultsAreThoseOfNcclTests) {
  const Options options = parse({});
  EXPECT_EQ(options.min_bytes, 33554432u);
  EXPECT_EQ(options.max_bytes, 33554432u);
  EXPECT_EQ(options.step_bytes, 1048576u);
  EXPECT_EQ(options.step_factor, 1u);
  EXPECT_EQ(options.iterations, 20);
  EXPECT_EQ(options.warmup, 1);
  EXPECT_EQ(options.aggregated, 1);
  EXPECT_EQ(options.cycles, 1);
  EXPECT_EQ(options.op, ReduceOp::sum);
  EXPECT_EQ(options.type, DataType::float32);
  EXPECT_EQ(options.root, 0);
  EXPECT_EQ(options.checks, 1);
  EXPECT_EQ(options.average, Average::mean);
  EXPECT_FALSE(options.windows);
}

TEST(PerfOptions, FlagsTakeTheirValueInEveryUsualForm) {
  for (const auto& form :
       std::vector<std::vector<std::string>>{{"-b", "1K"}, {"-b1K"}, {"--minbytes", "1K"}, {"--minbytes=1K"}}) {
    EXPECT_EQ(parse(form).min_bytes, 1024u) << form.front();
  }
}

TEST(PerfOptions, SizesHaveBinaryUnits) {
  EXPECT_EQ(parse_size("-b", "8"), 8u);
  EXPECT_EQ(parse_size("-b", "8B"), 8u);
  EXPECT_EQ(parse_size("-b", "1k"), 1024u);
  EXPECT_EQ(parse_size("-b", "64M"), 67108864u);
  EXPECT_EQ(parse_size("-b", "1G"), 1073741824u);
  EXPECT_EQ(parse_size("-b", "1GiB"), 1073741824u);
}

TEST(PerfOptions, MalformedSizesAreRefusedWithAnExample) {
  for (const char* text : {"", "-1", "x", "8X", "8KX", "8BB", " 8", "1.5M", "99999999999999999999", "9999999999999G"}) {
    EXPECT_THROW(parse_size("-b", text), UsageError) << text;
  }
  EXPECT_TRUE(mentions(refusal({"-b", "eight"}), "-b eight")) << refusal({"-b", "eight"});
  EXPECT_TRUE(mentions(refusal({"-b", "eight"}), "64M"));
}

TEST(PerfOptions, CountsOutOfRangeAreRefused) {
  for (const auto& form : std::vector<std::vector<std::string>>{{"-n", "0"},
                                                                {"-n", "-1"},
                                                                {"-n", "1x"},
                                                                {"-n", "99999999999"},
                                                                {"-w", "-1"},
                                                                {"-m", "0"},
                                                                {"-f", "1"},
                                                                {"-a", "4"},
                                                                {"-T", "0"},
                                                                {"-I", "2"},
                                                                {"-R", "3"},
                                                                {"-r", "-1"},
                                                                {"-J", ""},
                                                                {"-n"}}) {
    EXPECT_NE(refusal(form), "accepted") << form.front();
  }
}

TEST(PerfOptions, UnknownOptionsAreRefused) {
  EXPECT_TRUE(mentions(refusal({"--size", "8"}), "--size"));
  EXPECT_TRUE(mentions(refusal({"-X", "8"}), "-X"));
  EXPECT_NE(refusal({"8"}), "accepted");
  EXPECT_NE(refusal({"-"}), "accepted");
  EXPECT_NE(refusal({"--"}), "accepted");
}

TEST(PerfOptions, CudaFlagsAreAcceptedOnlyWithTheirNeutralValue) {
  EXPECT_EQ(refusal({"-t", "1", "-g", "1", "-p", "0", "-z", "0", "-y", "0", "-G", "0", "-C", "0"}), "accepted");
  for (const char* flag : {"-p", "-z", "-y", "-G", "-C"}) EXPECT_TRUE(mentions(refusal({flag, "1"}), "only 0")) << flag;
  EXPECT_TRUE(mentions(refusal({"-t", "2"}), "rondo run"));
  EXPECT_TRUE(mentions(refusal({"-g", "8"}), "rondo run"));
}

TEST(PerfOptions, TypesAndOperatorsHaveBothTheirNames) {
  EXPECT_EQ(parse({"-d", "half"}).type, DataType::float16);
  EXPECT_EQ(parse({"-d", "float16"}).type, DataType::float16);
  EXPECT_EQ(parse({"-d", "fp8_e5m2"}).type, DataType::float8_e5m2);
  EXPECT_EQ(parse({"-d", "all"}).type, std::nullopt);
  EXPECT_EQ(parse({"-o", "mulsum"}).op, ReduceOp::scaled_sum);
  EXPECT_EQ(parse({"-o", "scaled_sum"}).op, ReduceOp::scaled_sum);
  EXPECT_EQ(parse({"-o", "all"}).op, std::nullopt);
  EXPECT_TRUE(mentions(refusal({"-d", "quad"}), "bfloat16"));
}

TEST(PerfOptions, APairThatDoesNotExistIsRefusedOrLeftOut) {
  EXPECT_NE(refusal({"-d", "float", "-o", "band"}), "accepted");
  EXPECT_NE(refusal({"-d", "int8", "-o", "mulsum"}), "accepted");
  const Options all_types = parse({"-d", "all", "-o", "bxor"});
  EXPECT_TRUE(ops_of(all_types, DataType::float32).empty());
  EXPECT_EQ(ops_of(all_types, DataType::int8), std::vector<ReduceOp>{ReduceOp::bxor});
}

TEST(PerfOptions, AllMeansEveryValidPairOnce) {
  const Options options = parse({"-d", "all", "-o", "all"});
  EXPECT_EQ(types_of(options).size(), 12u);
  // Six integer types with sum prod min max avg and three bitwise ones, six others with the first five and scaled_sum.
  std::size_t pairs = 0;
  for (const DataType type : types_of(options)) pairs += ops_of(options, type).size();
  EXPECT_EQ(pairs, 6u * 8u + 6u * 6u);
}

TEST(PerfOptions, SweepsMultiplyOrAdd) {
  EXPECT_EQ(sweep(parse({"-b", "8", "-e", "64", "-f", "2"})), (std::vector<std::size_t>{8, 16, 32, 64}));
  EXPECT_EQ(sweep(parse({"-b", "8", "-e", "100", "-f", "3"})), (std::vector<std::size_t>{8, 24, 72}));
  EXPECT_EQ(sweep(parse({"-b", "8", "-e", "40", "-i", "16"})), (std::vector<std::size_t>{8, 24, 40}));
  EXPECT_EQ(sweep(parse({"-b", "0", "-e", "8", "-i", "8"})), (std::vector<std::size_t>{0, 8}));
  EXPECT_EQ(sweep(parse({})), (std::vector<std::size_t>{33554432}));
}

TEST(PerfOptions, SweepsThatWouldNotEndAreRefused) {
  EXPECT_NE(refusal({"-b", "16", "-e", "8"}), "accepted");
  EXPECT_NE(refusal({"-b", "8", "-e", "16", "-i", "0"}), "accepted");
  EXPECT_NE(refusal({"-b", "0", "-e", "16", "-f", "2"}), "accepted");
}

TEST(PerfOptions, RootsMustExist) {
  EXPECT_EQ(roots_of(parse({"-r", "all"}), 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(roots_of(parse({"-r", "2"}), 3), (std::vector<int>{2}));
  EXPECT_THROW(roots_of(parse({"-r", "3"}), 3), UsageError);
}

TEST(PerfOptions, HelpListsEveryFlag) {
  const std::string text = help_text("all_reduce_perf", "title");
  for (const char letter : std::string("befinwmNodrcTaRISMJtgpzyGCh")) {
    EXPECT_TRUE(mentions(text, std::string("-") + letter + ",")) << letter;
  }
}

}  // namespace
}  // namespace rondo::perf
