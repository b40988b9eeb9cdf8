// DescriptorServer: gives this rank's shared-memory descriptors to peers that prove knowledge of the world's key.
//
// Listens on an abstract Unix socket with a random name (nothing in the file system, nothing to leak; the name is in no
// other network namespace). A client's authenticated hello says which memory it wants; the answer is one message with
// the descriptor (SCM_RIGHTS), then the connection closes. At most `most_clients` at a time, each for at most
// `client_deadline`; more wait in the kernel's queue.
//
// Threads: construction and destruction anywhere, service() and the poller's calls on the service thread, which must
// have ended before destruction. request_descriptor() blocks: any thread but the service thread.
#pragma once

#include "base/memory_map.hpp"
#include "base/poller.hpp"
#include "base/socket.hpp"
#include "bootstrap/handshake.hpp"
#include "transports/shm/messages.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

namespace rondo::transport {

class DescriptorServer {
 public:
  static constexpr std::size_t most_clients = 64;
  static constexpr base::Nanoseconds client_deadline = 5'000'000'000;

  // `find` gives the memory asked for, or null.
  using Find = std::function<std::shared_ptr<base::SharedMemory>(MemoryKind kind, std::uint64_t id)>;

  DescriptorServer(base::System& system, base::Poller& poller, const bootstrap::Key& key, int rank, Find find);
  DescriptorServer(const DescriptorServer&) = delete;
  DescriptorServer& operator=(const DescriptorServer&) = delete;
  ~DescriptorServer();

  // The socket's name, without the leading zero byte.
  const std::string& name() const { return name_; }
  // Drops clients past their deadline.
  void service();

 private:
  struct Client {
    base::FileDescriptor fd;
    bootstrap::Handshake handshake;
    base::Nanoseconds deadline;
  };
  using ClientIterator = std::list<Client>::iterator;
  void accept_clients();
  void step(ClientIterator client);
  void drop(ClientIterator client);
  void answer(const Client& client);

  base::System& system_;
  base::Poller& poller_;
  bootstrap::Key key_;
  int rank_;
  Find find_;
  std::string name_;
  base::FileDescriptor listener_;
  bool listening_ = false;  // the listener is with the poller
  std::list<Client> clients_;
};

// Asks the server `name` of rank `peer` for a memory. Null when that rank has no such memory. Throws Error(transport,
// authentication, deadline) with what failed.
std::shared_ptr<base::SharedMemory> request_memory(const std::string& name, const bootstrap::Key& key, int own_rank,
                                                   int peer, MemoryKind kind, std::uint64_t id, bool writable,
                                                   base::Nanoseconds deadline);

}  // namespace rondo::transport
