#include "cgrt/stream/keep.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace {

using Resource = std::shared_ptr<const void>;
using Function = std::function<void()>;

struct Waiting {
  Event event;
  Resource resource;
};

struct Released {
  std::mutex mutex;
  std::vector<std::unique_ptr<Resource>> kept;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Waiting> waiting;
};

// Never destroyed: the driver may call back after main has returned.
Released& released() {
  static Released& queue = *new Released();
  return queue;
}

// Runs on a thread of the driver's, where CUDA calls are forbidden: only queues.
void CUDA_CB release(void* kept) {
  Released& queue = released();
  const std::lock_guard lock(queue.mutex);
  queue.kept.emplace_back(static_cast<Resource*>(kept));
  internal::any_released = true;
}

bool is_over(const Waiting& one) { return one.event.ref().is_complete().value_or(true); }  // or its context is lost

}  // namespace

namespace internal {

absl::Status keep_in_graph(CUgraph graph, std::shared_ptr<const void> resource) {
  kept_count.fetch_add(1, std::memory_order_relaxed);
  auto kept = std::make_unique<Resource>(std::move(resource));
  CUuserObject object = nullptr;
  const CUresult created =
      driver::api().UserObjectCreate(&object, kept.get(), &release, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (created != CUDA_SUCCESS) return driver::to_status(created, "cuUserObjectCreate");
  static_cast<void>(kept.release());  // the object's from here on
  const CUresult retained = driver::api().GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (retained == CUDA_SUCCESS) return absl::OkStatus();
  driver::api().UserObjectRelease(object, 1);
  return driver::to_status(retained, "cuGraphRetainUserObject");
}

void give_back_function(std::function<void()>* function) {
  Released& queue = released();
  const std::lock_guard lock(queue.mutex);
  queue.functions.emplace_back(function);
  any_released = true;
}

void collect_functions() {
  if (!any_released.load(std::memory_order_acquire)) return;
  Released& queue = released();
  std::vector<std::unique_ptr<Function>> taken;
  {
    const std::lock_guard lock(queue.mutex);
    taken.swap(queue.functions);
  }
  if (taken.empty()) return;
  const RelaxedCaptureMode relaxed;  // as below
  taken.clear();
}

void keep_until(Event event, std::shared_ptr<const void> resource) {
  Released& queue = released();
  const std::lock_guard lock(queue.mutex);
  queue.waiting.push_back({std::move(event), std::move(resource)});
  any_released = true;
}

constinit std::atomic<bool> any_released{false};
constinit std::atomic<std::uint64_t> kept_count{0};

std::size_t collect_all_released() {
  // A free inside somebody's capture would end that capture.
  const RelaxedCaptureMode relaxed;
  Released& queue = released();
  std::size_t count = 0;
  std::vector<Waiting> waiting;
  while (any_released.load(std::memory_order_acquire)) {  // a graph that was kept lets go of what it kept itself
    std::vector<std::unique_ptr<Resource>> taken;
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<Waiting> asked;
    {
      const std::lock_guard lock(queue.mutex);
      taken.swap(queue.kept);
      functions.swap(queue.functions);
      asked.swap(queue.waiting);
      any_released = false;
    }
    const auto over = std::partition(asked.begin(), asked.end(), [](const Waiting& one) { return !is_over(one); });
    count += taken.size() + functions.size() + static_cast<std::size_t>(asked.end() - over);
    std::move(asked.begin(), over, std::back_inserter(waiting));
  }
  for (Waiting& one : waiting) keep_until(std::move(one.event), std::move(one.resource));
  return count;
}

}  // namespace internal
}  // namespace cgrt
