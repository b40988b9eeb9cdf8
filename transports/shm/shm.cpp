#include "transports/shm/shm.hpp"

#include <rondo/error.hpp>

#include "transports/shm/descriptor_server.hpp"
#include "transports/shm/messages.hpp"
#include "transports/shm/peer_windows.hpp"

#include <fmt/format.h>

#include <exception>
#include <tuple>
#include <utility>

namespace rondo::transport {
namespace {

constexpr std::uint32_t slot_count = 8;

// More ranks have more connections each, and messages cut finer.
std::size_t default_fifo_bytes(int ranks) {
  if (ranks > 32) return 64U << 10;
  if (ranks > 16) return 128U << 10;
  if (ranks > 8) return 256U << 10;
  return 512U << 10;
}

ShmOptions with_defaults(ShmOptions options) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rank {} of {} ranks: a rank is from 0 to below the size", options.rank, options.ranks));
  }
  if (options.fifo_bytes == 0) options.fifo_bytes = default_fifo_bytes(options.ranks);
  return options;
}

struct OwnWindow final : WindowMapping {
  std::shared_ptr<WindowRegistry> registry;
  std::shared_ptr<base::SharedMemory> memory;
  OwnWindow() = default;
  OwnWindow(const OwnWindow&) = delete;
  OwnWindow& operator=(const OwnWindow&) = delete;
  ~OwnWindow() override { registry->remove(id); }
};

}  // namespace

struct ShmTransport::Peer {
  std::string socket_name;  // empty: no such transport there
  Nonce nonce{};
  std::atomic<const ArenaView*> quick_view{nullptr};  // view, once it stands; release / acquire
  std::mutex mutex;
  std::unique_ptr<ArenaView> view;  // guarded by mutex
  std::optional<Error> failure;     // what the first try threw; guarded by mutex
  PeerWindows windows;
};

bool ShmTransport::KeyOrder::operator()(const ConnectionKey& a, const ConnectionKey& b) const {
  return std::tie(a.context, a.source, a.destination, a.tag) < std::tie(b.context, b.source, b.destination, b.tag);
}

ShmTransport::ShmTransport(base::System& system, base::Poller& poller, const bootstrap::Key& key,
                           const ShmOptions& options)
    : system_(system),
      options_(with_defaults(options)),
      layout_(FifoLayout::split(options_.fifo_bytes, slot_count)),
      arena_(options_.rank, options_.ranks, options_.fifo_bytes, options_.ringer_fences),
      windows_(std::make_shared<WindowRegistry>()),
      key_(key) {
  server_ =
      std::make_unique<DescriptorServer>(system, poller, key, options_.rank, [this](MemoryKind kind, std::uint64_t id) {
        return kind == MemoryKind::arena ? arena_.memory() : windows_->find(id);
      });
  for (int i = 0; i < options_.ranks; ++i) peers_.push_back(std::make_unique<Peer>());
}

ShmTransport::ShmTransport(base::System& system, std::shared_ptr<LocalWorld> world, const ShmOptions& options)
    : system_(system),
      options_(with_defaults(options)),
      layout_(FifoLayout::split(options_.fifo_bytes, slot_count)),
      arena_(options_.rank, options_.ranks, options_.fifo_bytes, options_.ringer_fences),
      world_(std::move(world)),
      windows_(std::make_shared<WindowRegistry>()) {
  for (int i = 0; i < options_.ranks; ++i) peers_.push_back(std::make_unique<Peer>());
  world_->join(options_.rank, {arena_.memory(), arena_.nonce(), windows_});
}

ShmTransport::~ShmTransport() = default;

std::vector<std::byte> ShmTransport::address() {
  if (server_ == nullptr) return {};
  return encode(ShmAddress{arena_.nonce(), server_->name()});
}

void ShmTransport::start(int rank, std::span<const std::vector<std::byte>> table) {
  if (world_ != nullptr) return;
  if (rank != options_.rank || table.size() != peers_.size()) {
    throw Error(ErrorCode::internal, fmt::format("shm was made for rank {} of {}, and started as rank {} of {}",
                                                 options_.rank, options_.ranks, rank, table.size()));
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].empty()) continue;
    ShmAddress address = decode_shm_address(table[i], static_cast<int>(i));
    peers_[i]->nonce = address.nonce;
    peers_[i]->socket_name = std::move(address.socket_name);
  }
}

ShmTransport::Peer& ShmTransport::peer_at(int rank) {
  if (rank < 0 || rank >= options_.ranks) {
    throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is not from 0 to {}", rank, options_.ranks - 1), {},
                rank);
  }
  return *peers_[static_cast<std::size_t>(rank)];
}

std::shared_ptr<base::SharedMemory> ShmTransport::map_arena(int rank, Peer& peer, Nonce& nonce) {
  if (rank == options_.rank) {
    nonce = arena_.nonce();
    return arena_.memory();
  }
  if (world_ != nullptr) {
    const LocalWorld::Rank entry = world_->find(rank);
    nonce = entry.nonce;
    return entry.arena;
  }
  nonce = peer.nonce;
  if (peer.socket_name.empty()) return nullptr;
  return request_memory(peer.socket_name, key_, options_.rank, rank, MemoryKind::arena, 0, true,
                        system_.now() + peer_deadline);
}

