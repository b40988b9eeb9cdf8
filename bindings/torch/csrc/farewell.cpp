#include "farewell.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace rondo_torch {
namespace {

struct Farewells {
  std::mutex mutex;
  std::condition_variable ended;
  int open = 0;
};
// Never destroyed: a thread may outlast main().
Farewells& farewells() {
  static auto& all = *new Farewells;
  return all;
}

void close(const std::shared_ptr<rondo::Communicator>& communicator) {
  try {
    communicator->close();
  } catch (const std::exception&) {  // a peer is gone, or the group had failed: whoever asked was told by then
    communicator->abort("the process group was destroyed");
  }
}

}  // namespace

void say_farewell(std::shared_ptr<rondo::Communicator> communicator, std::unique_ptr<Completions> completions,
                  std::chrono::milliseconds patience) noexcept {
  struct Parting {
    std::shared_ptr<rondo::Communicator> communicator;
    std::unique_ptr<Completions> completions;
    bool done = false;  // guarded by Farewells::mutex
  };
  try {
    auto parting = std::make_shared<Parting>();
    parting->communicator = std::move(communicator);
    parting->completions = std::move(completions);
    Farewells& all = farewells();
    std::thread thread([parting, &all] {
      close(parting->communicator);
      parting->completions.reset();  // every operation has ended
      parting->communicator.reset();
      {
        const std::lock_guard lock(all.mutex);
        parting->done = true;
        --all.open;
      }
      all.ended.notify_all();
    });
    {
      const std::lock_guard lock(all.mutex);
      ++all.open;  // below zero for a moment, if the thread was quicker
    }
    bool done = false;
    {
      std::unique_lock lock(all.mutex);
      done = all.ended.wait_for(lock, patience, [&] { return parting->done; });
    }
    if (done) thread.join();
    else thread.detach();
  } catch (const std::exception&) {  // no thread to be had: the peers see the connection close
  }
}

bool wait_for_farewells(std::chrono::milliseconds patience) {
  Farewells& all = farewells();
  std::unique_lock lock(all.mutex);
  return all.ended.wait_for(lock, patience, [&] { return all.open <= 0; });
}

}  // namespace rondo_torch
