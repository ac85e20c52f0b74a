#include "cgrt/bundle/threads.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace cgrt::internal {

absl::Status in_threads(std::size_t threads, absl::FunctionRef<absl::Status()> work) {
  std::vector<absl::Status> results(threads);
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back([&, i] { results[i] = work(); });
    } catch (const std::system_error&) {
      // Those that there are do the work.
    }
    results[0] = work();
  }
  const auto failed = std::find_if(results.begin(), results.end(), [](const absl::Status& one) { return !one.ok(); });
  return failed != results.end() ? *failed : absl::OkStatus();
}

}  // namespace cgrt::internal
