#include "base/environment.hpp"

#include <rondo/error.hpp>

#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>

namespace rondo::base {
namespace {

using namespace std::chrono_literals;
using Variables = std::map<std::string, std::string>;

Lookup lookup_in(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::configuration) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

Settings settings_of(const Variables& variables, const Config& config = {}) {
  return resolve_settings(config, lookup_in(variables));
}

TEST(Variables, AreSortedAndFullyDescribed) {
  const auto all = known_variables();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const Variable& v : all) {
    EXPECT_EQ(v.name.rfind("RONDO_", 0), 0U) << v.name;
    for (const std::string_view field : {v.type, v.default_value, v.example, v.meaning}) {
      EXPECT_FALSE(field.empty()) << v.name;
    }
  }
}

TEST(UnknownVariable, IsRefusedWithTheNearestName) {
  const std::vector<std::string> names = {"PATH", "RONDO_DEADLINE", "RONDO_TRANSPORT"};
  expect_words(refusal([&] { refuse_unknown_variables(names); }), {"RONDO_TRANSPORT,", "RONDO_TRANSPORTS"});
}

TEST(UnknownVariable, WithoutAnythingNearIsRefusedWithoutAName) {
  const std::vector<std::string> names = {"RONDO_XYZZY_QQQ"};
  const std::string text = refusal([&] { refuse_unknown_variables(names); });
  expect_words(text, {"RONDO_XYZZY_QQQ", "docs/environment.md"});
  EXPECT_EQ(text.find("nearest"), std::string::npos) << text;
}

TEST(UnknownVariable, OthersAndKnownOnesPass) {
  std::vector<std::string> names = {"PATH", "RONDOX", "XRONDO_FOO"};
  for (const Variable& v : known_variables()) names.emplace_back(v.name);
  EXPECT_NO_THROW(refuse_unknown_variables(names));
}

TEST(NearestVariable, ForgivesSwappedMissingAndExtraLetters) {
  EXPECT_EQ(nearest_variable("RONDO_DEADLNIE"), "RONDO_DEADLINE");
  EXPECT_EQ(nearest_variable("RONDO_HEARTBEATS"), "RONDO_HEARTBEAT");
  EXPECT_EQ(nearest_variable("RONDO_FIFOBYTES"), "RONDO_FIFO_BYTES");
  EXPECT_EQ(nearest_variable("RONDO_JOINDEADLINE"), "RONDO_JOIN_DEADLINE");
  EXPECT_EQ(nearest_variable("RONDO_"), "");
}

TEST(Reading, EmptyMeansUnset) {
  const Lookup raw = [](const std::string&) { return std::optional<std::string>(""); };
  EXPECT_FALSE(read_integer(raw, "RONDO_RANK", 0, 1));
  EXPECT_FALSE(read_bytes(raw, "RONDO_FIFO_BYTES", 0, 1));
  EXPECT_FALSE(read_duration(raw, "RONDO_DEADLINE", 0, 1));
  EXPECT_FALSE(read_switch(raw, "RONDO_DETERMINISTIC"));
}

TEST(Reading, SwitchTakesItsEightWords) {
  for (const char* yes : {"1", "true", "YES", "On"}) {
    EXPECT_EQ(read_switch(lookup_in({{"RONDO_DETERMINISTIC", yes}}), "RONDO_DETERMINISTIC"), true);
  }
  for (const char* no : {"0", "False", "no", "OFF"}) {
    EXPECT_EQ(read_switch(lookup_in({{"RONDO_DETERMINISTIC", no}}), "RONDO_DETERMINISTIC"), false);
  }
}

TEST(Reading, MalformedValuesNameVariableValueConstraintAndExample) {
  expect_words(refusal([] {
                 settings_of({{"RONDO_DEADLINE", "10"}});
               }),
               {"RONDO_DEADLINE='10'", "unit", "RONDO_DEADLINE=30s"});
  expect_words(refusal([] { settings_of({{"RONDO_DEADLINE", "1ns"}}); }), {"RONDO_DEADLINE='1ns'", "1ms", "1000h"});
  expect_words(refusal([] {
                 settings_of({{"RONDO_FIFO_BYTES", "lots"}});
               }),
               {"RONDO_FIFO_BYTES='lots'", "64K", "RONDO_FIFO_BYTES=1M"});
  expect_words(refusal([] { settings_of({{"RONDO_FIFO_BYTES", "1"}}); }), {"RONDO_FIFO_BYTES='1'", "4K", "1G"});
  expect_words(refusal([] {
                 settings_of({{"RONDO_DETERMINISTIC", "maybe"}});
               }),
               {"RONDO_DETERMINISTIC='maybe'", "1 or 0"});
  expect_words(refusal([] { settings_of({{"RONDO_TCP_CHANNELS", "0"}}); }), {"RONDO_TCP_CHANNELS='0'", "1", "64"});
  expect_words(refusal([] {
                 settings_of({{"RONDO_TRANSPORTS", "shm,foo"}});
               }),
               {"RONDO_TRANSPORTS='shm,foo'", "'foo'", "shm and tcp"});
  expect_words(refusal([] { settings_of({{"RONDO_TRANSPORTS", "shm,shm"}}); }), {"twice"});
  expect_words(refusal([] { settings_of({{"RONDO_TRANSPORTS", "shm,"}}); }), {"RONDO_TRANSPORTS='shm,'"});
  expect_words(refusal([] { settings_of({{"RONDO_FLIGHT_RECORD", "/tmp/%q"}}); }), {"RONDO_FLIGHT_RECORD", "%h"});
  for (const char* range : {"x", "0-5", "9-5", "1-65536", "1-2-3", "-"}) {
    expect_words(refusal([&] { settings_of({{"RONDO_PORT_RANGE", range}}); }), {"RONDO_PORT_RANGE", range});
  }
}

TEST(Settings, DefaultsAreTheDocumentedOnes) {
  const Settings s = settings_of({});
  EXPECT_EQ(s.name, "world");
  EXPECT_EQ(s.deadline, 600'000'000'000);
  EXPECT_EQ(s.join_deadline, 60'000'000'000);
  EXPECT_EQ(s.heartbeat, 10'000'000'000);
  EXPECT_EQ(s.transports, (std::vector<std::string>{"shm", "tcp"}));
  EXPECT_FALSE(s.deterministic);
}

TEST(Settings, EnvironmentIsRead) {
  const Settings s = settings_of({{"RONDO_DEADLINE", "30s"},
                                  {"RONDO_HEARTBEAT", "0"},
                                  {"RONDO_TRANSPORTS", "tcp"},
                                  {"RONDO_FIFO_BYTES", "256K"},
                                  {"RONDO_TCP_CHANNELS", "4"},
                                  {"RONDO_INTERFACES", "eth,^docker"},
                                  {"RONDO_ALGO", "all_reduce=ring"},
                                  {"RONDO_PORT_RANGE", "20000-20999"},
                                  {"RONDO_DETERMINISTIC", "1"}});
  EXPECT_EQ(s.deadline, 30'000'000'000);
  EXPECT_EQ(s.heartbeat, 0);
  EXPECT_EQ(s.transports, std::vector<std::string>{"tcp"});
  EXPECT_EQ(s.fifo_bytes, 262144U);
  EXPECT_EQ(s.tcp_channels, 4);
  EXPECT_EQ(s.interfaces, "eth,^docker");
  EXPECT_EQ(s.algorithm, "all_reduce=ring");
  EXPECT_EQ(s.ports.first, 20000);
  EXPECT_EQ(s.ports.last, 20999);
  EXPECT_TRUE(s.deterministic);
}

TEST(Settings, ConfigBeatsEnvironment) {
  Config config;
  config.deadline = 5s;
  config.transports = "shm";
  config.deterministic = false;
  config.fifo_bytes = 8192;
  config.algorithm = "";
  const Settings s = settings_of({{"RONDO_DEADLINE", "30s"},
                                  {"RONDO_TRANSPORTS", "tcp"},
                                  {"RONDO_DETERMINISTIC", "1"},
                                  {"RONDO_FIFO_BYTES", "256K"},
                                  {"RONDO_ALGO", "all_reduce=ring"}},
                                 config);
  EXPECT_EQ(s.deadline, 5'000'000'000);
  EXPECT_EQ(s.transports, std::vector<std::string>{"shm"});
  EXPECT_FALSE(s.deterministic);
  EXPECT_EQ(s.fifo_bytes, 8192U);
  EXPECT_EQ(s.algorithm, "");
}

TEST(Settings, ConfigIsCheckedAsTheEnvironmentIs) {
  Config config;
  config.deadline = -1s;
  expect_words(refusal([&] { settings_of({}, config); }), {"RONDO_DEADLINE", "-1s"});
}

TEST(Fingerprint, HoldsExactlyTheSettingsThatMustAgree) {
  std::string expected_names;
  for (const Variable& v : known_variables()) {
    if (v.same) expected_names += std::string(v.name) + "=\n";
  }
  std::string names;
  const std::string text = settings_fingerprint(settings_of({}));
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    names += text.substr(at, text.find('=', at) - at) + "=\n";
  }
  EXPECT_EQ(names, expected_names);
}

TEST(Fingerprint, ChangesWithThemAndWithNothingElse) {
  const std::string base = settings_fingerprint(settings_of({}));
  EXPECT_EQ(settings_fingerprint(settings_of({{"RONDO_DEADLINE", "1s"}, {"RONDO_INTERFACES", "eth"}})), base);
  for (const auto& [name, value] : Variables{{"RONDO_ALGO", "x"},
                                             {"RONDO_DETERMINISTIC", "1"},
                                             {"RONDO_FIFO_BYTES", "1M"},
                                             {"RONDO_TCP_CHANNELS", "2"},
                                             {"RONDO_TRANSPORTS", "tcp"}}) {
    const std::string changed = settings_fingerprint(settings_of({{name, value}}));
    EXPECT_NE(changed, base) << name;
    expect_words(changed, {(name + "=" + value + "\n").c_str()});
  }
}

}  // namespace
}  // namespace rondo::base
