// The public face: judges arguments and hands calls to the implementation.
#include <rondo/communicator.hpp>
#include <rondo/version.hpp>

#include "communicator/implementation.hpp"
#include "communicator/validate.hpp"
#include "communicator/world.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace rondo {

using communicator::check_buffer;
using communicator::check_overlap;
using communicator::check_reduction;
using communicator::check_root;
using communicator::check_type;
using communicator::checked_product;
using executor::ChunkTable;

const char* version() noexcept { return "0.1.0"; }

namespace {

communicator::Implementation& open(const std::shared_ptr<communicator::Implementation>& implementation) {
  if (implementation == nullptr)
    throw Error(ErrorCode::invalid_usage, "the communicator is empty (default-made or moved from)",
                "make one with Communicator::from_environment(), create() or create_local()");
  communicator::refuse_forked_child();
  return *implementation;
}

std::uint64_t hash_counts(std::span<const std::size_t> counts) {
  std::uint64_t h = counts.size();
  for (const std::size_t c : counts) h = (h ^ c) * 0x9E3779B97F4A7C15ULL;
  return h;
}

std::vector<std::size_t> copy_of(std::span<const std::size_t> values) { return {values.begin(), values.end()}; }

std::vector<std::size_t> back_to_back(std::span<const std::size_t> counts, const char* call) {
  std::vector<std::size_t> offsets;
  std::size_t offset = 0;
  for (const std::size_t c : counts) {
    offsets.push_back(offset);
    if (__builtin_add_overflow(offset, c, &offset)) checked_product(call, offset, c);
  }
  return offsets;
}

void check_lists(const char* call, std::span<const std::size_t> counts, std::span<const std::size_t> displacements,
                 int size) {
  if (counts.size() != static_cast<std::size_t>(size) || displacements.size() != counts.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: {} counts and {} displacements for {} ranks", call, counts.size(), displacements.size(), size),
        "give one of each a rank");
}

// Elements up to the end of the last block.
std::size_t extent(const char* call, std::span<const std::size_t> counts, std::span<const std::size_t> displacements) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::size_t last = 0;
    if (__builtin_add_overflow(counts[i], displacements[i], &last)) checked_product(call, counts[i], displacements[i]);
    if (counts[i] > 0) end = std::max(end, last);
  }
  return end;
}

// Blocks that are written must not overlap each other.
void check_disjoint(const char* call, std::span<const std::size_t> counts, std::span<const std::size_t> displacements) {
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) blocks.emplace_back(displacements[i], displacements[i] + counts[i]);
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i)
    if (blocks[i].first < blocks[i - 1].second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: output blocks [{}, {}) and [{}, {}) overlap", call, blocks[i - 1].first,
                              blocks[i - 1].second, blocks[i].first, blocks[i].second),
                  "displacements must leave each rank's block its own room");
}

}  // namespace

Communicator Communicator::from_environment(const Config& config) {
  return Communicator(communicator::join_from_environment(config));
}
Communicator Communicator::create(const UniqueId& id, int rank, int size, const Config& config) {
  return Communicator(communicator::join_world(id, rank, size, config));
}
std::vector<Communicator> Communicator::create_local(int size, const Config& config) {
  std::vector<Communicator> ranks;
  for (auto& implementation : communicator::make_local_world(size, config))
    ranks.emplace_back(std::move(implementation));
  return ranks;
}

Communicator::Communicator() noexcept = default;
Communicator::Communicator(std::shared_ptr<communicator::Implementation> implementation) noexcept
    : implementation_(std::move(implementation)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this != &other) {
    Communicator old(std::move(*this));
    implementation_ = std::move(other.implementation_);
  }
  return *this;
}
Communicator::~Communicator() {
  if (implementation_ == nullptr) return;
  if (communicator::is_forked_child()) {
    communicator::leak(std::move(implementation_));  // its threads and locks live in the parent
    return;
  }
  implementation_->finish(std::uncaught_exceptions() > 0);
}

int Communicator::rank() const noexcept { return implementation_ ? implementation_->rank() : -1; }
int Communicator::size() const noexcept { return implementation_ ? implementation_->size() : 0; }
const std::string& Communicator::name() const noexcept {
  static const std::string empty = "(empty)";
  return implementation_ ? implementation_->name() : empty;
}

