#include "bootstrap/control_frame.hpp"

#include "base/bytes.hpp"
#include "bootstrap/control_tree.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

namespace rondo::bootstrap {

std::vector<std::byte> encode(const ControlFrame& frame) {
  base::ByteWriter writer;
  writer.put(frame.type).put(frame.context).put(frame.source).put(frame.destination).put_raw(frame.payload);
  return writer.take();
}

ControlFrame decode_control_frame(std::span<const std::byte> bytes, int size) {
  base::ByteReader reader(bytes);
  ControlFrame frame;
  frame.type = reader.get<std::uint32_t>();
  frame.context = reader.get<std::uint64_t>();
  frame.source = reader.get<std::int32_t>();
  frame.destination = reader.get<std::int32_t>();
  frame.payload = reader.rest();
  if (frame.source < 0 || frame.source >= size || frame.destination < to_everybody || frame.destination >= size) {
    throw Error(ErrorCode::transport, fmt::format("malformed frame: from rank {} to rank {} in a world of {}",
                                                  frame.source, frame.destination, size));
  }
  return frame;
}

int tree_parent(int rank) { return rank == 0 ? -1 : (rank - 1) / control_tree_arity; }

std::vector<int> tree_children(int rank, int size) {
  std::vector<int> out;
  for (int i = 1; i <= control_tree_arity; ++i) {
    const std::int64_t child = std::int64_t{rank} * control_tree_arity + i;
    if (child < size) out.push_back(static_cast<int>(child));
  }
  return out;
}

int tree_depth(int rank) {
  int depth = 0;
  for (; rank > 0; rank = tree_parent(rank)) ++depth;
  return depth;
}

int next_hop(int rank, int destination) {
  // Numbers grow with depth, so an ancestor's is smaller: climb from the destination until it is a child of ours, or
  // cannot be below us any more.
  while (destination > rank) {
    const int parent = tree_parent(destination);
    if (parent == rank) return destination;
    destination = parent;
  }
  return tree_parent(rank);
}

bool on_path(int rank, int a, int b) {
  while (a != b) {
    if (a == rank || b == rank) return true;
    if (a > b) {
      a = tree_parent(a);
    } else {
      b = tree_parent(b);
    }
  }
  return a == rank;
}

}  // namespace rondo::bootstrap
