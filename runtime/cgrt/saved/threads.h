// Work on files in a few threads. Internal to saved/.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace cgrt::saved {

// Calls `work` with each number below `count` and a State of its thread. Blocks until all are done.
template <class State, class Work>
void in_threads(std::size_t count, const Work& work) {
  constexpr unsigned kMaxThreads = 8;
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    State state;
    for (std::size_t i = next++; i < count; i = next++) work(i, state);
  };
  std::vector<std::jthread> threads;
  try {
    for (unsigned i = 1; i < std::min(kMaxThreads, std::thread::hardware_concurrency()); ++i) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // Those that there are do the work.
  }
  run();
}

}  // namespace cgrt::saved