std::optional<Communicator> Communicator::split(const SplitOptions& options) {
  auto made = open(implementation_).split(options);
  if (made == nullptr) return std::nullopt;
  return Communicator(std::move(made));
}
void Communicator::close() { open(implementation_).close(); }
void Communicator::abort(const std::string& reason) noexcept {
  if (implementation_ != nullptr && !communicator::is_forked_child()) implementation_->abort(reason);
}
void Communicator::check() const { open(implementation_).check(); }

Work Communicator::all_reduce(const void* input, void* output, std::size_t count, DataType type, Reduction op,
                              const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("all_reduce", type);
  check_reduction("all_reduce", type, op);
  check_buffer("all_reduce", {"input", input, count}, type);
  check_buffer("all_reduce", {"output", output, count}, type);
  check_overlap("all_reduce", {"input", input, count}, {"output", output, count}, type, 0, 0, "input == output");
  return self.collective({Collective::all_reduce, input, output, count, type, op, -1, nullptr, nullptr}, options);
}

Work Communicator::all_gather(const void* input, void* output, std::size_t count, DataType type,
                              const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("all_gather", type);
  const std::size_t all = checked_product("all_gather", count, static_cast<std::size_t>(self.size()));
  check_buffer("all_gather", {"input", input, count}, type);
  check_buffer("all_gather", {"output", output, all}, type);
  check_overlap("all_gather", {"input", input, count}, {"output", output, all}, type, 0,
                count * static_cast<std::size_t>(self.rank()), "input == output + rank * count");
  return self.collective({Collective::all_gather, input, output, count, type, {}, -1, nullptr, nullptr}, options);
}

Work Communicator::reduce_scatter(const void* input, void* output, std::size_t count, DataType type, Reduction op,
                                  const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("reduce_scatter", type);
  check_reduction("reduce_scatter", type, op);
  const std::size_t all = checked_product("reduce_scatter", count, static_cast<std::size_t>(self.size()));
  check_buffer("reduce_scatter", {"input", input, all}, type);
  check_buffer("reduce_scatter", {"output", output, count}, type);
  check_overlap("reduce_scatter", {"input", input, all}, {"output", output, count}, type,
                count * static_cast<std::size_t>(self.rank()), 0, "output == input + rank * count");
  return self.collective({Collective::reduce_scatter, input, output, count, type, op, -1, nullptr, nullptr}, options);
}

Work Communicator::broadcast(const void* input, void* output, std::size_t count, DataType type, int root,
                             const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("broadcast", type);
  check_root("broadcast", root, self.size());
  if (self.rank() == root) {
    check_buffer("broadcast", {"input", input, count}, type);
    check_overlap("broadcast", {"input", input, count}, {"output", output, count}, type, 0, 0, "input == output");
  }
  check_buffer("broadcast", {"output", output, count}, type);
  return self.collective({Collective::broadcast, input, output, count, type, {}, root, nullptr, nullptr}, options);
}

Work Communicator::reduce(const void* input, void* output, std::size_t count, DataType type, Reduction op, int root,
                          const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("reduce", type);
  check_reduction("reduce", type, op);
  check_root("reduce", root, self.size());
  check_buffer("reduce", {"input", input, count}, type);
  if (self.rank() == root) {
    check_buffer("reduce", {"output", output, count}, type);
    check_overlap("reduce", {"input", input, count}, {"output", output, count}, type, 0, 0, "input == output");
  }
  return self.collective({Collective::reduce, input, output, count, type, op, root, nullptr, nullptr}, options);
}

Work Communicator::all_to_all(const void* input, void* output, std::size_t count, DataType type,
                              const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("all_to_all", type);
  const std::size_t all = checked_product("all_to_all", count, static_cast<std::size_t>(self.size()));
  check_buffer("all_to_all", {"input", input, all}, type);
  check_buffer("all_to_all", {"output", output, all}, type);
  check_overlap("all_to_all", {"input", input, all}, {"output", output, all}, type, 0, 0, "input == output");
  return self.collective({Collective::all_to_all, input, output, count, type, {}, -1, nullptr, nullptr}, options);
}

Work Communicator::gather(const void* input, void* output, std::size_t count, DataType type, int root,
                          const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("gather", type);
  check_root("gather", root, self.size());
  const std::size_t all = checked_product("gather", count, static_cast<std::size_t>(self.size()));
  check_buffer("gather", {"input", input, count}, type);
  if (self.rank() == root) {
    check_buffer("gather", {"output", output, all}, type);
    check_overlap("gather", {"input", input, count}, {"output", output, all}, type, 0,
                  count * static_cast<std::size_t>(root), "input == output + root * count");
  }
  return self.collective({Collective::gather, input, output, count, type, {}, root, nullptr, nullptr}, options);
}

