#include "cgrt/graph/graph.h"

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/keep.h"

namespace cgrt {

absl::StatusOr<Graph> Graph::create(ContextRef context) {
  collect_released();
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CUgraph graph = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&graph, 0), "cuGraphCreate"));
  return Graph(std::make_shared<internal::GraphState>(graph, handle));
}

absl::StatusOr<Graph> Graph::adopt(CUgraph graph, ContextRef context) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  return Graph(std::make_shared<internal::GraphState>(graph, handle));
}

Graph::Graph(std::shared_ptr<internal::GraphState> state) : state_(std::move(state)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

absl::StatusOr<KernelNode> Graph::add_kernel(Dependencies dependencies, const KernelLaunch& launch) {
  return internal::add_kernel(*state_, dependencies, launch);
}

absl::StatusOr<MemcpyNode> Graph::add_copy(Dependencies dependencies, void* destination, const void* source,
                                           std::size_t bytes) {
  return internal::add_copy(*state_, dependencies, {destination, source, bytes});
}

absl::StatusOr<MemsetNode> Graph::add_fill(Dependencies dependencies, const FillParams& fill) {
  return internal::add_fill(*state_, dependencies, fill);
}

absl::StatusOr<EmptyNode> Graph::add_empty(Dependencies dependencies) {
  return internal::add_empty(*state_, dependencies);
}

Cursor Graph::cursor() { return Cursor(*state_, {}); }
Cursor Graph::cursor(Dependencies dependencies) { return Cursor(*state_, dependencies); }

absl::Status Graph::keep(std::shared_ptr<const void> resource) {
  return internal::keep_in_graph(state_->handle.get(), std::move(resource));
}

absl::StatusOr<std::size_t> Graph::node_count() const {
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphGetNodes(state_->handle.get(), nullptr, &count), "cuGraphGetNodes"));
  return count;
}

GraphRef Graph::ref() const { return GraphRef(state_->handle.get()); }

}  // namespace cgrt
