#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/launch/host.h"
#include "cgrt_kernels/common/library.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/cub/calls.h"
#include "cgrt_kernels/cub/cub.h"
#include "cgrt_kernels/cub/reference.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint64_t kMax = std::uint64_t{1} << 40;

absl::Status check_count(const char* name, std::uint64_t count) {
  if (count != 0 && count <= kMax) return absl::OkStatus();
  return refuse(name, absl::StrCat("there are ", count, " elements; there must be from 1 to ", kMax, "."));
}

// The runtime's codes that CUB returns have the driver's values.
absl::Status to_status(cudaError_t error, const char* call) {
  return driver::to_status(static_cast<CUresult>(error), call);
}

template <class Desc, class Args>
absl::StatusOr<CubPlan<Desc>> make_plan(ContextRef context, const Desc& desc, const Args& nothing, const char* call) {
  CubPlan<Desc> plan{desc, 0, workspace_with(0)};
  if (is_simulated()) return plan;
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(handle));
  CGRT_RETURN_IF_ERROR(to_status(call_cub(desc, nothing, nullptr, plan.scratch_bytes, nullptr), call));
  plan.workspace_bytes = workspace_with(plan.scratch_bytes);
  return plan;
}

template <class Desc, class Args, class Reference>
absl::Status launch_cub(LaunchTarget target, const CubPlan<Desc>& plan, const Args& args, const char* call,
                        Reference reference) {
  if (is_simulated()) return launch_host(target, [=, desc = plan.desc] { reference(desc, args); });
  return launch_library(target, [&](CUstream stream) {
    std::size_t bytes = plan.scratch_bytes;
    return to_status(call_cub(plan.desc, args, scratch_of(args.workspace), bytes, stream), call);
  });
}

template <class T>
constexpr std::uint64_t number(T value) {
  return static_cast<std::uint64_t>(value);
}
std::uint64_t topology_of(const CubScanDesc& desc) {
  return topology_of_library("cub::DeviceScan", {number(desc.type), desc.count, number(desc.kind)});
}
std::uint64_t topology_of(const RadixSortDesc& desc) {
  return topology_of_library("cub::DeviceRadixSort", {number(desc.key), number(desc.has_values), desc.count,
                                                      number(desc.begin_bit), number(desc.end_bit)});
}
std::uint64_t topology_of(const SelectDesc& desc) {
  return topology_of_library("cub::DeviceSelect", {number(desc.type), desc.count});
}

}  // namespace

template <class Desc>
std::uint64_t CubPlan<Desc>::topology_id() const {
  return topology_of(desc);
}
template struct CubPlan<CubScanDesc>;
template struct CubPlan<RadixSortDesc>;
template struct CubPlan<SelectDesc>;

absl::StatusOr<CubScanPlan> plan_cub_scan(ContextRef context, const CubScanDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("scan by CUB", "kind", desc.kind, ScanKind::kExclusive));
  CGRT_RETURN_IF_ERROR(check_count(to_string(desc.kind), desc.count));
  if (desc.type != DType::kFloat32 && desc.type != DType::kInt32 && desc.type != DType::kInt64) {
    return refuse_type({to_string(desc.kind), " by CUB"}, desc.type, "float32, int32 and int64");
  }
  return make_plan(context, desc, CubScanArgs{}, "cub::DeviceScan");
}

absl::Status launch_cub_scan(LaunchTarget target, const CubScanPlan& plan, const CubScanArgs& args) {
  const char* const name = to_string(plan.desc.kind);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  return launch_cub(target, plan, args, "cub::DeviceScan",
                    [](const CubScanDesc& desc, const CubScanArgs& a) { cub_scan_reference(desc, a); });
}

absl::StatusOr<RadixSortPlan> plan_radix_sort(ContextRef context, const RadixSortDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("radix sort", "key", desc.key, SortKey::kFloat32));
  CGRT_RETURN_IF_ERROR(check_count("radix sort", desc.count));
  RadixSortDesc whole = desc;
  const int bits = static_cast<int>(8 * size_of(desc.key));
  if (whole.end_bit == 0) whole.end_bit = bits;
  if (whole.begin_bit < 0 || whole.begin_bit >= whole.end_bit || whole.end_bit > bits) {
    return refuse("radix sort",
                  absl::StrCat("bits ", whole.begin_bit, " to ", whole.end_bit, " of a ", to_string(desc.key),
                               ", which has ", bits, "; the first must be less than the second."));
  }
  return make_plan(context, whole, RadixSortArgs{}, "cub::DeviceRadixSort");
}

absl::Status launch_radix_sort(LaunchTarget target, const RadixSortPlan& plan, const RadixSortArgs& args) {
  const char* const name = "radix sort";
  CGRT_RETURN_IF_ERROR(check_pointer(name, "keys_out", args.keys_out, size_of(plan.desc.key)));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "keys_in", args.keys_in, size_of(plan.desc.key)));
  if (plan.desc.has_values) {
    CGRT_RETURN_IF_ERROR(check_pointer(name, "values_out", args.values_out, 4));
    CGRT_RETURN_IF_ERROR(check_pointer(name, "values_in", args.values_in, 4));
  }
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  return launch_cub(target, plan, args, "cub::DeviceRadixSort", radix_sort_reference);
}

absl::StatusOr<SelectPlan> plan_select(ContextRef context, const SelectDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("select", "type", desc.type, DType::kInt64));
  CGRT_RETURN_IF_ERROR(check_count("select", desc.count));
  return make_plan(context, desc, SelectArgs{}, "cub::DeviceSelect");
}

absl::Status launch_select(LaunchTarget target, const SelectPlan& plan, const SelectArgs& args) {
  const char* const name = "select";
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, plan.desc.type));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "flags", args.flags, 1));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "selected", args.selected, 8));
  CGRT_RETURN_IF_ERROR(check_workspace(name, args.workspace, plan.workspace_bytes));
  return launch_cub(target, plan, args, "cub::DeviceSelect", select_reference);
}

}  // namespace cgrt::kernels
