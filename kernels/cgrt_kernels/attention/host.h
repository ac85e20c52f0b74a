// The host body of attention's kernels. For .cu files.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/attention/kernels.h"
#include "cgrt_kernels/attention/reference.h"
#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

template <class T, int kHeadSize>
std::vector<double> rows_at(const void* array, const AttentionStrides& strides, const AttentionTokens& tokens,
                            std::uint64_t head) {
  std::vector<double> rows;
  for (std::uint64_t i = 0; i < tokens.count; ++i) {
    const T* const row =
        static_cast<const T*>(array) + tokens.offset(strides) + head * strides.head + i * strides.token;
    for (int d = 0; d < kHeadSize; ++d) rows.push_back(static_cast<double>(to_float(row[d])));
  }
  return rows;
}

template <class T, int kHeadSize>
void attention_on_host(HostGrid, AttentionParams p) {
  for (std::uint32_t sequence = 0; sequence < p.batch; ++sequence) {
    const AttentionTokens queries = attention_tokens(p.args.q_offsets, p.args.q_lengths, sequence, p.queries);
    const AttentionTokens keys = attention_tokens(p.args.k_offsets, p.args.k_lengths, sequence, p.keys);
    for (std::uint32_t head = 0; head < p.heads; ++head) {
      const auto [out, lse] = attention_reference(rows_at<T, kHeadSize>(p.args.q, p.q, queries, head),
                                                  rows_at<T, kHeadSize>(p.args.k, p.k, keys, head / p.group),
                                                  rows_at<T, kHeadSize>(p.args.v, p.v, keys, head / p.group), kHeadSize,
                                                  p.mask, static_cast<double>(p.scale) / std::log2(std::exp(1)));
      T* const rows = static_cast<T*>(p.args.out) + queries.offset(p.out) + head * p.out.head;
      for (std::uint32_t i = 0; i < queries.count; ++i) {
        for (std::uint32_t d = 0; d < kHeadSize; ++d) {
          rows[i * p.out.token + d] = from_float<T>(static_cast<float>(out[i * kHeadSize + d]));
        }
        if (p.args.lse == nullptr) continue;
        p.args.lse[(std::uint64_t{sequence} * p.heads + head) * p.queries + i] = static_cast<float>(lse[i]);
      }
    }
  }
}

}  // namespace cgrt::kernels
