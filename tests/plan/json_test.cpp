// Plans as JSON: every built-in one comes back as it was; what is no plan is refused by its place.
#include "plan/json.hpp"

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rondo/error.hpp>

#include <string>
#include <vector>

namespace rondo::plan {
namespace {

using testing::HasSubstr;

TEST(PlanJson, EveryBuiltInPlanComesBackAsItWas) {
  for (const algorithms::Algorithm& a : algorithms::all())
    for (const std::int32_t n : {1, 2, 3, 5, 8}) {
      const auto plans = generate_all(a.generate, {a.collective, n, n - 1});
      const auto back = from_json(to_json(plans), "a file");
      EXPECT_EQ(back, plans) << a.name << " of " << name_of(a.collective) << " among " << n;
      EXPECT_TRUE(check_plan(back).ok());
    }
}

// A ring among three, with one text in it replaced by another.
std::string changed(const std::string& from, const std::string& to) {
  const algorithms::Algorithm& ring = *algorithms::find(Collective::all_reduce, "ring");
  std::string text = to_json(generate_all(ring.generate, {Collective::all_reduce, 3, 0}));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    from_json(text, "my.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::plan);
    EXPECT_THAT(error.what(), HasSubstr("my.json"));
    return error.what();
  }
  ADD_FAILURE() << "it was taken: " << text.substr(0, 200);
  return "";
}

TEST(PlanJson, RefusesWhatIsNoPlanAndSaysWhere) {
  struct Case {
    const char *from, *to, *says;
  };
  const std::vector<Case> cases = {
      {"\"rondo-plan\"", "\"else\"", "format is of something else"},
      {"\"version\": 1", "\"version\": 2", "version is 2"},
      {"\"all_reduce\"", "\"all_redeuce\"", "collective is \"all_redeuce\""},
      {"\"size\": 3", "\"size\": 4", "size is 4"},
      {"\"root\": 0", "\"root\": 3", "root is 3"},
      {"\"root\": 0", "\"root\": 0.5", "root is a number with a fraction"},
      {"\"root\": 0", "\"root\": 99999999999999999999", "root is a number with a fraction"},
      {"\"root\": 0", "\"root\": 18446744073709551615", "root is 18446744073709551615"},
      {"\"rank_ordered\": false", "\"rank_ordered\": 0", "rank_ordered is a number"},
      {"\"ranks\"", "\"rank\"", "has a key \"rank\""},
      {"{\"rank\": 0", "{\"rank\": 1", "ranks[0].rank is 1"},
      {"\"input\": 3", "\"input\": -1", "ranks[0].chunks.input is -1"},
      {"\"base\":0", "\"base\":3", ".base is 3"},
      {"\"base\":0", "\"base\":null", ".base is null"},
      {"\"buffer\":\"input\"", "\"buffer\":\"in\"", ".buffer is \"in\""},
      {"\"conn\":0", "\"conn\":1", "ranks[0].connections[0].conn is 1"},
      {"\"direction\":\"out\"", "\"direction\":\"up\"", "direction is \"up\""},
      {"\"direction\":\"out\"", "\"direction\":[]", "direction is a list"},
      {"\"step\":0", "\"step\":1", "ranks[0].lanes[0].blocks[0].steps[0].step is 1"},
      {"\"operands\":", "\"operators\":", "has a key \"operators\""},
      {"\"count\": ", "\"count\": -", "blocks[0].count is -"},
      {"\"extent\":{\"chunk\"", "\"extent\":{\"chunks\"", "has a key \"chunks\""},
  };
  for (const Case& one : cases)
    EXPECT_THAT(refusal(changed(one.from, one.to)), HasSubstr(one.says)) << one.from << one.to;
}

TEST(PlanJson, NamesTheLineOfWhatIsNoJson) {
  EXPECT_THAT(refusal("{\n\"format\": \"rondo-plan\",\n\"version\": ]"), HasSubstr("line 3"));
  EXPECT_THAT(refusal(""), HasSubstr("my.json"));
  EXPECT_THAT(refusal("[1, 2"), HasSubstr("my.json"));
  EXPECT_THAT(refusal("[]"), HasSubstr("the file is a list"));
  EXPECT_THAT(refusal("\xff\xfe"), HasSubstr("my.json"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("my.json"));
}

TEST(PlanJson, AWrongPlanThatParsesIsForTheCheckerToName) {
  const auto plans = from_json(changed("\"finish\":true", "\"finish\":false"), "my.json");
  const CheckResult result = check_plan(plans);
  EXPECT_EQ(result.violation, Violation::finish) << result.message;
  EXPECT_GE(result.rank, 0);
}

}  // namespace
}  // namespace rondo::plan
