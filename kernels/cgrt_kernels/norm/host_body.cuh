// What the kernels do, for the simulator.
#pragma once

#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/norm/kernels.h"
#include "cgrt_kernels/norm/reference.h"

namespace cgrt::kernels {

template <NormOp kOp, class T>
void norm_on_host(HostGrid, NormParams p) {
  const std::vector<double> weights = read_row<T>(p.weight, 0, p.columns), biases = read_row<T>(p.bias, 0, p.columns),
                            in_biases = read_row<T>(p.in_bias, 0, p.columns);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.in, row, p.columns);
    const std::vector<double> added = read_row<T>(p.residual, row, p.columns);
    for (std::size_t i = 0; i < added.size(); ++i) {
      const double sum = values[i] + added[i] + (in_biases.empty() ? 0 : in_biases[i]);
      values[i] = static_cast<double>(to_float(from_float<T>(static_cast<float>(sum))));
    }
    if (p.sum != nullptr) write_row<T>(p.sum, row, values);
    norm_reference(kOp, values, weights.empty() ? nullptr : weights.data(), biases.empty() ? nullptr : biases.data(),
                   static_cast<double>(p.epsilon));
    write_row<T>(p.out, row, values);
  }
}

template <NormOp kOp, class T>
void norm_backward_on_host(HostGrid, NormBackwardParams p) {
  const std::vector<double> weights = read_row<T>(p.weight, 0, p.columns);
  std::vector<double> of_weight(p.columns), of_bias(p.columns);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.dy, row, p.columns);
    norm_backward_reference(kOp, values, read_row<T>(p.x, row, p.columns), weights.empty() ? nullptr : weights.data(),
                            static_cast<double>(p.epsilon), of_weight.data(), of_bias.data());
    write_row<T>(p.dx, row, values);
  }
  if (p.dweight != nullptr) write_row<T>(p.dweight, 0, of_weight);
  if (p.dbias != nullptr) write_row<T>(p.dbias, 0, of_bias);
  if (p.partials == nullptr) return;
  const std::uint64_t plane = std::uint64_t{p.groups} * p.columns;
  for (std::uint64_t i = 0; i < plane; ++i) {  // all in the first group
    p.partials[i] = i < p.columns ? static_cast<float>(of_weight[i]) : 0.0f;
    if (kOp == NormOp::kLayerNorm) p.partials[plane + i] = i < p.columns ? static_cast<float>(of_bias[i]) : 0.0f;
  }
}

}  // namespace cgrt::kernels
