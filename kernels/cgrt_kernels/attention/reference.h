// Attention of one head of a sequence in double, for the simulator and for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cgrt_kernels/attention/kernels.h"
#include "cgrt_kernels/decode_attention/reference.h"

namespace cgrt::kernels {

// The outputs and the logarithms of the sums, of a row for each query, key and value.
inline std::pair<std::vector<double>, std::vector<double>> attention_reference(const std::vector<double>& q,
                                                                               const std::vector<double>& k,
                                                                               const std::vector<double>& v,
                                                                               std::size_t head_size,
                                                                               AttentionMask mask, double scale) {
  const auto queries = static_cast<std::uint32_t>(q.size() / head_size);
  const auto keys = static_cast<std::uint32_t>(k.size() / head_size);
  std::vector<double> out, lse;
  const auto first = [&](const std::vector<double>& rows, std::size_t count) {
    return std::vector<double>(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count * head_size));
  };
  for (std::uint32_t query = 0; query < queries; ++query) {
    const std::vector<double> row(q.begin() + static_cast<std::ptrdiff_t>(query * head_size),
                                  q.begin() + static_cast<std::ptrdiff_t>((query + 1) * head_size));
    const std::uint32_t seen = seen_by(mask, query, queries, keys);
    const auto [values, log_sum] = decode_attention_reference(row, first(k, seen), first(v, seen), scale);
    out.insert(out.end(), values.begin(), values.end());
    lse.push_back(log_sum);
  }
  return {out, lse};
}

}  // namespace cgrt::kernels
