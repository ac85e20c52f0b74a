#include "mlp.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/memory/copy.h"
#include "cgrt_kernels/elementwise/reference.h"
#include "cgrt_kernels/norm/reference.h"

namespace {

using cgrt::kernels::DType;

constexpr DType kType = DType::kBFloat16;
constexpr float kEpsilon = 1e-5f;
constexpr std::uint64_t kFewestRows = 16;                       // of a planned product
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // of both products, one after the other

std::uint64_t rows_of_products(std::uint64_t tokens) { return std::max(kFewestRows, std::bit_ceil(tokens)); }

double to_double(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}
std::uint16_t to_bits(double value) {
  return std::bit_cast<std::uint16_t>(__float2bfloat16_rn(static_cast<float>(value)));
}

// Evenly distributed with that mean and deviation; each array has a seed of its own.
std::uint16_t element(std::uint32_t seed, std::uint64_t i, double mean, double deviation) {
  std::uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u;
  mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u;
  const double even = static_cast<double>(mixed >> 40) / static_cast<double>(1 << 24);  // in [0, 1)
  return to_bits(mean + deviation * std::sqrt(12.0) * (even - 0.5));
}

std::vector<std::uint16_t> make_elements(std::uint32_t seed, std::uint64_t count, double mean, double deviation) {
  std::vector<std::uint16_t> elements(count);
  for (std::uint64_t i = 0; i < count; ++i) elements[i] = element(seed, i, mean, deviation);
  return elements;
}

// The inputs. Products keep their inputs' deviation of about 1.
std::vector<std::uint16_t> make_x(const MlpShape& shape) {
  return make_elements(1, shape.max_tokens * shape.hidden, 0, 1);
}
std::vector<std::uint16_t> make_norm_weight(const MlpShape& shape) { return make_elements(2, shape.hidden, 1, 0.1); }
std::vector<std::uint16_t> make_gate_up_weight(const MlpShape& shape) {
  return make_elements(3, 2 * shape.intermediate * shape.hidden, 0, 1 / std::sqrt(static_cast<double>(shape.hidden)));
}
std::vector<std::uint16_t> make_down_weight(const MlpShape& shape) {
  return make_elements(4, shape.hidden * shape.intermediate, 0, 1 / std::sqrt(static_cast<double>(shape.intermediate)));
}

std::vector<double> to_doubles(const std::vector<std::uint16_t>& elements) {
  std::vector<double> values(elements.size());
  std::transform(elements.begin(), elements.end(), values.begin(), to_double);
  return values;
}

double rounded(double value) { return to_double(to_bits(value)); }

// A row times weights, which are rows of that length.
std::vector<double> times(const std::vector<double>& row, const std::vector<double>& weight) {
  std::vector<double> product;
  for (auto at = weight.begin(); at != weight.end(); at += static_cast<std::ptrdiff_t>(row.size())) {
    product.push_back(rounded(std::inner_product(row.begin(), row.end(), at, 0.0)));
  }
  return product;
}

}  // namespace

absl::Status mlp_step(cgrt::LaunchTarget target, const MlpPlan& plan, const MlpArrays& arrays) {
  CGRT_RETURN_IF_ERROR(cgrt::kernels::launch_norm(
      target, plan.norm, {.out = arrays.normed, .in = arrays.x, .weight = arrays.norm_weight}));
  CGRT_RETURN_IF_ERROR(cgrt::kernels::launch_matmul(
      target, plan.gate_up,
      {.d = arrays.gate_up, .a = arrays.normed, .b = arrays.gate_up_weight, .workspace = arrays.workspace}));
  CGRT_RETURN_IF_ERROR(cgrt::kernels::launch_matrix(target, plan.gate, {.out = arrays.gated, .a = arrays.gate_up}));
  CGRT_RETURN_IF_ERROR(cgrt::kernels::launch_matmul(
      target, plan.down,
      {.d = arrays.down, .a = arrays.gated, .b = arrays.down_weight, .workspace = arrays.workspace}));
  return cgrt::kernels::launch_elementwise(target, plan.residual, {.out = arrays.out, .a = arrays.down, .b = arrays.x});
}

absl::StatusOr<void*> Mlp::allocate(std::uint64_t bytes) {
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer buffer, cgrt::DeviceBuffer::create(device_, bytes));
  return buffers_.emplace_back(std::move(buffer)).data();
}

absl::StatusOr<void*> Mlp::upload(cgrt::StreamRef stream, const std::vector<std::uint16_t>& elements) {
  CGRT_ASSIGN_OR_RETURN(void* const array, allocate(elements.size() * sizeof(std::uint16_t)));
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, array, elements.data(), elements.size() * sizeof(std::uint16_t)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return array;
}

absl::StatusOr<Mlp> Mlp::create(cgrt::DeviceRef device, cgrt::StreamRef stream, const MlpShape& shape) {
  Mlp mlp(device, shape);
  MlpArrays& arrays = mlp.arrays_;
  CGRT_ASSIGN_OR_RETURN(arrays.x, mlp.upload(stream, make_x(shape)));
  CGRT_ASSIGN_OR_RETURN(arrays.norm_weight, mlp.upload(stream, make_norm_weight(shape)));
  CGRT_ASSIGN_OR_RETURN(arrays.gate_up_weight, mlp.upload(stream, make_gate_up_weight(shape)));
  CGRT_ASSIGN_OR_RETURN(arrays.down_weight, mlp.upload(stream, make_down_weight(shape)));
  const std::uint64_t row_bytes = rows_of_products(shape.max_tokens) * sizeof(std::uint16_t);
  CGRT_ASSIGN_OR_RETURN(arrays.normed, mlp.allocate(row_bytes * shape.hidden));
  CGRT_ASSIGN_OR_RETURN(arrays.gate_up, mlp.allocate(row_bytes * 2 * shape.intermediate));
  CGRT_ASSIGN_OR_RETURN(arrays.gated, mlp.allocate(row_bytes * shape.intermediate));
  CGRT_ASSIGN_OR_RETURN(arrays.down, mlp.allocate(row_bytes * shape.hidden));
  CGRT_ASSIGN_OR_RETURN(arrays.out, mlp.allocate(row_bytes * shape.hidden));
  CGRT_ASSIGN_OR_RETURN(void* const workspace, mlp.allocate(kWorkspaceBytes));
  arrays.workspace = {workspace, kWorkspaceBytes};
  CGRT_RETURN_IF_ERROR(cgrt::kernels::initialize_workspace(stream, arrays.workspace));
  return mlp;
}

