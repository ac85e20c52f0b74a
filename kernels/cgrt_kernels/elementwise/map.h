// A function of your own over arrays, element by element: plan once, launch into any target. The
// kernel is instantiated in a .cu file, where map.cuh shows how.
//
//   const MapKernel<Clamp, __half, __half> kernel = clamp_kernel();   // which is in that file
//   CGRT_ASSIGN_OR_RETURN(auto plan, plan_map(DeviceRef(0), kernel, n));
//   CGRT_RETURN_IF_ERROR(launch_map(stream.ref(), plan, Clamp{0, 1}, out, in));   // const __half* to __half*
//
// A plan is a value and depends on the device, the types and the count only. Launching is asynchronous,
// needs no workspace and allocates nothing; the functor is copied before it returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/elementwise/map_shape.h"

namespace cgrt::kernels {

template <class F, class Out, class... In>
struct MapPlan {
  MapKernel<F, Out, In...> kernel;
  LaunchConfig config;
  std::uint64_t count;

  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }  // see common/topology.h
};

namespace internal {

absl::StatusOr<LaunchConfig> map_config(ContextRef context, KernelRef kernel, int pack, std::uint64_t count);
struct MapArray {
  const void* data;
  std::size_t element_bytes;
};
// The output, then the inputs.
absl::Status check_map_arrays(KernelRef kernel, absl::Span<const MapArray> arrays);

}  // namespace internal

// kInvalidArgument for 0 elements, and for arrays of 8 TiB and more, for which a grid is too small.
template <class F, class Out, class... In>
absl::StatusOr<MapPlan<F, Out, In...>> plan_map(ContextRef context, Kernel<Out*, F, std::uint64_t, const In*...> kernel,
                                                std::uint64_t count) {
  absl::StatusOr<LaunchConfig> config = internal::map_config(context, kernel, kMapPack<Out, In...>, count);
  if (!config.ok()) return config.status();
  return MapPlan<F, Out, In...>{kernel, *config, count};
}

// Device addresses of `count` elements each. `out` may be one of the inputs if it is of the same type;
// any other overlap is undefined. kInvalidArgument for a null pointer and for one that is not aligned
// to its type's size.
template <class F, class Out, class... In>
absl::Status launch_map(LaunchTarget target, const MapPlan<F, Out, In...>& plan, const std::type_identity_t<F>& functor,
                        std::type_identity_t<Out>* out, const std::type_identity_t<In>*... in) {
  const absl::Status status = internal::check_map_arrays(plan.kernel, {{out, sizeof(Out)}, {in, sizeof(In)}...});
  if (!status.ok()) return status;
  return launch(target, plan.config, plan.kernel, out, functor, plan.count, in...);
}

}  // namespace cgrt::kernels
