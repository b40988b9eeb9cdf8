#include <rondo/window.hpp>

#include "transports/transport.hpp"

#include <utility>

namespace rondo {

WindowMemory::WindowMemory() noexcept = default;
WindowMemory::WindowMemory(std::shared_ptr<transport::WindowMapping> mapping) noexcept : mapping_(std::move(mapping)) {}
WindowMemory::WindowMemory(WindowMemory&&) noexcept = default;
WindowMemory& WindowMemory::operator=(WindowMemory&&) noexcept = default;
WindowMemory::~WindowMemory() = default;
std::byte* WindowMemory::data() const noexcept { return mapping_ ? mapping_->data : nullptr; }
std::size_t WindowMemory::bytes() const noexcept { return mapping_ ? mapping_->bytes : 0; }

}  // namespace rondo
