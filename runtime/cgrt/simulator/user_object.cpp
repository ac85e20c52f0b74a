// User objects: resources that a graph keeps.
#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {

CUresult UserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy, unsigned references, unsigned flags) {
  const Lock lock(state->mutex);
  if (out == nullptr || destroy == nullptr || references == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto object = std::make_unique<CUuserObject_st>(CUuserObject_st{pointer, destroy, references});
  *out = object.get();
  state->user_objects.emplace(*out, std::move(object));
  return CUDA_SUCCESS;
}

CUresult UserObjectRelease(CUuserObject object, unsigned count) {
  const Lock lock(state->mutex);
  const auto found = state->user_objects.find(object);
  if (found == state->user_objects.end() || count == 0 || count > object->references) return CUDA_ERROR_INVALID_VALUE;
  object->references -= count;
  if (object->references == 0) {
    const std::unique_ptr<CUuserObject_st> last = std::move(found->second);
    state->user_objects.erase(found);
    last->destroy(last->pointer);
  }
  return CUDA_SUCCESS;
}

CUresult GraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned count, unsigned flags) {
  const Lock lock(state->mutex);
  CUgraph_st* graph = find_graph(handle);
  if (graph == nullptr || !state->user_objects.contains(object) || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  // Copied into executables and from there into launches in flight: the last copy releases.
  graph->kept.push_back(std::shared_ptr<void>(
      object, [count](void* last) { UserObjectRelease(static_cast<CUuserObject>(last), count); }));
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
