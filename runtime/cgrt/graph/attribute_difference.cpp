#include "cgrt/graph/attribute_difference.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/launch/launch.h"

namespace cgrt::internal {
namespace {

// Priorities are clamped to what the context has.
absl::StatusOr<bool> is_same_priority(int a, int b, CUcontext context) {
  if (a == b) return true;
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  int least = 0, greatest = 0;  // the greatest priority has the smallest number
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().CtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange"));
  return std::clamp(a, greatest, least) == std::clamp(b, greatest, least);
}

absl::Status differ(const std::string& kernel, const char* rule, const LaunchAttributes& was,
                    const LaunchAttributes& wanted, const char* advice) {
  const AttributeDifference differs = first_difference(was, wanted);
  return absl::FailedPreconditionError(absl::StrCat("Kernel \"", kernel, "\": ", rule, " The ", differs.name,
                                                    " of this node is ", differs.was, ", the launch asks for ",
                                                    differs.wanted, ". Launch it with the node's own, or ", advice));
}

}  // namespace

AttributeDifference first_difference(const LaunchAttributes& was, const LaunchAttributes& wanted) {
  if (was.cluster != wanted.cluster) return {"cluster", to_text(was.cluster), to_text(wanted.cluster)};
  if (was.preferred_cluster != wanted.preferred_cluster) {
    return {"preferred cluster", to_text(was.preferred_cluster), to_text(wanted.preferred_cluster)};
  }
  if (was.cluster_scheduling != wanted.cluster_scheduling) {
    const auto name = [](ClusterScheduling scheduling) {
      return to_string(static_cast<ir::ClusterScheduling>(scheduling));
    };
    return {"cluster scheduling", name(was.cluster_scheduling), name(wanted.cluster_scheduling)};
  }
  if (was.cooperative != wanted.cooperative) {
    return {"cooperative flag", was.cooperative ? "set" : "not set", wanted.cooperative ? "set" : "not set"};
  }
  if (was.mem_sync_domain != wanted.mem_sync_domain) {
    const auto name = [](MemSyncDomain domain) { return domain == MemSyncDomain::kRemote ? "remote" : "default"; };
    return {"memory sync domain", name(was.mem_sync_domain), name(wanted.mem_sync_domain)};
  }
  if (was.shared_carveout_percent != wanted.shared_carveout_percent) {
    return {"shared memory carveout", absl::StrCat(was.shared_carveout_percent, " %"),
            absl::StrCat(wanted.shared_carveout_percent, " %")};
  }
  if (was.access_policy != wanted.access_policy) {
    const auto text = [](const AccessPolicyWindow& window) {
      return absl::StrCat(counted(window.bytes, "byte"), " at 0x",
                          absl::Hex(reinterpret_cast<std::uintptr_t>(window.base)), ", hit ratio ", window.hit_ratio);
    };
    return {"access policy window", text(was.access_policy), text(wanted.access_policy)};
  }
  return {"priority", absl::StrCat(was.priority), absl::StrCat(wanted.priority)};
}

absl::Status attributes_differ(const std::string& kernel, const LaunchAttributes& was, const LaunchAttributes& wanted) {
  return differ(kernel, "launch attributes of a node cannot be changed in an executable.", was, wanted,
                "instantiate the graph anew.");
}

absl::Status check_attributes(const LaunchAttributes& was, const KernelLaunch& launch, const Dim3& compiled_cluster,
                              CUcontext context, NodeOwner owner) {
  const LaunchAttributes wanted =
      normal_form(launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{}, compiled_cluster);
  bool is_same = are_interchangeable(was, wanted);
  if (is_same && wanted.priority != 0) {  // 0: the node's
    CGRT_ASSIGN_OR_RETURN(is_same, is_same_priority(was.priority, wanted.priority, context));
  }
  if (is_same) return absl::OkStatus();
  if (owner == NodeOwner::kExecutable) return attributes_differ(launch.kernel->name, was, wanted);
  return differ(launch.kernel->name, "a node keeps the launch attributes that it was made with.", was, wanted,
                "remove the node and add another.");
}

}  // namespace cgrt::internal
