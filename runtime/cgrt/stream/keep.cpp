#include "cgrt/stream/keep.h"

#include <mutex>
#include <utility>
#include <vector>

#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace {

struct Kept {
  std::shared_ptr<const void> resource;
};

struct Released {
  std::mutex mutex;
  std::vector<std::unique_ptr<Kept>> kept;
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
  queue.kept.emplace_back(static_cast<Kept*>(kept));
  internal::any_released = true;
}

}  // namespace

namespace internal {

absl::Status keep_in_graph(CUgraph graph, std::shared_ptr<const void> resource, CUuserObject* out) {
  kept_count.fetch_add(1, std::memory_order_relaxed);
  auto kept = std::make_unique<Kept>(Kept{std::move(resource)});
  CUuserObject object = nullptr;
  const CUresult created =
      driver::api().UserObjectCreate(&object, kept.get(), &release, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (created != CUDA_SUCCESS) return driver::to_status(created, "cuUserObjectCreate");
  static_cast<void>(kept.release());  // the object's from here on
  const CUresult retained = driver::api().GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (out != nullptr) *out = object;
  if (retained == CUDA_SUCCESS) return absl::OkStatus();
  driver::api().UserObjectRelease(object, 1);
  return driver::to_status(retained, "cuGraphRetainUserObject");
}

constinit std::atomic<bool> any_released{false};
constinit std::atomic<std::uint64_t> kept_count{0};

std::size_t collect_all_released() {
  // A free inside somebody's capture would end that capture.
  const RelaxedCaptureMode relaxed;
  Released& queue = released();
  std::size_t count = 0;
  while (any_released.load(std::memory_order_acquire)) {  // a graph that was kept lets go of what it kept itself
    std::vector<std::unique_ptr<Kept>> taken;
    {
      const std::lock_guard lock(queue.mutex);
      taken.swap(queue.kept);
      any_released = false;
    }
    count += taken.size();
  }
  return count;
}

}  // namespace internal
}  // namespace cgrt
