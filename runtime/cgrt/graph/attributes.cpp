// Launch attributes of a captured graph, read back from its nodes.
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {
namespace {

AccessProperty from_driver(CUaccessProperty property) {
  switch (property) {
    case CU_ACCESS_PROPERTY_STREAMING: return AccessProperty::kStreaming;
    case CU_ACCESS_PROPERTY_PERSISTING: return AccessProperty::kPersisting;
    default: return AccessProperty::kNormal;
  }
}

}  // namespace

absl::StatusOr<LaunchAttributes> attributes_of(CUgraphNode node) {
  LaunchAttributes out;
  const auto read = [&](CUlaunchAttributeID id, CUlaunchAttributeValue& value) {
    value = {};
    return driver::to_status(driver::api().GraphKernelNodeGetAttribute(node, id, &value),
                             "cuGraphKernelNodeGetAttribute");
  };
  CUlaunchAttributeValue value;
  CGRT_RETURN_IF_ERROR(read(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
  out.cooperative = value.cooperative != 0;
  CGRT_RETURN_IF_ERROR(read(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
  if (value.clusterDim.x != 0) out.cluster = Dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
  // Devices without preferred clusters refuse the question (1 on an H200).
  const CUresult preferred =
      driver::api().GraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, &value);
  if (preferred == CUDA_SUCCESS && value.preferredClusterDim.x != 0) {
    out.preferred_cluster = Dim3(value.preferredClusterDim.x, value.preferredClusterDim.y, value.preferredClusterDim.z);
  } else if (preferred != CUDA_SUCCESS && preferred != CUDA_ERROR_INVALID_VALUE) {
    return driver::to_status(preferred, "cuGraphKernelNodeGetAttribute");
  }
  CGRT_RETURN_IF_ERROR(read(CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
  out.priority = value.priority;
  CGRT_RETURN_IF_ERROR(read(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, value));
  if (value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE) out.mem_sync_domain = MemSyncDomain::kRemote;
  CGRT_RETURN_IF_ERROR(read(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, value));
  out.shared_carveout_percent = static_cast<int>(value.sharedMemCarveout);
  CGRT_RETURN_IF_ERROR(read(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value));
  if (const CUaccessPolicyWindow& window = value.accessPolicyWindow; window.num_bytes != 0) {
    out.access_policy = {window.base_ptr, window.num_bytes, window.hitRatio, from_driver(window.hitProp),
                         from_driver(window.missProp)};
  }
  return out;
}

absl::Status read_attributes(GraphState& state) {
  CGRT_ASSIGN_OR_RETURN(std::vector<CUgraphNode> nodes, nodes_of(state.handle.get()));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(nodes[i], &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    CGRT_ASSIGN_OR_RETURN(LaunchAttributes attributes, attributes_of(nodes[i]));
    if (!attributes.is_default()) state.attributes.push_back({{i}, nodes[i], attributes});
  }
  return absl::OkStatus();
}

}  // namespace cgrt::internal
