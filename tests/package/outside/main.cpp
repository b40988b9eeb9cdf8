// A program of somebody else's: two ranks as threads sum a vector, and an error of the library is caught by its type.
#include <rondo/rondo.hpp>

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

bool sums_right(rondo::Communicator& communicator) {
  std::vector<float> data(1000, static_cast<float>(communicator.rank() + 1));
  communicator.all_reduce(std::span<float>(data));
  communicator.close();
  for (const float value : data) {
    if (value != 3.0F) return false;
  }
  return true;
}

bool error_is_caught() {
  try {
    static_cast<void>(rondo::UniqueId::from_string("not an id"));
  } catch (const rondo::Error& error) {
    return error.code() == rondo::ErrorCode::invalid_argument && std::string(error.what()).size() > 10;
  }
  return false;
}

}  // namespace

int main() {
  try {
    std::vector<rondo::Communicator> ranks = rondo::Communicator::create_local(2);
    bool other = false;
    std::thread thread([&] { other = sums_right(ranks[1]); });
    const bool mine = sums_right(ranks[0]);
    thread.join();
    const bool caught = error_is_caught();
    std::printf("rondo %s: sums %s, errors %s\n", rondo::version(), mine && other ? "right" : "WRONG",
                caught ? "caught" : "LOST");
    return mine && other && caught ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
