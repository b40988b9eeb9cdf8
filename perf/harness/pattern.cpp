#include "perf/harness/pattern.hpp"

#include "perf/harness/element.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rondo::perf {
namespace {

// splitmix64's finaliser (Steele, Lea, Flood 2014): well-mixed bits of a counter.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash(std::uint64_t a, std::uint64_t b) { return mix(mix(a) ^ (b + 0x632be59bd9b4e019u)); }

std::int64_t whole_within(std::uint64_t bits, std::int64_t limit) {
  return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(2 * limit + 1)) - limit;
}

double scale_of(int rank) { return rank % 2 == 0 ? 1.0 : 2.0; }

using Values = std::span<double>;  // one a rank

// Magnitudes times scales add up to `limit` at most. With few values to go round (see the header) each draw spends 1.
void draw_terms(std::uint64_t index, std::int64_t limit, bool scaled, Values values) {
  const auto ranks = static_cast<std::int64_t>(values.size());
  const std::int64_t budget = scaled ? limit / 2 : limit;  // no scale exceeds 2
  const std::int64_t each = budget / ranks;
  if (each >= 3) {
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      values[rank] = static_cast<double>(whole_within(hash(index, rank), each));
    }
    return;
  }
  std::fill(values.begin(), values.end(), 0.0);
  constexpr std::int64_t most_draws = 16;
  for (std::int64_t draw = 0; draw < std::min(budget, most_draws); ++draw) {
    const std::uint64_t bits = hash(index, static_cast<std::uint64_t>(draw));
    values[(bits >> 1) % values.size()] += (bits & 1) != 0 ? 1.0 : -1.0;
  }
}

void draw_factors(std::uint64_t index, Values values) {
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    values[rank] = (hash(index, rank) & 1) != 0 ? 1.0 : -1.0;
  }
  for (std::uint64_t draw = 0; draw < 4; ++draw) values[hash(~index, draw) % values.size()] *= 2.0;
}

void draw_any(std::uint64_t index, std::int64_t limit, Values values) {
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    values[rank] = static_cast<double>(whole_within(hash(index, rank), limit));
  }
}

double reduce_values(ReduceOp op, std::span<const double> values) {
  double result = op == ReduceOp::scaled_sum ? values[0] * scale_of(0) : values[0];
  for (std::size_t rank = 1; rank < values.size(); ++rank) {
    switch (op) {
      case ReduceOp::prod: result *= values[rank]; break;
      case ReduceOp::min: result = std::min(result, values[rank]); break;
      case ReduceOp::max: result = std::max(result, values[rank]); break;
      case ReduceOp::scaled_sum: result += values[rank] * scale_of(static_cast<int>(rank)); break;
      default: result += values[rank]; break;
    }
  }
  return op == ReduceOp::avg ? result / static_cast<double>(values.size()) : result;
}

bool is_signed(DataType type) { return type == DataType::int8 || type == DataType::int32 || type == DataType::int64; }

// Integer elements, widened to 64 bits with their sign.
std::uint64_t widen(DataType type, std::uint64_t bits) {
  const auto unused = static_cast<unsigned>(64 - 8 * size_of(type));
  if (!is_signed(type)) return bits << unused >> unused;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
}

bool less(DataType type, std::uint64_t a, std::uint64_t b) {
  return is_signed(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
}

std::uint64_t reduce_integers(DataType type, ReduceOp op, std::span<const std::uint64_t> values) {
  std::uint64_t result = values[0];
  for (const std::uint64_t value : values.subspan(1)) {
    switch (op) {
      case ReduceOp::prod: result *= value; break;
      case ReduceOp::min: result = less(type, value, result) ? value : result; break;
      case ReduceOp::max: result = less(type, result, value) ? value : result; break;
      case ReduceOp::band: result &= value; break;
      case ReduceOp::bor: result |= value; break;
      case ReduceOp::bxor: result ^= value; break;
      default: result += value; break;
    }
  }
  if (op != ReduceOp::avg) return result;
  const std::uint64_t wrapped = widen(type, result);
  const std::size_t ranks = values.size();
  if (!is_signed(type)) return wrapped / ranks;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(wrapped) / static_cast<std::int64_t>(ranks));
}

