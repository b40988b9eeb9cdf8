// Feeds a target without libFuzzer, in well under a second, always the same: its seeds, which must be well-formed, the
// files of the corpus folder given, and for each of these all that it may have been cut to, and mutations of one byte.
#include "harness/target.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace rondo::fuzz {
namespace {

constexpr std::size_t most_cuts = 400;      // an input
constexpr std::size_t mutations = 2000;     // in all
constexpr std::uint32_t seed = 0x526f6e64;  // of the mutations

std::vector<Bytes> read_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> inputs;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    inputs.push_back(bytes_of(std::string(std::istreambuf_iterator<char>(file), {})));
  }
  return inputs;
}

std::size_t replay(const std::filesystem::path& folder) {
  std::vector<Bytes> inputs = seeds();
  require(!inputs.empty(), "a target has seeds");
  for (const Bytes& input : inputs) require(parse(input), "a seed is well-formed");
  std::size_t runs = inputs.size();
  for (Bytes& input : read_folder(folder)) {
    parse(input);
    ++runs;
    inputs.push_back(std::move(input));
  }
  for (const Bytes& input : inputs) {
    // A vector of its own, so that a sanitizer sees a read behind the cut.
    for (std::size_t cut = 0; cut < std::min(input.size(), most_cuts); ++cut, ++runs) {
      parse(Bytes(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(cut)));
    }
  }
  std::mt19937 random(seed);  // its numbers, unlike a distribution's, are the same everywhere
  for (std::size_t i = 0; i < mutations; ++i) {
    Bytes input = inputs[i % inputs.size()];
    if (input.empty()) continue;
    input[random() % input.size()] = static_cast<std::byte>(random() & 0xff);
    parse(input);
    ++runs;
  }
  return runs;
}

}  // namespace
}  // namespace rondo::fuzz

int main(int count, char** arguments) {
  const std::size_t runs = rondo::fuzz::replay(count > 1 ? arguments[1] : "");
  std::printf("%zu inputs\n", runs);
  return 0;
}
