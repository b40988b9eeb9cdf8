// The frames of the control tree, and the arithmetic of its routes. Values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rondo::bootstrap {

// The tree's own types of frames; smaller ones are messages of its users.
enum class TreeFrame : std::uint32_t {
  first = 0x8000'0000,
  heartbeat = 0x8000'0001,      // neighbour to neighbour, no payload
  failed = 0x8000'0002,         // flood: rank (4), why
  leaving = 0x8000'0003,        // neighbour to neighbour: my closing link will be no failure
  subtree_left = 0x8000'0004,   // child to parent: I and all below me are leaving
  release = 0x8000'0005,        // parent to child: all ranks of the world are leaving
  gather_part = 0x8000'0006,    // member to members[0]: sequence (8), bytes
  gather_result = 0x8000'0007,  // members[0] to members: sequence (8), count (4), that many blocks of bytes
  gather_query = 0x8000'0008,   // member to members[0]: sequence (8)
  gather_answer = 0x8000'0009,  // members[0] to member: sequence (8), count (4), the ranks (4) whose parts it has
};

inline constexpr std::int32_t to_everybody = -1;

struct ControlFrame {
  std::uint32_t type = 0;
  std::uint64_t context = 0;
  std::int32_t source = 0;
  std::int32_t destination = to_everybody;
  std::span<const std::byte> payload;  // of the bytes parsed
};

std::vector<std::byte> encode(const ControlFrame& frame);
// Throws Error(transport) when the bytes are no frame among `size` ranks.
ControlFrame decode_control_frame(std::span<const std::byte> bytes, int size);

// The tree: parent of r is (r - 1) / control_tree_arity.
int tree_parent(int rank);  // -1 for rank 0
std::vector<int> tree_children(int rank, int size);
int tree_depth(int rank);
// The neighbour of `rank` that is nearer to `destination` (another rank).
int next_hop(int rank, int destination);
// Whether `rank` lies between or at the ends of the way from a to b.
bool on_path(int rank, int a, int b);

}  // namespace rondo::bootstrap
