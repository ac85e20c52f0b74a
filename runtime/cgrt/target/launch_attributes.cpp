#include "cgrt/target/launch_attributes.h"

namespace cgrt::internal {
namespace {

CUaccessProperty driver_property(AccessProperty property) {
  switch (property) {
    case AccessProperty::kNormal: return CU_ACCESS_PROPERTY_NORMAL;
    case AccessProperty::kStreaming: return CU_ACCESS_PROPERTY_STREAMING;
    case AccessProperty::kPersisting: return CU_ACCESS_PROPERTY_PERSISTING;
  }
  return CU_ACCESS_PROPERTY_NORMAL;
}

}  // namespace

LaunchAttributes normal_form(LaunchAttributes attributes, const Dim3& compiled_cluster) {
  if (attributes.access_policy.bytes == 0) attributes.access_policy = {};
  if (attributes.cluster == Dim3()) attributes.cluster = compiled_cluster;
  if (attributes.cluster == Dim3() || attributes.cluster_scheduling == ClusterScheduling::kSpread) {
    attributes.cluster_scheduling = ClusterScheduling::kDefault;
  }
  return attributes;
}

bool are_interchangeable(const LaunchAttributes& ours, const LaunchAttributes& theirs) {
  LaunchAttributes same_priority = theirs;
  same_priority.priority = ours.priority;
  return ours == same_priority;
}

unsigned to_driver(const LaunchAttributes& attributes, CUlaunchAttribute (&out)[kMaxLaunchAttributes]) {
  constexpr LaunchAttributes kDefault;
  unsigned count = 0;
  const auto next = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    out[count] = CUlaunchAttribute{};
    out[count].id = id;
    return out[count++].value;
  };
  // The cluster before what depends on it.
  if (attributes.cluster != kDefault.cluster) {
    const Dim3& c = attributes.cluster;
    next(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim = {c.x, c.y, c.z};
  }
  if (attributes.preferred_cluster != kDefault.preferred_cluster) {
    const Dim3& c = attributes.preferred_cluster;
    next(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION).preferredClusterDim = {c.x, c.y, c.z};
  }
  if (attributes.cluster_scheduling != kDefault.cluster_scheduling) {
    next(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE).clusterSchedulingPolicyPreference =
        attributes.cluster_scheduling == ClusterScheduling::kSpread ? CU_CLUSTER_SCHEDULING_POLICY_SPREAD
                                                                    : CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
  }
  if (attributes.cooperative) next(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (attributes.priority != 0) next(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = attributes.priority;
  if (attributes.mem_sync_domain != kDefault.mem_sync_domain) {
    next(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  }
  if (attributes.shared_carveout_percent != 0) {
    next(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT).sharedMemCarveout =
        static_cast<unsigned>(attributes.shared_carveout_percent);
  }
  if (const AccessPolicyWindow& window = attributes.access_policy; window.bytes != 0) {
    next(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow = {
        window.base, window.bytes, window.hit_ratio, driver_property(window.hit), driver_property(window.miss)};
  }
  return count;
}

}  // namespace cgrt::internal
