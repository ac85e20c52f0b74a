// CUB's sum of an array, as a peer: its kernels are captured once and are a child of the graph.
#include <cuda_fp16.h>

#include <cub/device/device_reduce.cuh>
#include <memory>
#include <optional>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

template <class T>
absl::Status sum(StreamRef stream, void* workspace, std::size_t& bytes, const void* in, void* out,
                 std::uint64_t count) {
  const cudaError_t error = cub::DeviceReduce::Sum(workspace, bytes, static_cast<const T*>(in), static_cast<T*>(out),
                                                   static_cast<std::int64_t>(count), stream.get());
  return error == cudaSuccess ? absl::OkStatus() : absl::InternalError(cudaGetErrorString(error));
}

}  // namespace

// count. fp16 is summed up as CUB does without being told otherwise: in fp16.
absl::StatusOr<Work> make_cub_reduce(const Case& test) {
  if (test.kernel != "cub_reduce_sum") return absl::NotFoundError("");
  if (test.type != kernels::DType::kFloat32 && test.type != kernels::DType::kFloat16) {
    return absl::InvalidArgumentError("cub_reduce_sum takes float32 and float16.");
  }
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  const auto run = test.type == kernels::DType::kFloat32 ? sum<float> : sum<__half>;
  struct Set {
    DeviceBuffer out, in, workspace;
    std::size_t workspace_bytes;
    std::optional<Graph> graph;
  };
  return Work{count * size_of(test.type), [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                std::size_t bytes = 0;
                CGRT_RETURN_IF_ERROR(run(stream, nullptr, bytes, nullptr, nullptr, count));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, 8));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, test.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::create(kDevice, bytes));
                const auto set = std::make_shared<Set>(
                    Set{std::move(out), std::move(in), std::move(workspace), bytes, std::nullopt});
                const auto start = [=](StreamRef into) {
                  return run(into, set->workspace.data(), set->workspace_bytes, set->in.data(), set->out.data(), count);
                };
                CGRT_RETURN_IF_ERROR(start(stream));  // what loads lazily
                CGRT_ASSIGN_OR_RETURN(set->graph, capture(stream, start));
                return [=](LaunchTarget target) {
                  Cursor* const cursor = dynamic_cast<Cursor*>(target.sink());
                  return cursor != nullptr ? cursor->add_child(*set->graph) : start(target.stream());
                };
              }};
}

}  // namespace cgrt::bench
