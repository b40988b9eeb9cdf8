#include "bootstrap/nodelist.hpp"

#include <rondo/error.hpp>

#include "base/format.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rondo::bootstrap {

namespace {

constexpr std::size_t most_hosts = 65536;
constexpr std::size_t longest_name = 255;  // of DNS; without a limit a short text can ask for gigabytes of names

struct Source {
  std::string_view variable;
  std::string_view text;

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorCode::configuration, fmt::format("{}='{}' is no list of hosts: {}", variable, text, why),
                fmt::format("for example {}=node[03-05,7],gpu1", variable));
  }
};

// "03-05,7" -> 03, 04, 05, 7: the width of a range's first number is the least width of all of it.
std::vector<std::string> expand_ranges(const Source& source, std::string_view ranges) {
  std::vector<std::string> numbers;
  for (std::size_t start = 0; start <= ranges.size();) {
    const std::size_t end = std::min(ranges.find(',', start), ranges.size());
    const std::string_view range = ranges.substr(start, end - start);
    const std::size_t hyphen = std::min(range.find('-'), range.size());
    const std::string_view low_text = range.substr(0, hyphen);
    const std::string_view high_text = hyphen == range.size() ? low_text : range.substr(hyphen + 1);
    const auto low = base::parse_integer(low_text);
    const auto high = base::parse_integer(high_text);
    if (low_text.size() > longest_name) source.refuse(fmt::format("a name of more than {} letters", longest_name));
    if (!low || !high || *low < 0 || *high < *low) {
      source.refuse(fmt::format("'{}' in brackets is neither a number nor a rising range of numbers", range));
    }
    if (static_cast<std::size_t>(*high - *low) >= most_hosts - numbers.size()) {
      source.refuse(fmt::format("more than {} hosts", most_hosts));
    }
    for (std::int64_t i = *low; i <= *high; ++i) {
      std::string digits = std::to_string(i);
      if (digits.size() < low_text.size()) digits.insert(0, low_text.size() - digits.size(), '0');
      numbers.push_back(std::move(digits));
    }
    start = end + 1;
  }
  return numbers;
}

void append(const Source& source, std::string& host, std::string_view part) {
  if (host.size() + part.size() > longest_name) {
    source.refuse(fmt::format("a name of more than {} letters", longest_name));
  }
  host += part;
}

std::vector<std::string> expand_name(const Source& source, std::string_view name) {
  std::vector<std::string> hosts = {std::string()};
  while (!name.empty()) {
    const std::size_t open = std::min(name.find('['), name.size());
    for (std::string& host : hosts) append(source, host, name.substr(0, open));
    if (open == name.size()) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) source.refuse("a bracket is not closed");
    const std::vector<std::string> numbers = expand_ranges(source, name.substr(open + 1, close - open - 1));
    if (hosts.size() > most_hosts / numbers.size()) source.refuse(fmt::format("more than {} hosts", most_hosts));
    std::vector<std::string> product;
    for (const std::string& host : hosts) {
      for (const std::string& number : numbers) append(source, product.emplace_back(host), number);
    }
    hosts = std::move(product);
    name.remove_prefix(close + 1);
  }
  return hosts;
}

}  // namespace

std::vector<std::string> expand_nodelist(std::string_view variable, std::string_view text) {
  const Source source{variable, text};
  std::vector<std::string> hosts;
  std::size_t start = 0;
  bool in_brackets = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[') {
      if (in_brackets) source.refuse("a bracket stands within brackets");
      in_brackets = true;
    } else if (c == ']') {
      if (!in_brackets) source.refuse("a bracket is closed that was not opened");
      in_brackets = false;
    } else if (c == ',' && (!in_brackets || i == text.size())) {
      if (in_brackets) source.refuse("a bracket is not closed");
      if (i == start) source.refuse("a name is empty");
      const std::vector<std::string> expanded = expand_name(source, text.substr(start, i - start));
      if (hosts.size() + expanded.size() > most_hosts) source.refuse(fmt::format("more than {} hosts", most_hosts));
      hosts.insert(hosts.end(), expanded.begin(), expanded.end());
      start = i + 1;
    }
  }
  return hosts;
}

}  // namespace rondo::bootstrap