Work Communicator::scatter(const void* input, void* output, std::size_t count, DataType type, int root,
                           const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("scatter", type);
  check_root("scatter", root, self.size());
  const std::size_t all = checked_product("scatter", count, static_cast<std::size_t>(self.size()));
  check_buffer("scatter", {"output", output, count}, type);
  if (self.rank() == root) {
    check_buffer("scatter", {"input", input, all}, type);
    check_overlap("scatter", {"input", input, all}, {"output", output, count}, type,
                  count * static_cast<std::size_t>(root), 0, "output == input + root * count");
  }
  return self.collective({Collective::scatter, input, output, count, type, {}, root, nullptr, nullptr}, options);
}

Work Communicator::barrier(const CallOptions& options) {
  return open(implementation_)
      .collective({Collective::barrier, nullptr, nullptr, 0, DataType::int8, {}, -1, nullptr, nullptr}, options);
}

Work Communicator::all_gather_v(const void* input, void* output, std::span<const std::size_t> counts,
                                std::span<const std::size_t> displacements, DataType type, const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("all_gather_v", type);
  check_lists("all_gather_v", counts, displacements, self.size());
  check_disjoint("all_gather_v", counts, displacements);
  const auto me = static_cast<std::size_t>(self.rank());
  const std::size_t end = extent("all_gather_v", counts, displacements);
  check_buffer("all_gather_v", {"input", input, counts[me]}, type);
  check_buffer("all_gather_v", {"output", output, end}, type);
  check_overlap("all_gather_v", {"input", input, counts[me]}, {"output", output, end}, type, 0, displacements[me],
                "input == output + displacements[rank]");
  const ChunkTable in = ChunkTable::repeated(1, counts[me]);
  const ChunkTable out{0, 0, copy_of(displacements), copy_of(counts)};
  return self.collective({Collective::all_gather_v, input, output, hash_counts(counts), type, {}, -1, &in, &out},
                         options);
}

Work Communicator::reduce_scatter_v(const void* input, void* output, std::span<const std::size_t> counts, DataType type,
                                    Reduction op, const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("reduce_scatter_v", type);
  check_reduction("reduce_scatter_v", type, op);
  const std::vector<std::size_t> offsets = back_to_back(counts, "reduce_scatter_v");
  check_lists("reduce_scatter_v", counts, offsets, self.size());
  const auto me = static_cast<std::size_t>(self.rank());
  const std::size_t end = extent("reduce_scatter_v", counts, offsets);
  check_buffer("reduce_scatter_v", {"input", input, end}, type);
  check_buffer("reduce_scatter_v", {"output", output, counts[me]}, type);
  check_overlap("reduce_scatter_v", {"input", input, end}, {"output", output, counts[me]}, type, offsets[me], 0,
                "output == input + the counts of the ranks before");
  const ChunkTable in{0, 0, offsets, copy_of(counts)};
  const ChunkTable out = ChunkTable::repeated(1, counts[me]);
  return self.collective({Collective::reduce_scatter_v, input, output, hash_counts(counts), type, op, -1, &in, &out},
                         options);
}

Work Communicator::all_to_all_v(const void* input, std::span<const std::size_t> send_counts,
                                std::span<const std::size_t> send_displacements, void* output,
                                std::span<const std::size_t> receive_counts,
                                std::span<const std::size_t> receive_displacements, DataType type,
                                const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("all_to_all_v", type);
  check_lists("all_to_all_v", send_counts, send_displacements, self.size());
  check_lists("all_to_all_v", receive_counts, receive_displacements, self.size());
  check_disjoint("all_to_all_v", receive_counts, receive_displacements);
  const std::size_t in = extent("all_to_all_v", send_counts, send_displacements);
  const std::size_t out = extent("all_to_all_v", receive_counts, receive_displacements);
  const auto me = static_cast<std::size_t>(self.rank());
  if (send_counts[me] != receive_counts[me])
    throw Error(ErrorCode::invalid_argument,
                fmt::format("all_to_all_v: this rank sends {} elements to itself but receives {}", send_counts[me],
                            receive_counts[me]),
                "send_counts[rank] must equal receive_counts[rank]");
  check_buffer("all_to_all_v", {"input", input, in}, type);
  check_buffer("all_to_all_v", {"output", output, out}, type);
  if (in > 0 && out > 0 && input == output)
    throw Error(ErrorCode::invalid_argument, "all_to_all_v: input and output are the same",
                "there is no in-place form");
  check_overlap("all_to_all_v", {"input", input, in}, {"output", output, out}, type, 0, 0, "there is none");
  const ChunkTable sends{0, 0, copy_of(send_displacements), copy_of(send_counts)};
  const ChunkTable receives{0, 0, copy_of(receive_displacements), copy_of(receive_counts)};
  return self.collective({Collective::all_to_all_v, input, output, 0, type, {}, -1, &sends, &receives}, options);
}

