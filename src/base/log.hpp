// Log lines for people who look for a fault: "host:pid [rank] RONDO INFO NET text".
//
// RONDO_DEBUG sets the level (WARN by default), RONDO_DEBUG_SUBSYS which subsystems speak at INFO and TRACE (warnings
// always appear), RONDO_DEBUG_FILE a file instead of stderr. They are read once, at the first line. One line is one
// write(2), so lines of several ranks don't run into each other. A line that is not wanted costs one relaxed load and a
// compare; its arguments are not formatted.
//
// Any thread. Never throws: a line that cannot be written is lost. Malformed variables count as unset here; the
// settings (settings.hpp) refuse them with an error that says why.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rondo::base {

enum class LogLevel : std::uint8_t { warn = 1, info = 2, trace = 3 };
enum class Subsystem : std::uint8_t { init, net, shm, plan, engine };
inline constexpr int subsystem_count = 5;

std::string_view name_of(LogLevel level);
std::string_view name_of(Subsystem subsystem);

// What the three variables ask for. An empty optional, and an empty text, means unset. Throws Error(configuration) on a
// malformed value.
struct LogOptions {
  std::uint32_t levels = 0;  // four bits a subsystem: the highest level that is written
  std::string file;          // "": stderr
};
LogOptions parse_log_options(const std::optional<std::string>& level, const std::optional<std::string>& subsystems,
                             const std::optional<std::string>& file);
// `pattern` with %h replaced by the host name, %p by the process id and %% by %. Throws Error(configuration) on another
// letter after %.
std::string expand_file_pattern(std::string_view variable, std::string_view pattern);

// Replaces what was read from the environment.
void set_log_options(const LogOptions& options);
// The rank that this process's lines carry; -1 (the start) prints "-".
void set_log_rank(int rank) noexcept;

// This thread's lines carry `rank` while the scope lives: for several ranks in one process.
class LogRankScope {
 public:
  explicit LogRankScope(int rank) noexcept;
  LogRankScope(const LogRankScope&) = delete;
  LogRankScope& operator=(const LogRankScope&) = delete;
  ~LogRankScope();

 private:
  int before_;
};

namespace detail {
// All ones until the variables have been read: then every line is taken for wanted, and write_log_line reads them.
extern std::atomic<std::uint32_t> log_levels;
void write_log_line(LogLevel level, Subsystem subsystem, fmt::string_view format, fmt::format_args args) noexcept;
void write_warning_once(Subsystem subsystem, fmt::string_view format, fmt::format_args args) noexcept;
}  // namespace detail

inline bool log_enabled(LogLevel level, Subsystem subsystem) noexcept {
  // Relaxed: the word alone is the news.
  const std::uint32_t levels = detail::log_levels.load(std::memory_order_relaxed);
  return ((levels >> (4 * static_cast<unsigned>(subsystem))) & 15U) >= static_cast<unsigned>(level);
}

template <class... Args>
void log(LogLevel level, Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (log_enabled(level, subsystem)) [[unlikely]] {
    detail::write_log_line(level, subsystem, format, fmt::make_format_args(args...));
  }
}

// A warning whose text (after formatting) has not been written by this process before.
template <class... Args>
void warn_once(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) noexcept {
  detail::write_warning_once(subsystem, format, fmt::make_format_args(args...));
}

}  // namespace rondo::base
