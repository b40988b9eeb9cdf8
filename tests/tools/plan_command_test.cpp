// `rondo plan` as a user meets it: what it prints where, and its exit status.
#include "tools/plan/command.hpp"

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rondo/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rondo::tools {
namespace {

using testing::HasSubstr;

struct Outcome {
  int status = 0;
  std::string output, errors;
};

Outcome plan(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome found;
  try {
    found.status = plan_command(arguments);
  } catch (const Error& error) {
    found.status = -1;
    found.errors = error.what();
  }
  std::fflush(stdout);
  std::fflush(stderr);
  found.output = testing::internal::GetCapturedStdout();
  found.errors += testing::internal::GetCapturedStderr();
  return found;
}

class PlanCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "rondo-plan-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) const {
    const std::string file = folder_ + "/plan.json";
    std::ofstream(file) << text;
    return file;
  }
  std::string folder_;
};

TEST_F(PlanCommand, WhatExportWritesCheckProves) {
  const Outcome exported = plan({"export", "--coll", "all_reduce", "--algo", "ring", "-n", "4"});
  EXPECT_EQ(exported.status, 0) << exported.errors;
  for (const char* key : {"\"rank\"", "\"lane\"", "\"step\"", "\"chunk\"", "\"conn\""})
    EXPECT_THAT(exported.output, HasSubstr(key));
  const Outcome checked = plan({"check", write(exported.output)});
  EXPECT_EQ(checked.status, 0) << checked.errors;
  EXPECT_THAT(checked.output, HasSubstr("all_reduce ring of 4 ranks is right"));
}

TEST_F(PlanCommand, CheckNamesRankLaneAndStepOfWhatIsWrong) {
  std::string text = plan({"export", "--coll", "all_reduce", "--algo", "ring", "-n", "4"}).output;
  const std::string input = "\"operands\":[{\"chunk\":{\"buffer\":\"input\"";  // of rank 0's first step
  ASSERT_NE(text.find(input), std::string::npos);
  text.replace(text.find(input), input.size(), "\"operands\":[{\"chunk\":{\"buffer\":\"output\"");
  const Outcome checked = plan({"check", write(text)});
  EXPECT_EQ(checked.status, 1);
  for (const char* word : {"plan.json: ", "undefined", "rank 0", "lane 0", "step 0"})
    EXPECT_THAT(checked.errors, HasSubstr(word));
}

TEST_F(PlanCommand, SaysWhatThereIsWhenAskedForWhatThereIsNot) {
  EXPECT_THAT(plan({"export", "--coll", "all_reduce", "--algo", "best", "-n", "4"}).errors, HasSubstr("one_shot"));
  EXPECT_THAT(plan({"export", "--coll", "reduce_all", "--algo", "ring", "-n", "4"}).errors, HasSubstr("all_reduce"));
  EXPECT_THAT(plan({"export", "--algo", "ring", "-n", "0"}).errors, HasSubstr("1 to 4096"));
  EXPECT_THAT(plan({"export", "--coll", "broadcast", "--algo", "ring", "-n", "3", "--root", "3"}).errors,
              HasSubstr("0 to 2"));
  EXPECT_THAT(plan({"check", folder_ + "/none.json"}).errors, HasSubstr("No such file"));
  EXPECT_THAT(plan({"check", write("{}")}).errors, HasSubstr("lacks \"format\""));
  EXPECT_EQ(plan({"chekc"}).status, 2);
  EXPECT_EQ(plan({}).status, 2);
  EXPECT_EQ(plan({"--help"}).status, 0);
}

TEST_F(PlanCommand, DrawsEachConnectionOnceWithItsMessages) {
  const Outcome drawn = plan({"draw", "--coll", "broadcast", "--algo", "chain", "-n", "4", "--root", "1"});
  EXPECT_EQ(drawn.status, 0) << drawn.errors;
  EXPECT_THAT(drawn.output, HasSubstr("1 [shape=doublecircle]"));
  for (const char* edge : {"1 -> 2 [label=\"1\"", "1 -> 0 [label=\"1\"", "2 -> 3 [label=\"1\""})
    EXPECT_THAT(drawn.output, HasSubstr(edge));
  const std::string file = folder_ + "/a b's.dot";
  EXPECT_EQ(plan({"draw", "--algo", "ring", "-n", "3", "-o", file}).status, 0);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("digraph"));
  EXPECT_THAT(plan({"draw", "--algo", "ring", "-n", "3", "-o", folder_ + "/a.png"}).errors, HasSubstr(".svg or .dot"));
}

}  // namespace
}  // namespace rondo::tools