Work Communicator::gather_v(const void* input, std::size_t count, void* output, std::span<const std::size_t> counts,
                            std::span<const std::size_t> displacements, DataType type, int root,
                            const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("gather_v", type);
  check_root("gather_v", root, self.size());
  check_buffer("gather_v", {"input", input, count}, type);
  const ChunkTable in = ChunkTable::repeated(1, count);
  ChunkTable out;
  if (self.rank() == root) {
    check_lists("gather_v", counts, displacements, self.size());
    check_disjoint("gather_v", counts, displacements);
    const auto me = static_cast<std::size_t>(root);
    if (counts[me] != count)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("gather_v: counts[root] is {} but count is {}", counts[me], count),
                  "the root's own entry must equal its count");
    const std::size_t end = extent("gather_v", counts, displacements);
    check_buffer("gather_v", {"output", output, end}, type);
    check_overlap("gather_v", {"input", input, count}, {"output", output, end}, type, 0, displacements[me],
                  "input == output + displacements[root]");
    out = {0, 0, copy_of(displacements), copy_of(counts)};
  }
  return self.collective({Collective::gather_v, input, output, 0, type, {}, root, &in, &out}, options);
}

Work Communicator::scatter_v(const void* input, std::span<const std::size_t> counts,
                             std::span<const std::size_t> displacements, void* output, std::size_t count, DataType type,
                             int root, const CallOptions& options) {
  auto& self = open(implementation_);
  check_type("scatter_v", type);
  check_root("scatter_v", root, self.size());
  check_buffer("scatter_v", {"output", output, count}, type);
  const ChunkTable out = ChunkTable::repeated(1, count);
  ChunkTable in;
  if (self.rank() == root) {
    check_lists("scatter_v", counts, displacements, self.size());
    const auto me = static_cast<std::size_t>(root);
    if (counts[me] != count)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("scatter_v: counts[root] is {} but count is {}", counts[me], count),
                  "the root's own entry must equal its count");
    const std::size_t end = extent("scatter_v", counts, displacements);
    check_buffer("scatter_v", {"input", input, end}, type);
    check_overlap("scatter_v", {"input", input, end}, {"output", output, count}, type, displacements[me], 0,
                  "output == input + displacements[root]");
    in = {0, 0, copy_of(displacements), copy_of(counts)};
  }
  return self.collective({Collective::scatter_v, input, output, 0, type, {}, root, &in, &out}, options);
}

Work Communicator::send(const void* data, std::size_t count, DataType type, int destination, int tag,
                        const CallOptions& options) {
  return open(implementation_).send(data, count, type, destination, tag, options);
}
Work Communicator::receive(void* data, std::size_t count, DataType type, int source, int tag,
                           const CallOptions& options) {
  return open(implementation_).receive(data, count, type, source, tag, options);
}

WindowMemory Communicator::allocate_bytes(std::size_t bytes) {
  return WindowMemory(open(implementation_).allocate(bytes));
}
std::string Communicator::explain(Collective collective, std::size_t count, DataType type) const {
  return open(implementation_).explain(collective, count, type);
}
std::string Communicator::flight_record() const { return open(implementation_).flight_record(); }

void Communicator::require_equal(const char* call, const char* what, std::size_t got, const char* other,
                                 std::size_t base, std::size_t factor) const {
  if (got != base * factor)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} has {} elements but {} has {}", call, what, got, other, base),
                fmt::format("{} must have {} x {} = {} elements", what, base, factor, base * factor));
}
void Communicator::require_multiple(const char* call, std::size_t count) const {
  if (size() > 0 && count % static_cast<std::size_t>(size()) != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} elements do not divide among {} ranks", call, count, size()),
                "use a multiple of the communicator's size");
}

}  // namespace rondo
