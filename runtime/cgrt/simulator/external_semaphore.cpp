// External semaphores: words in files, which other processes and the host map too.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

CUextSemaphore_st::~CUextSemaphore_st() {
  munmap(word, sizeof(*word));
  close(fd);
}

namespace cgrt::simulator {
namespace {

std::atomic_ref<cuuint64_t> value_of(const SemaphoreData& data, std::size_t i) {
  return std::atomic_ref(*data.semaphores[i]->word);
}

template <class Params>
CUresult make_data(const CUexternalSemaphore* handles, const Params* params, unsigned count, NodeData& data) {
  if (handles == nullptr || params == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto out = std::make_shared<SemaphoreData>();
  for (unsigned i = 0; i < count; ++i) {
    const auto found = state->semaphores.find(handles[i]);
    if (found == state->semaphores.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (params[i].flags != 0) return CUDA_ERROR_INVALID_VALUE;
    out->handles.push_back(handles[i]);
    out->semaphores.push_back(found->second);
  }
  if constexpr (std::is_same_v<Params, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>) {
    data.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
    out->signals.assign(params, params + count);
  } else {
    data.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    out->waits.assign(params, params + count);
  }
  data.semaphores = std::move(out);
  return CUDA_SUCCESS;
}

template <class Params>
CUresult enqueue_semaphores(const CUexternalSemaphore* handles, const Params* params, unsigned count, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  auto data = std::make_shared<NodeData>();
  if (result = make_data(handles, params, count, *data); result != CUDA_SUCCESS) return result;
  if (capturing) {
    capture_node(stream, std::move(data), false);
  } else {
    enqueue_steps_of(stream, data);
  }
  return CUDA_SUCCESS;
}

const SemaphoreData* find_data(CUgraphNode node, CUgraphNodeType type) {
  return state->nodes.contains(node) && node->data->type == type ? node->data->semaphores.get() : nullptr;
}

}  // namespace

template <class Params>
CUresult semaphore_data(const Params& params, NodeData& data) {
  return make_data(params.extSemArray, params.paramsArray, params.numExtSems, data);
}
template CUresult semaphore_data(const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2& params, NodeData& data);
template CUresult semaphore_data(const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2& params, NodeData& data);

bool is_met(const SemaphoreData& data, std::size_t i) {
  if (data.waits.empty()) return true;
  const cuuint64_t least = data.semaphores[i]->is_timeline ? data.waits[i].params.fence.value : 1;
  return value_of(data, i).load() >= least;
}

void run_semaphore(const SemaphoreData& data, std::size_t i) {
  const bool is_timeline = data.semaphores[i]->is_timeline;
  if (data.waits.empty()) {
    value_of(data, i).store(is_timeline ? data.signals[i].params.fence.value : 1);
  } else if (!is_timeline) {
    value_of(data, i).store(0);
  }
}

CUresult ImportExternalSemaphore(CUexternalSemaphore* out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* description) {
  const Lock lock(state->mutex);
  if (out == nullptr || description == nullptr || description->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const bool is_timeline = description->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  if (!is_timeline && description->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD) {
    return unsupported("the simulator does not have that type of external semaphore");
  }
  const int fd = description->handle.fd;
  struct stat file {};
  if (fstat(fd, &file) != 0 || file.st_size < static_cast<off_t>(sizeof(cuuint64_t))) return CUDA_ERROR_UNKNOWN;
  void* const word = mmap(nullptr, sizeof(cuuint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (word == MAP_FAILED) return CUDA_ERROR_OPERATING_SYSTEM;
  auto semaphore = std::make_shared<CUextSemaphore_st>();
  semaphore->is_timeline = is_timeline;
  semaphore->fd = fd;
  semaphore->word = static_cast<cuuint64_t*>(word);
  *out = semaphore.get();
  state->semaphores.emplace(*out, std::move(semaphore));
  return CUDA_SUCCESS;
}

CUresult DestroyExternalSemaphore(CUexternalSemaphore semaphore) {
  const Lock lock(state->mutex);
  return state->semaphores.erase(semaphore) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult SignalExternalSemaphoresAsync(const CUexternalSemaphore* handles,
                                       const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* params, unsigned count,
                                       CUstream stream) {
  const Lock lock(state->mutex);
  return enqueue_semaphores(handles, params, count, stream);
}

CUresult WaitExternalSemaphoresAsync(const CUexternalSemaphore* handles,
                                     const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* params, unsigned count,
                                     CUstream stream) {
  const Lock lock(state->mutex);
  return enqueue_semaphores(handles, params, count, stream);
}

CUresult GraphExternalSemaphoresSignalNodeGetParams(CUgraphNode node, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params) {
  const Lock lock(state->mutex);
  const SemaphoreData* const data = find_data(node, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {const_cast<CUexternalSemaphore*>(data->handles.data()), data->signals.data(),
             static_cast<unsigned>(data->handles.size())};
  return CUDA_SUCCESS;
}

CUresult GraphExternalSemaphoresWaitNodeGetParams(CUgraphNode node, CUDA_EXT_SEM_WAIT_NODE_PARAMS* params) {
  const Lock lock(state->mutex);
  const SemaphoreData* const data = find_data(node, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {const_cast<CUexternalSemaphore*>(data->handles.data()), data->waits.data(),
             static_cast<unsigned>(data->handles.size())};
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