absl::StatusOr<MlpPlan> Mlp::plan(std::uint64_t tokens) {
  const std::uint64_t rows = rows_of_products(tokens);
  auto products = products_.find(rows);
  if (products == products_.end()) {
    const auto plan_product = [&](std::uint64_t n, std::uint64_t k) {
      return cgrt::kernels::plan_matmul(device_, {.m = rows,
                                                  .n = n,
                                                  .k = k,
                                                  .type = kType,
                                                  .b_layout = cgrt::kernels::MatmulLayout::kTransposed,
                                                  .max_workspace_bytes = kWorkspaceBytes});
    };
    CGRT_ASSIGN_OR_RETURN(cgrt::kernels::MatmulPlan gate_up, plan_product(2 * shape_.intermediate, shape_.hidden));
    CGRT_ASSIGN_OR_RETURN(cgrt::kernels::MatmulPlan down, plan_product(shape_.hidden, shape_.intermediate));
    products = products_.emplace(rows, Products{std::move(gate_up), std::move(down)}).first;
  }
  CGRT_ASSIGN_OR_RETURN(cgrt::kernels::NormPlan norm,
                        cgrt::kernels::plan_norm(device_, {.op = cgrt::kernels::NormOp::kRmsNorm,
                                                           .type = kType,
                                                           .rows = tokens,
                                                           .columns = shape_.hidden,
                                                           .epsilon = kEpsilon}));
  CGRT_ASSIGN_OR_RETURN(
      cgrt::kernels::MatrixPlan gate,
      cgrt::kernels::plan_matrix(device_, {cgrt::kernels::MatrixOp::kSiluAndMul, kType, tokens, shape_.intermediate}));
  CGRT_ASSIGN_OR_RETURN(
      cgrt::kernels::ElementwisePlan residual,
      cgrt::kernels::plan_elementwise(
          device_, {.op = cgrt::kernels::ElementwiseOp::kAdd, .count = tokens * shape_.hidden, .type = kType}));
  return MlpPlan{tokens, norm, products->second.gate_up, gate, products->second.down, residual};
}

absl::Status Mlp::poison(cgrt::StreamRef stream) const {
  const std::uint64_t rows = rows_of_products(shape_.max_tokens);
  for (const auto& [array, columns] :
       {std::pair(arrays_.normed, shape_.hidden), std::pair(arrays_.gate_up, 2 * shape_.intermediate),
        std::pair(arrays_.gated, shape_.intermediate), std::pair(arrays_.down, shape_.hidden),
        std::pair(arrays_.out, shape_.hidden)}) {
    CGRT_RETURN_IF_ERROR(cgrt::fill16(stream, array, 0xFFFFu, rows * columns));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint16_t>> Mlp::read_out(cgrt::StreamRef stream, std::uint64_t tokens) const {
  std::vector<std::uint16_t> out(tokens * shape_.hidden);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, out.data(), arrays_.out, out.size() * sizeof(std::uint16_t)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return out;
}

absl::StatusOr<double> Mlp::check_on_host(const std::vector<std::uint16_t>& out) const {
  const std::vector<double> x = to_doubles(make_x(shape_)), norm_weight = to_doubles(make_norm_weight(shape_)),
                            gate_up_weight = to_doubles(make_gate_up_weight(shape_)),
                            down_weight = to_doubles(make_down_weight(shape_));
  double worst = 0;
  for (std::uint64_t token = 0; token < out.size() / shape_.hidden; ++token) {
    const std::uint64_t first = token * shape_.hidden;
    std::vector<double> row(&x[first], &x[first] + shape_.hidden), gated(shape_.intermediate);
    cgrt::kernels::norm_reference(cgrt::kernels::NormOp::kRmsNorm, row, norm_weight.data(), nullptr,
                                  static_cast<double>(kEpsilon));
    std::transform(row.begin(), row.end(), row.begin(), rounded);
    const std::vector<double> gate_up = times(row, gate_up_weight);
    for (std::uint64_t i = 0; i < shape_.intermediate; ++i) {
      gated[i] = rounded(cgrt::kernels::matrix_reference(cgrt::kernels::MatrixOp::kSiluAndMul, gate_up[i],
                                                         gate_up[shape_.intermediate + i]));
    }
    const std::vector<double> down = times(gated, down_weight);
    for (std::uint64_t i = 0; i < shape_.hidden; ++i) {
      const double expected = x[first + i] + down[i], error = std::abs(to_double(out[first + i]) - expected);
      worst = std::max(worst, error);
      // The sum is rounded to 8 bits; what is added, of a deviation of about 0.4, may be off by a few such roundings.
      if (error <= std::abs(expected) / 256 + 1.0 / 128) continue;
      return absl::DataLossError(
          absl::StrCat("token ", token, ", element ", i, " is ", to_double(out[first + i]), ", in double ", expected));
    }
  }
  return worst;
}
