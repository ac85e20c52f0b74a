// CUB's sums of an array and of rows, as baselines: their kernels are captured once and are a child of the graph.
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <functional>
#include <memory>
#include <optional>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

// Of rows, or of one: workspace (null: asks for the bytes), bytes, in, out.
using Sum = std::function<absl::Status(StreamRef, void*, std::size_t&, const void*, void*)>;

absl::Status to_status(cudaError_t error) {
  return error == cudaSuccess ? absl::OkStatus() : absl::InternalError(cudaGetErrorString(error));
}

template <class T>
Sum sum_of_array(std::uint64_t count) {
  return [=](StreamRef stream, void* workspace, std::size_t& bytes, const void* in, void* out) {
    return to_status(cub::DeviceReduce::Sum(workspace, bytes, static_cast<const T*>(in), static_cast<T*>(out),
                                            static_cast<std::int64_t>(count), stream.get()));
  };
}

struct BeginOfRow {
  int columns;
  __host__ __device__ int operator()(int row) const { return row * columns; }
};

template <class T>
Sum sum_of_rows(std::uint64_t rows, std::uint64_t columns) {
  return [=](StreamRef stream, void* workspace, std::size_t& bytes, const void* in, void* out) {
    const auto begins =
        thrust::make_transform_iterator(thrust::make_counting_iterator(0), BeginOfRow{static_cast<int>(columns)});
    return to_status(cub::DeviceSegmentedReduce::Sum(workspace, bytes, static_cast<const T*>(in), static_cast<T*>(out),
                                                     static_cast<std::int64_t>(rows), begins, begins + 1,
                                                     stream.get()));
  };
}

Work work_on(const Case& test, std::uint64_t count, std::uint64_t results, const Sum& run) {
  struct Set {
    DeviceBuffer out, in, workspace;
    std::size_t workspace_bytes;
    std::optional<Graph> graph;
  };
  return Work{count * size_of(test.type), [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                std::size_t bytes = 0;
                CGRT_RETURN_IF_ERROR(run(stream, nullptr, bytes, nullptr, nullptr));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, results * 8));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, test.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::create(kDevice, bytes));
                const auto set = std::make_shared<Set>(
                    Set{std::move(out), std::move(in), std::move(workspace), bytes, std::nullopt});
                const auto start = [=](StreamRef into) {
                  return run(into, set->workspace.data(), set->workspace_bytes, set->in.data(), set->out.data());
                };
                CGRT_RETURN_IF_ERROR(start(stream));  // what loads lazily
                CGRT_ASSIGN_OR_RETURN(set->graph, capture(stream, start));
                return [=](LaunchTarget target) {
                  Cursor* const cursor = dynamic_cast<Cursor*>(target.sink());
                  return cursor != nullptr ? cursor->add_child(*set->graph) : start(target.stream());
                };
              }};
}

}  // namespace

// cub_reduce_sum: count. cub_segmented_sum: rows, columns. fp16 is summed up as CUB does without being told
// otherwise: in fp16.
absl::StatusOr<Work> make_cub_reduce(const Case& test) {
  const bool is_segmented = test.kernel == "cub_segmented_sum";
  if (!is_segmented && test.kernel != "cub_reduce_sum") return absl::NotFoundError("");
  const bool is_float = test.type == kernels::DType::kFloat32;
  if (!is_float && test.type != kernels::DType::kFloat16) {
    return absl::InvalidArgumentError("CUB's sums take float32 and float16 here.");
  }
  if (!is_segmented) {
    CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
    return work_on(test, count, 1, is_float ? sum_of_array<float>(count) : sum_of_array<__half>(count));
  }
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t columns, test.size("columns"));
  if (rows * columns > INT32_MAX) return absl::InvalidArgumentError("cub_segmented_sum takes 2^31 - 1 elements.");
  return work_on(test, rows * columns, rows,
                 is_float ? sum_of_rows<float>(rows, columns) : sum_of_rows<__half>(rows, columns));
}

}  // namespace cgrt::bench