// Odd factors keep products from vanishing; sparse bits keep `and` and `or` from saturating.
std::uint64_t draw_integer(DataType type, ReduceOp op, std::uint64_t index, std::size_t rank) {
  const std::uint64_t bits = hash(index, rank);
  if (op == ReduceOp::prod) return widen(type, bits | 1);
  if (op == ReduceOp::band) return widen(type, bits | mix(bits) | mix(mix(bits)));
  if (op == ReduceOp::bor) return widen(type, bits & mix(bits) & mix(mix(bits)));
  return widen(type, bits);
}

}  // namespace

Pattern::Pattern(DataType type, std::optional<ReduceOp> op, int ranks) : type_(type), op_(op), ranks_(ranks) {
  const std::size_t element = size_of(type);
  const auto count = static_cast<std::size_t>(ranks);
  inputs_.resize(count * period * element);
  const auto input = [&](std::size_t rank, std::size_t i) { return inputs_.data() + (rank * period + i) * element; };
  if (!op) {
    for (std::size_t rank = 0; rank < count; ++rank) {
      for (std::size_t i = 0; i < period; ++i) store_bits(type, hash(i, rank), input(rank, i));
    }
    return;
  }
  reduced_.resize(period * element);
  std::vector<double> values(count);
  std::vector<std::uint64_t> integers(count);
  for (std::size_t i = 0; i < period; ++i) {
    std::byte* const result = reduced_.data() + i * element;
    if (is_integer(type)) {
      for (std::size_t rank = 0; rank < count; ++rank) {
        integers[rank] = draw_integer(type, *op, i, rank);
        store_bits(type, integers[rank], input(rank, i));
      }
      store_bits(type, reduce_integers(type, *op, integers), result);
      continue;
    }
    // Beyond 2^30 nothing is gained, and sums stay far from the limits of double.
    const std::int64_t limit = std::min(exact_limit(type), std::int64_t{1} << 30);
    switch (*op) {
      case ReduceOp::prod: draw_factors(i, values); break;
      case ReduceOp::min:
      case ReduceOp::max: draw_any(i, limit, values); break;
      default: draw_terms(i, limit, *op == ReduceOp::scaled_sum, values); break;
    }
    for (std::size_t rank = 0; rank < count; ++rank) store_bits(type, encode(type, values[rank]), input(rank, i));
    store_bits(type, encode(type, reduce_values(*op, values)), result);
  }
}

Reduction Pattern::reduction(int rank) const {
  if (op_ == ReduceOp::scaled_sum) return scaled_sum(scale_of(rank));
  return op_.value_or(ReduceOp::sum);
}

std::span<const std::byte> Pattern::table(int source) const {
  const std::size_t bytes = period * size_of(type_);
  if (source < 0) return reduced_;
  return std::span(inputs_).subspan(static_cast<std::size_t>(source % ranks_) * bytes, bytes);
}

void Pattern::fill(int rank, std::size_t start, std::span<std::byte> destination) const {
  const std::span<const std::byte> source = table(rank);
  std::size_t place = (start + shift_) % period * size_of(type_);
  while (!destination.empty()) {
    const std::size_t bytes = std::min(source.size() - place, destination.size());
    std::memcpy(destination.data(), source.data() + place, bytes);
    destination = destination.subspan(bytes);
    place = 0;
  }
}

std::size_t Pattern::count_wrong(int source, std::size_t start, std::span<const std::byte> actual) const {
  const std::span<const std::byte> expected = table(source);
  const std::size_t element = size_of(type_);
  // Copies must be exact to the bit, NaNs and signs of zero included.
  const bool copied = !op_.has_value();
  const bool rounds = op_ == ReduceOp::avg && source < 0;
  const std::uint64_t tolerance = rounds ? 2 : 0;
  std::size_t wrong = 0;
  std::size_t place = (start + shift_) % period * element;
  while (!actual.empty()) {
    const std::size_t bytes = std::min(expected.size() - place, actual.size());
    if (std::memcmp(actual.data(), expected.data() + place, bytes) != 0) {
      for (std::size_t i = 0; i < bytes; i += element) {
        const std::uint64_t want = load_bits(type_, expected.data() + place + i);
        const std::uint64_t got = load_bits(type_, actual.data() + i);
        if (copied ? want != got : distance(type_, want, got) > tolerance) ++wrong;
      }
    }
    actual = actual.subspan(bytes);
    place = 0;
  }
  return wrong;
}

}  // namespace rondo::perf
