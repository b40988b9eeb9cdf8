// Window memory: allocated collectively, mapped by every rank of the host, so that collectives on it copy less.
#pragma once

#include <rondo/export.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace rondo {

namespace transport {
struct WindowMapping;
}

// Owns `bytes` of zeroed memory, aligned to a page. Move-only; releasing it is local (peers keep their mapping until
// they release theirs). It must not be released while an operation uses it. Any part of it may be passed to any call,
// beside plain memory on other ranks: results are the same.
class RONDO_API WindowMemory {
 public:
  WindowMemory() noexcept;
  explicit WindowMemory(std::shared_ptr<transport::WindowMapping> mapping) noexcept;
  WindowMemory(WindowMemory&&) noexcept;
  WindowMemory& operator=(WindowMemory&&) noexcept;
  ~WindowMemory();
  std::byte* data() const noexcept;
  std::size_t bytes() const noexcept;

 private:
  std::shared_ptr<transport::WindowMapping> mapping_;
};

// `size()` elements of T in window memory; converts to std::span<T>.
template <class T>
class Window {
 public:
  Window() = default;
  Window(WindowMemory memory, std::size_t count) : memory_(std::move(memory)), count_(count) {}
  T* data() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const noexcept { return count_; }
  std::span<T> span() const noexcept { return {data(), count_}; }
  operator std::span<T>() const noexcept { return span(); }        // NOLINT(google-explicit-constructor)
  operator std::span<const T>() const noexcept { return span(); }  // NOLINT(google-explicit-constructor)
  T& operator[](std::size_t i) const noexcept { return data()[i]; }
  T* begin() const noexcept { return data(); }
  T* end() const noexcept { return data() + count_; }

 private:
  WindowMemory memory_;
  std::size_t count_ = 0;
};

}  // namespace rondo
