#include "cgrt_kernels/norm/lanes.cuh"

#include "cgrt_kernels/common/dispatch.cuh"

namespace cgrt::kernels {
namespace {

// A warp takes a row.
template <NormOp kOp, bool kHasResidual, class T>
__global__ void __launch_bounds__(32) norm_of_few_rows(NormParams p) {
  using Row = LaneRow<T, 32, kFewElements / 2, 1>;
  const typename Row::Where place(p.columns);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * p.columns;
  wait_for_predecessors();
  let_dependents_start();
  Row x, added, weight, bias;
  x.load(static_cast<const T*>(p.in) + first, place);
  if constexpr (kHasResidual) added.load(static_cast<const T*>(p.residual) + first, place);
  weight.load_columns(p.weight, place, 1);
  if constexpr (kOp == NormOp::kLayerNorm) bias.load_columns(p.bias, place, 0);
  float there[Row::kCount][1];
#pragma unroll
  for (int i = 0; i < Row::kCount; ++i) there[i][0] = place.has(i) ? 1.0f : 0.0f;
  typename Row::Values values, others;
  x.get(values);
  if constexpr (kHasResidual) {
    added.get(others);
    add(values, others);
    x.set(values);
    if (p.sum != nullptr) Row::store(static_cast<T*>(p.sum) + first, place, values);
    x.get(values);
  }
  normalize<kOp, 32>(values, there, p.one_of_columns, p.epsilon);
  weight.get(others);
  multiply(values, others);
  if constexpr (kOp == NormOp::kLayerNorm) {
    bias.get(others);
    add(values, others);
  }
  Row::store(static_cast<T*>(p.out) + first, place, values);
}

// Rows that are not aligned pass through shared memory.
template <NormOp kOp, class Row>
__global__ void __launch_bounds__(kLaneThreads, 4) norm_staged(NormParams p) {
  extern __shared__ __align__(128) uint4 stages[];
  using T = typename Row::Element;
  const StagedRows rows(p.rows, p.shares.stages * Row::kStep);
  wait_for_predecessors();
  let_dependents_start();
  if (rows.count == 0) return;
  const auto stage = rows.template stage<T>(stages, p);
  std::uint32_t row = threadIdx.x % 32 / Row::kLanes;
  T* at = stage.begin() + row * p.columns;
  const Row place(at, p.columns);
  typename Row::Values weight, bias, there;
  place.load_columns(weight, p.weight, 1);
  if constexpr (kOp == NormOp::kLayerNorm) place.load_columns(bias, p.bias, 0);
  place.mark(there, 1, 0);
  stage.wait();
#pragma unroll 1
  for (std::uint32_t i = 0; i < rows.count; i += Row::kStep, row += Row::kStep, at += Row::kStep * p.columns) {
    typename Row::Values values;
    place.get(values, at);
    normalize<kOp, Row::kLanes>(values, there, p.one_of_columns, p.epsilon);
    multiply(values, weight);
    if constexpr (kOp == NormOp::kLayerNorm) add(values, bias);
    if (row < rows.count) place.put(at, values);
  }
  stage.store();
}

template <auto kKernel, NormOp kOp, class T>
NormKernel with_host_body() {
  return make_kernel<kKernel, norm_on_host<kOp, T>, KernelResources{.registers = 96, .max_threads = kLaneThreads}>();
}

template <NormOp kOp, class T>
NormKernel few(Residual residual) {
  return residual == Residual::kAdded ? with_host_body<norm_of_few_rows<kOp, true, T>, kOp, T>()
                                      : with_host_body<norm_of_few_rows<kOp, false, T>, kOp, T>();
}

template <NormOp kOp, class T>
NormKernel staged(std::uint32_t columns) {
  using Short = ShortStagedRow<T>;
  using Long = LongStagedRow<T>;
  if (columns <= Short::kMaxColumns) return with_host_body<norm_staged<kOp, Short>, kOp, T>();
  return with_host_body<norm_staged<kOp, Long>, kOp, T>();
}

}  // namespace

NormKernel norm_lanes_kernel(NormOp op, Residual residual, DType type, Alignment alignment, std::uint32_t columns) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    const auto of_op = [=]<NormOp kOp>() {
      return residual == Residual::kAdded ? lanes_kernel<kOp, false, true, T, kAlignment>(columns)
                                          : lanes_kernel<kOp, false, false, T, kAlignment>(columns);
    };
    return op == NormOp::kLayerNorm ? of_op.template operator()<NormOp::kLayerNorm>()
                                    : of_op.template operator()<NormOp::kRmsNorm>();
  });
}

NormKernel norm_few_kernel(NormOp op, Residual residual, DType type) {
  return of_float_type(type, [=]<class T>() {
    return op == NormOp::kLayerNorm ? few<NormOp::kLayerNorm, T>(residual) : few<NormOp::kRmsNorm, T>(residual);
  });
}

NormKernel norm_staged_kernel(NormOp op, DType type, std::uint32_t columns) {
  return of_float_type(type, Alignment::kUnaligned, [=]<class T, Alignment>() {
    return op == NormOp::kLayerNorm ? staged<NormOp::kLayerNorm, T>(columns) : staged<NormOp::kRmsNorm, T>(columns);
  });
}

}  // namespace cgrt::kernels
