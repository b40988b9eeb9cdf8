// A rank that something bad happens to: fault_rank SCENARIO [RANK]. All ranks print "STARTED <pid>" at once and "READY
// <pid>" when they have joined and exchanged data; those that see an error print "REPORT <CLOCK_MONOTONIC ns> <code>
// <peer> <text>" and exit with 3.
#include <rondo/rondo.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

long long now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void print(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

int report(const rondo::Error& error) {
  print("REPORT " + std::to_string(now_ns()) + " " + std::string(name_of(error.code())) + " " +
        std::to_string(error.peer()) + " " + error.what());
  return 3;
}

// Changes one digit of the key in this process's copy of the launcher's id (src/bootstrap/unique_id.cpp: bytes 8 to
// 39).
void wrong_key() {
  std::string id = std::getenv("RONDO_UNIQUE_ID");
  id[20] = id[20] == '0' ? '1' : '0';
  setenv("RONDO_UNIQUE_ID", id.c_str(), 1);
}

[[noreturn]] void reduce_for_ever(rondo::Communicator& world, std::size_t count) {
  std::vector<float> data(count, 1.0F);
  for (;;) world.all_reduce(std::span(data), rondo::ReduceOp::max);
}

struct Rank {
  rondo::Communicator& world;
  bool chosen;  // the one that something happens to

  // The test kills or stops somebody from outside.
  void loop() { reduce_for_ever(world, 4 << 20); }
  void small_loop() { reduce_for_ever(world, 64); }
  // Dies of SIGKILL while a child that it forked lives on.
  void die_with_child() {
    if (chosen) {
      const pid_t child = fork();
      if (child == 0) {
        // The child keeps the streams open as well, so the launcher's patience is no help.
        for (;;) pause();
      }
      print("CHILD " + std::to_string(child));
      print("DIED " + std::to_string(now_ns()));
      raise(SIGKILL);
    }
    reduce_for_ever(world, 1 << 20);
  }
  // A forked child is refused whatever it tries; the parent goes on unharmed.
  void use_in_child() {
    if (chosen) {
      const pid_t child = fork();
      if (child == 0) {
        int refused = 0;
        const auto attempt = [&](const std::function<void()>& call) {
          try {
            call();
          } catch (const rondo::Error& error) {
            if (error.code() == rondo::ErrorCode::invalid_usage) ++refused;
          }
        };
        float value = 1;
        attempt([&] { world.all_reduce(std::span(&value, 1)); });
        attempt([&] { world.barrier(); });
        attempt([&] { world.close(); });
        attempt([&] { static_cast<void>(world.split({})); });
        attempt([&] { static_cast<void>(world.allocate<float>(4)); });
        attempt([&] { static_cast<void>(rondo::Communicator::from_environment()); });
        world.abort("a child");
        // Numbers of descriptors that the library had are this process's own now: destructors must leave them alone.
        std::vector<int> own;
        for (int i = 0; i < 64; ++i) own.push_back(dup(1));
        { const rondo::Communicator gone = std::move(world); }
        int kept = 0;
        for (const int fd : own) kept += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
        _exit(refused == 6 && kept == 64 ? 0 : 10 + refused);
      }
      int status = 0;
      waitpid(child, &status, 0);
      print("CHILD " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
    }
    world.barrier();
    world.close();
  }
  void exit_without_close() {
    if (chosen) {
      print("DIED " + std::to_string(now_ns()));
      std::exit(0);
    }
    reduce_for_ever(world, 1024);
  }
  void exit_at_once() {
    if (chosen) {
      print("DIED " + std::to_string(now_ns()));
      _exit(0);
    }
    reduce_for_ever(world, 1024);
  }
  void throw_out_of_main() {
    if (chosen) {
      print("DIED " + std::to_string(now_ns()));
      throw std::runtime_error("nobody catches this");
    }
    reduce_for_ever(world, 1024);
  }
  // One rank is busy elsewhere, healthy.
  void never_call() {
    if (chosen) {
      for (;;) {
        world.check();
        std::this_thread::sleep_for(10ms);
      }
    }
    world.barrier();
  }
  void abort_from_another_thread() {
    std::thread helper;
    if (chosen) {
      // The other ranks and this one's main thread wait in a receive that nobody sends to.
      helper = std::thread([this] {
        std::this_thread::sleep_for(200ms);
        print("DIED " + std::to_string(now_ns()));
        world.abort("enough");
      });
    }
    float value = 0;
    try {
      world.receive(std::span(&value, 1), rondo::any_source);
    } catch (...) {
      if (helper.joinable()) helper.join();
      throw;
    }
  }
  void nothing() { world.close(); }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string scenario = argv[1];
  const int chosen = argc > 2 ? std::atoi(argv[2]) : -1;
  const std::map<std::string, void (Rank::*)()> scenarios = {
      {"loop", &Rank::loop},
      {"small_loop", &Rank::small_loop},
      {"die_with_child", &Rank::die_with_child},
      {"use_in_child", &Rank::use_in_child},
      {"exit_without_close", &Rank::exit_without_close},
      {"exit_at_once", &Rank::exit_at_once},
      {"throw_out_of_main", &Rank::throw_out_of_main},
      {"never_call", &Rank::never_call},
      {"abort", &Rank::abort_from_another_thread},
      {"nothing", &Rank::nothing},
  };
  const auto found = scenarios.find(scenario);
  if (found == scenarios.end()) return 2;
  // A rank that never joins.
  const char* const rank_text = std::getenv("RONDO_RANK");
  const std::string own_rank = rank_text == nullptr ? "" : rank_text;
  if (const char* const missing = std::getenv("TEST_MISSING_RANK"); missing != nullptr && own_rank == missing) {
    for (;;) pause();
  }
  // What only the chosen rank has in its environment: "NAME=value".
  if (const char* const own = std::getenv("TEST_OWN_VARIABLE"); own != nullptr && own_rank == std::to_string(chosen)) {
    putenv(const_cast<char*>(own));
  }

  if (std::getenv("TEST_WRONG_KEY") != nullptr && own_rank == std::to_string(chosen)) wrong_key();
  print("STARTED " + std::to_string(getpid()));
  try {
    rondo::Communicator world = rondo::Communicator::from_environment();
    std::vector<float> data(4096, 1.0F);
    world.all_reduce(std::span(data));
    print("READY " + std::to_string(getpid()));
    Rank rank{world, world.rank() == chosen};
    try {
      (rank.*found->second)();
    } catch (const rondo::Error& error) {
      return report(error);
    }
    return 0;
  } catch (const rondo::Error& error) {
    return report(error);
  }
}
