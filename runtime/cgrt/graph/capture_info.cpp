#include "cgrt/graph/capture_info.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {
namespace {

absl::StatusOr<bool> has_dependents(CUgraphNode node) {
  std::size_t dependents = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetDependentNodes(node, nullptr, nullptr, &dependents),
                                         "cuGraphNodeGetDependentNodes"));
  return dependents != 0;
}

bool contains(const std::vector<CUgraphNode>& nodes, CUgraphNode node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

absl::StatusOr<CaptureInfo> capture_info(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CaptureInfo info;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().StreamGetCaptureInfo(stream, &status, &id, &info.graph, &nodes, &edges, &count),
                        "cuStreamGetCaptureInfo"));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CaptureInfo{};
  info.frontier.assign(nodes, nodes + count);
  if (edges != nullptr) info.edges.assign(edges, edges + count);
  info.edges.resize(count);
  return info;
}

std::string name_unjoined(CUstream origin, const std::vector<CUstream>& joined) {
  const absl::StatusOr<CaptureInfo> main = capture_info(origin);
  if (!main.ok()) return "";
  std::string names;
  absl::flat_hash_set<CUgraphNode> named;
  for (CUstream stream : joined) {
    const absl::StatusOr<CaptureInfo> side = capture_info(stream);
    if (!side.ok() || side->graph != main->graph) continue;
    for (CUgraphNode node : side->frontier) {
      const bool is_awaited = has_dependents(node).value_or(true) || contains(main->frontier, node);
      if (is_awaited || !named.insert(node).second) continue;
      absl::StrAppend(&names, names.empty() ? "" : ", ", describe_node(node), " in stream 0x",
                      absl::Hex(reinterpret_cast<std::uintptr_t>(stream)));
    }
  }
  return names;
}

absl::Status join_all(CUstream origin) {
  CGRT_ASSIGN_OR_RETURN(const CaptureInfo main, capture_info(origin));
  if (main.graph == nullptr) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(main.graph));
  std::vector<CUgraphNode> unjoined;
  for (CUgraphNode node : nodes) {
    CGRT_ASSIGN_OR_RETURN(const bool is_awaited, has_dependents(node));
    if (!is_awaited && !contains(main.frontier, node)) unjoined.push_back(node);
  }
  if (unjoined.empty()) return absl::OkStatus();
  return driver::to_status(driver::api().StreamUpdateCaptureDependencies(
                               origin, unjoined.data(), nullptr, unjoined.size(), CU_STREAM_ADD_CAPTURE_DEPENDENCIES),
                           "cuStreamUpdateCaptureDependencies");
}

}  // namespace cgrt::internal
