// Feeds a target from libFuzzer. `PROGRAM --write-seeds FOLDER` writes the target's own seeds instead.
#include "harness/target.hpp"

#include <filesystem>
#include <fstream>

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count != 3 || std::string_view((*arguments)[1]) != "--write-seeds") return 0;
  const std::filesystem::path folder = (*arguments)[2];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& seed : rondo::fuzz::seeds()) {
    std::ofstream file(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rondo::fuzz::parse(std::as_bytes(std::span(data, size)));
  return 0;
}
