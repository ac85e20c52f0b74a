#include "inject/exec_lists.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "cgrt/driver/api.h"
#include "inject/session.h"

namespace graphdump {
namespace {

namespace ir = cgrt::ir;

// Of this thread. Asked for once a graph, and only by those that use host memory: for the first thread of a process the
// C library reads a file.
class Stack {
 public:
  bool contains(std::uintptr_t address) {
    if (!is_asked_) ask();
    return address - begin_ < bytes_;
  }

 private:
  void ask() {
    is_asked_ = true;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    if (pthread_attr_getstack(&attributes, &begin, &bytes_) != 0) bytes_ = 0;
    begin_ = reinterpret_cast<std::uintptr_t>(begin);
    pthread_attr_destroy(&attributes);
  }

  bool is_asked_ = false;
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
};

// In a program or library, which lives as long as its code.
bool is_static(const void* data) {
  Dl_info found;
  return dladdr(data, &found) != 0;
}

}  // namespace

std::uint64_t number_of(CUstream stream) {
  if (stream == CU_STREAM_LEGACY) return kLegacyStream;
  if (stream != CU_STREAM_PER_THREAD) return reinterpret_cast<std::uintptr_t>(stream);
  static thread_local const std::uint64_t number = static_cast<std::uint64_t>(gettid()) << kThreadShift;
  return number | kPerThreadStream;
}

void note_stream(ExecRecord& record, CUstream stream) {
  const std::uint64_t number = number_of(stream);
  for (std::atomic<std::uint64_t>& place : record.streams) {
    std::uint64_t there = place.load(std::memory_order_relaxed);
    if (there == number) return;
    if (there == 0 && place.compare_exchange_strong(there, number, std::memory_order_relaxed)) return;
    if (there == number) return;  // another thread's
  }
  record.has_more_streams.store(1, std::memory_order_relaxed);
}

void list_memory(Session& session, ExecRecord& record, const ir::GraphIr& graph, const std::vector<CUgraphNode>& nodes,
                 const std::vector<cgrt::AllocationId>& memory) {
  std::vector<std::uint64_t> host_data, stack_nodes;
  Stack stack;
  const auto is_on_stack = [&](const std::optional<ir::Pointer>& pointer) {
    return pointer.has_value() && graph.allocations[pointer->allocation].kind == ir::MemoryKind::kPageableHost &&
           stack.contains(memory[pointer->allocation].start + pointer->offset);
  };
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    CUDA_HOST_NODE_PARAMS host{};
    if (const auto* copy = std::get_if<ir::MemcpyParams>(&graph.nodes[n].params)) {
      if (is_on_stack(copy->source) || is_on_stack(copy->destination)) stack_nodes.push_back(n);
    } else if (graph.nodes[n].kind == ir::NodeKind::kHost &&
               cgrt::driver::api().GraphHostNodeGetParams(nodes[n], &host) == CUDA_SUCCESS &&
               host.userData != nullptr) {
      if (stack.contains(reinterpret_cast<std::uintptr_t>(host.userData))) {
        stack_nodes.push_back(n);
      } else if (!is_static(host.userData)) {
        host_data.push_back(n);
      }
    }
  }
  const std::size_t count = memory.size() + host_data.size() + stack_nodes.size();
  const std::uint64_t first = session.header.listed.fetch_add(count);
  if (first + count > kMaxListed) {
    if (first <= kMaxListed) note("There is no room for the memory of further graphs: lint says less of them.");
    return;
  }
  std::uint64_t* out = session.listed + first;
  for (const cgrt::AllocationId& one : memory) *out++ = one.buffer_id;
  out = std::copy(host_data.begin(), host_data.end(), out);
  std::copy(stack_nodes.begin(), stack_nodes.end(), out);
  record.first_listed = static_cast<std::uint32_t>(first);
  record.memory_count = static_cast<std::uint32_t>(memory.size());
  record.host_data_count = static_cast<std::uint32_t>(host_data.size());
  record.stack_node_count = static_cast<std::uint32_t>(stack_nodes.size());
}

}  // namespace graphdump
