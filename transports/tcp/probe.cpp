#include "transports/tcp/probe.hpp"

#include <rondo/error.hpp>

#include "bootstrap/handshake.hpp"
#include "transports/tcp/wire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace rondo::transport::tcp {
namespace {

// One address on its way.
class Try {
 public:
  Try(const bootstrap::Key& key, int own_rank, int peer, const base::SocketAddress& address)
      : key_(key), own_rank_(own_rank), peer_(peer) {
    try {
      fd_ = base::start_connect(address);
    } catch (const Error& error) {
      fail(error.message());
    }
  }

  bool failed() const { return failed_; }
  bool done() const { return done_; }
  const std::string& why() const { return why_; }
  pollfd wanted() const { return {failed_ ? -1 : fd_.get(), events_, 0}; }

  void step() {
    try {
      if (!connected_) {
        if (const int error = base::connect_result(fd_.get()); error != 0) {
          return fail(std::generic_category().message(error));
        }
        connected_ = true;
        handshake_ = bootstrap::Handshake::initiate(fd_.get(), key_, bootstrap::purpose_tcp, own_rank_, peer_,
                                                    encode(Hello{HelloKind::probe, {}, {}}));
      }
      if (handshake_) {
        const auto progress = handshake_->step();
        events_ = progress == bootstrap::Handshake::Progress::want_write ? POLLOUT : POLLIN;
        if (progress != bootstrap::Handshake::Progress::done) return;
        handshake_.reset();
      }
      exchange();
    } catch (const Error& error) {
      fail(error.message());
    }
  }

 private:
  void fail(const std::string& why) {
    failed_ = true;
    why_ = why;
  }
  void exchange() {
    while (sent_ < probe_bytes) {
      const ssize_t n = ::send(fd_.get(), &pattern_[sent_], probe_bytes - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        events_ = POLLOUT;
        return;
      }
      if (n < 0) return fail(std::generic_category().message(errno));
      sent_ += static_cast<std::size_t>(n);
    }
    events_ = POLLIN;
    while (received_ < probe_bytes) {
      const ssize_t n = ::recv(fd_.get(), &answer_[received_], probe_bytes - received_, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n < 0) return fail(std::generic_category().message(errno));
      if (n == 0) return fail("closed before the pattern came back");
      received_ += static_cast<std::size_t>(n);
    }
    if (answer_ != pattern_) return fail("the pattern came back changed");
    done_ = true;
  }

  const bootstrap::Key& key_;
  int own_rank_;
  int peer_;
  base::FileDescriptor fd_;
  short events_ = POLLOUT;
  bool connected_ = false;
  std::optional<bootstrap::Handshake> handshake_;
  std::array<std::byte, probe_bytes> pattern_ = probe_pattern();
  std::array<std::byte, probe_bytes> answer_{};
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  bool done_ = false;
  bool failed_ = false;
  std::string why_;
};

}  // namespace

ProbeResult probe_addresses(base::System& system, const bootstrap::Key& key, int own_rank, int peer,
                            std::span<const base::SocketAddress> addresses, base::Nanoseconds deadline) {
  std::vector<Try> tries;
  tries.reserve(addresses.size());
  for (const auto& address : addresses) tries.emplace_back(key, own_rank, peer, address);

  ProbeResult result;
  std::vector<pollfd> wanted(tries.size());
  for (;;) {
    bool some_left = false;
    for (std::size_t i = 0; i < tries.size(); ++i) {
      wanted[i] = tries[i].wanted();
      some_left = some_left || !tries[i].failed();
    }
    const base::Nanoseconds left = deadline - system.now();
    if (!some_left || left <= 0 || result.address) break;
    ::poll(wanted.data(), static_cast<nfds_t>(wanted.size()), base::to_milliseconds(left));
    for (std::size_t i = 0; i < tries.size() && !result.address; ++i) {
      if (wanted[i].revents == 0 || tries[i].failed()) continue;
      tries[i].step();
      if (tries[i].done()) result.address = i;
    }
  }

  std::string failures;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    if (i == result.address || (result.address && !tries[i].failed())) continue;
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", addresses[i].to_string(),
                            tries[i].failed() ? tries[i].why() : "no answer in time");
  }
  if (result.address) {
    result.why = "answers at " + addresses[*result.address].to_string();
    if (!failures.empty()) result.why += fmt::format(" (not at {})", failures);
  } else {
    result.why = failures.empty() ? "it offers no address" : failures;
  }
  return result;
}

}  // namespace rondo::transport::tcp
