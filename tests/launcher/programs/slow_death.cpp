// A process that looks to others as one in the middle of dying: its first thread is gone, and its memory with it, while
// its status is not there yet. `slow_death FIFO die`: tells the FIFO, and is killed 100 ms later. `slow_death FIFO
// live`: tells the FIFO, and goes on until somebody ends it.
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

namespace {

bool first_thread_has_ended() {
  std::ifstream file("/proc/" + std::to_string(getpid()) + "/statm");
  unsigned long pages = 1;
  return static_cast<bool>(file >> pages) && pages == 0;
}

void last_thread(const std::string& fifo, bool die) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!first_thread_has_ended())
    if (std::chrono::steady_clock::now() > limit) _exit(99);
  std::ofstream(fifo) << "gone\n";
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the slowness itself
  if (die) kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::thread(last_thread, std::string(argv[1]), std::string(argv[2]) == "die").detach();
  pthread_exit(nullptr);
}
