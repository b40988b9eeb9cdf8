#include "base/log.hpp"

#include <rondo/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>

namespace rondo::base {

namespace detail {
std::atomic<std::uint32_t> log_levels{0xFFFF'FFFFU};
}

namespace {

constexpr std::array<std::string_view, 4> level_names = {"", "WARN", "INFO", "TRACE"};
constexpr std::array<std::string_view, subsystem_count> subsystem_names = {"INIT", "NET", "SHM", "PLAN", "ENGINE"};

struct Sink {
  std::mutex mutex;
  bool configured = false;
  int fd = STDERR_FILENO;
  std::set<std::string> warned;
};

// The one log of the process. Never destroyed, so that static destructors may still log.
Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

std::atomic<int> process_rank{-1};
thread_local int thread_rank = -1;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return out;
}

void apply(Sink& s, const LogOptions& options) {
  if (s.fd != STDERR_FILENO) close(s.fd);
  s.fd = STDERR_FILENO;
  if (!options.file.empty()) {
    const int fd = open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) s.fd = fd;
  }
  s.configured = true;
  detail::log_levels.store(options.levels, std::memory_order_relaxed);
}

// Called with the mutex held.
void configure_from_environment(Sink& s) {
  if (s.configured) return;
  LogOptions options = parse_log_options({}, {}, {});
  try {
    options = parse_log_options(variable("RONDO_DEBUG"), variable("RONDO_DEBUG_SUBSYS"), variable("RONDO_DEBUG_FILE"));
  } catch (const Error&) {
    // The settings refuse the same value with an error; the log itself goes on with its defaults.
  }
  apply(s, options);
}

void write_whole(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(fd, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_text(const Sink& s, LogLevel level, Subsystem subsystem, std::string_view text) {
  const int rank = thread_rank >= 0 ? thread_rank : process_rank.load(std::memory_order_relaxed);
  static const std::string host = host_name();
  const std::string shown = rank < 0 ? std::string("-") : std::to_string(rank);
  std::string line;
  // Every line of a text with line ends carries the head, so that a filter by rank keeps all of it.
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (end == text.size() && start == end && start != 0) break;
    fmt::format_to(std::back_inserter(line), "{}:{} [{}] RONDO {} {} {}\n", host, getpid(), shown, name_of(level),
                   name_of(subsystem), text.substr(start, end - start));
    start = end + 1;
  }
  write_whole(s.fd, line);
}

}  // namespace

std::string_view name_of(LogLevel level) { return level_names.at(static_cast<std::size_t>(level)); }
std::string_view name_of(Subsystem subsystem) { return subsystem_names.at(static_cast<std::size_t>(subsystem)); }

std::string expand_file_pattern(std::string_view variable_name, std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    const char letter = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (letter == 'h') {
      out += host_name();
    } else if (letter == 'p') {
      out += std::to_string(getpid());
    } else if (letter == '%') {
      out += '%';
    } else {
      throw Error(ErrorCode::configuration,
                  fmt::format("{}='{}': only %h (host), %p (process id) and %% may follow a percent sign",
                              variable_name, pattern),
                  fmt::format("for example {}=/tmp/rondo.%h.%p.log", variable_name));
    }
    ++i;
  }
  return out;
}

LogOptions parse_log_options(const std::optional<std::string>& level, const std::optional<std::string>& subsystems,
                             const std::optional<std::string>& file) {
  unsigned highest = static_cast<unsigned>(LogLevel::warn);
  // An empty variable counts as unset.
  if (level && !level->empty()) {
    const auto found = std::find(level_names.begin() + 1, level_names.end(), upper(*level));
    if (found == level_names.end()) {
      throw Error(ErrorCode::configuration, fmt::format("RONDO_DEBUG='{}' is not WARN, INFO or TRACE", *level),
                  "for example RONDO_DEBUG=INFO");
    }
    highest = static_cast<unsigned>(found - level_names.begin());
  }

  constexpr unsigned all = (1U << subsystem_count) - 1;
  unsigned chosen = all;
  if (subsystems && !subsystems->empty()) {
    const std::string& list = *subsystems;
    // A list that only excludes starts from all.
    chosen = list.front() == '^' ? all : 0;
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t end = std::min(list.find(',', start), list.size());
      std::string name = upper(std::string_view(list).substr(start, end - start));
      const bool exclude = !name.empty() && name.front() == '^';
      if (exclude) name.erase(0, 1);
      const auto found = std::find(subsystem_names.begin(), subsystem_names.end(), name);
      if (name != "ALL" && found == subsystem_names.end()) {
        throw Error(ErrorCode::configuration,
                    fmt::format("RONDO_DEBUG_SUBSYS='{}': '{}' is not INIT, NET, SHM, PLAN, ENGINE or ALL (^ before a "
                                "name excludes it)",
                                list, list.substr(start, end - start)),
                    "for example RONDO_DEBUG_SUBSYS=INIT,NET or RONDO_DEBUG_SUBSYS=^PLAN");
      }
      const unsigned bits = name == "ALL" ? all : 1U << static_cast<unsigned>(found - subsystem_names.begin());
      chosen = exclude ? chosen & ~bits : chosen | bits;
      start = end + 1;
    }
  }

  LogOptions options;
  for (unsigned s = 0; s < subsystem_count; ++s) {
    const unsigned shown = (chosen >> s & 1U) != 0 ? highest : static_cast<unsigned>(LogLevel::warn);
    options.levels |= shown << (4 * s);
  }
  if (file) options.file = expand_file_pattern("RONDO_DEBUG_FILE", *file);
  return options;
}

void set_log_options(const LogOptions& options) {
  Sink& s = sink();
  const std::lock_guard lock(s.mutex);
  apply(s, options);
}

void set_log_rank(int rank) noexcept { process_rank.store(rank, std::memory_order_relaxed); }

LogRankScope::LogRankScope(int rank) noexcept : before_(thread_rank) { thread_rank = rank; }
LogRankScope::~LogRankScope() { thread_rank = before_; }

namespace detail {

void write_log_line(LogLevel level, Subsystem subsystem, fmt::string_view format, fmt::format_args args) noexcept try {
  Sink& s = sink();
  const std::lock_guard lock(s.mutex);
  configure_from_environment(s);
  if (!log_enabled(level, subsystem)) return;
  write_text(s, level, subsystem, fmt::vformat(format, args));
} catch (...) {
  // A line that cannot be formatted or written is lost: a log must not fail what it describes.
}

void write_warning_once(Subsystem subsystem, fmt::string_view format, fmt::format_args args) noexcept try {
  Sink& s = sink();
  const std::lock_guard lock(s.mutex);
  configure_from_environment(s);
  const std::string text = fmt::vformat(format, args);
  if (s.warned.insert(text).second) write_text(s, LogLevel::warn, subsystem, text);
} catch (...) {
  // As above.
}

}  // namespace detail
}  // namespace rondo::base