// The peer's arena, mapped and verified; remembers a failure, so that it costs its deadline only once.
const ArenaView& ShmTransport::view(int rank) {
  Peer& peer = peer_at(rank);
  if (const ArenaView* const quick = peer.quick_view.load(std::memory_order_acquire)) return *quick;
  const std::lock_guard lock(peer.mutex);
  if (peer.view != nullptr) return *peer.view;
  if (peer.failure) throw Error(*peer.failure);
  try {
    Nonce nonce{};
    auto memory = map_arena(rank, peer, nonce);
    if (memory == nullptr) {
      throw Error(ErrorCode::transport, fmt::format("rank {} has no shared-memory transport", rank), {}, rank);
    }
    peer.view = std::make_unique<ArenaView>(std::move(memory), rank, nonce);
  } catch (const Error& error) {
    peer.failure = error;
    throw;
  }
  peer.quick_view.store(peer.view.get(), std::memory_order_release);
  return *peer.view;
}

Reach ShmTransport::probe(int peer) {
  try {
    view(peer);
  } catch (const Error& error) {
    return {false, error.what()};
  }
  if (peer == options_.rank) return {true, "own memory"};
  return {true, world_ != nullptr ? "a thread of this process" : "mapped its memory, data pattern verified"};
}

SendEnd* ShmTransport::open_send(const ConnectionKey& key) {
  const ArenaView& receiver = view(key.destination);
  SendEnd* result = nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto& end = senders_[key];
    if (end != nullptr) return end.get();
    Fifo fifo;
    try {
      fifo = arena_.open(key, layout_);
    } catch (...) {
      senders_.erase(key);
      throw;
    }
    end = std::make_unique<SendEnd>();
    end->lines = fifo.lines;
    end->data = fifo.data;
    end->credit = fifo.credit;
    end->slots = layout_.slots;
    end->slot_bytes = layout_.slot_bytes;
    end->peer_bell = &receiver.bell();
    end->system = &system_;
    end->peer = key.destination;
    end->maps_windows = true;
    result = end.get();
  }
  base::ring(receiver.bell(), system_);  // it may be asleep until the connection appears
  return result;
}

ReceiveEnd* ShmTransport::try_open_receive(const ConnectionKey& key) {
  const ArenaView& sender = view(key.source);
  const std::lock_guard lock(mutex_);
  if (const auto found = receivers_.find(key); found != receivers_.end()) return &found->second->end;
  const auto hit = sender.find(key);
  if (!hit) return nullptr;
  const Fifo fifo = sender.fifo(hit->offset, hit->layout);
  auto receiver = std::make_unique<Receiver>();
  receiver->hit = *hit;
  ReceiveEnd& end = receiver->end;
  end.lines = fifo.lines;
  end.data = fifo.data;
  end.credit = fifo.credit;
  end.slots = hit->layout.slots;
  end.slot_bytes = hit->layout.slot_bytes;
  end.peer_bell = &sender.bell();
  end.system = &system_;
  end.peer = key.source;
  receivers_.emplace(key, std::move(receiver));
  return &end;
}

void ShmTransport::close_context(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(receivers_, [&](const auto& item) {
    if (item.first.context != context) return false;
    ArenaView::drop(item.second->hit);
    return true;
  });
  std::erase_if(senders_, [&](const auto& item) { return item.first.context == context; });
  arena_.close_context(context);
}

std::shared_ptr<WindowMapping> ShmTransport::allocate_window(std::size_t bytes) {
  auto window = std::make_shared<OwnWindow>();
  window->registry = windows_;
  window->memory = std::make_shared<base::SharedMemory>(base::SharedMemory::create("rondo-window", bytes));
  window->memory->advise_huge_pages();
  window->data = window->memory->data();
  window->bytes = bytes;
  window->id = windows_->add(window->memory);
  return window;
}

std::shared_ptr<base::SharedMemory> ShmTransport::find_window(int rank, std::uint64_t id) {
  if (rank == options_.rank) return windows_->find(id);
  if (world_ != nullptr) {
    const LocalWorld::Rank entry = world_->find(rank);
    return entry.windows == nullptr ? nullptr : entry.windows->find(id);
  }
  const std::string& name = peer_at(rank).socket_name;
  if (name.empty()) return nullptr;
  return request_memory(name, key_, options_.rank, rank, MemoryKind::window, id, false, system_.now() + peer_deadline);
}

const std::byte* ShmTransport::map_peer_window(int peer, std::uint64_t id) {
  const WindowView* const found = peer_at(peer).windows.find_or_map(id, [&] { return find_window(peer, id); });
  return found == nullptr ? nullptr : found->memory->data();
}

std::size_t ShmTransport::peer_window_bytes(int peer, std::uint64_t id) {
  const WindowView* const found = peer_at(peer).windows.find_or_map(id, [&] { return find_window(peer, id); });
  return found == nullptr ? 0 : found->memory->bytes();
}

void ShmTransport::forget_peer_window(int peer, std::uint64_t id) { peer_at(peer).windows.forget(id); }

void ShmTransport::service() {
  if (server_ != nullptr) server_->service();
}

}  // namespace rondo::transport
