#include "cgrt_kernels/sampling/kernels.h"

#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/sampling/filter.cuh"
#include "cgrt_kernels/sampling/reference.h"
#include "cgrt_kernels/sampling/row.cuh"

namespace cgrt::kernels {
namespace {

using namespace sampling;

// Each block has a slice of a row; the one that comes last has the row's token. Where the number of rows is on the
// device, their slices follow from it and not from the plan's.
template <class T, Alignment kAlignment, SamplingOp kOp>
__device__ __forceinline__ void sample_slice(const SamplingParams& p) {
  const std::uint32_t rows = count_at(p.args.row_count, p.rows);
  SamplingShares shares{p.slices.value(), p.slice};
  std::uint32_t row = p.slices.quotient(blockIdx.x);
  if (p.args.row_count != nullptr) {
    shares = sampling_shares(rows, p.vocabulary, kPackSize<T>, p.blocks);
    row = blockIdx.x / shares.slices;
  }
  if (row >= rows) return;
  const std::uint32_t slice = blockIdx.x - row * shares.slices;
  const T* const logits = logits_of<T>(p, row);
  const std::uint32_t begin = slice * shares.slice;
  const std::uint32_t end = p.vocabulary - begin < shares.slice ? p.vocabulary : begin + shares.slice;
  const bool has_sum = p.args.log_probability != nullptr;
  const float temperature = temperature_of(p, row);
  Found found;
  if (kOp == SamplingOp::kGreedy || is_greedy(temperature)) {
    found = look_through<T, kAlignment, false, 4>(logits, begin, end, {}, -INFINITY, has_sum);
  } else {
    const Draw draw = draw_of(p, row, temperature);
    found = look_through<T, kAlignment, true, 2>(logits, begin, end, draw, -INFINITY, has_sum);
  }
  const auto of_block = [&] { return has_sum ? reduce_block(found) : Found{reduce_block(found.best)}; };
  found = of_block();
  if (shares.slices > 1) {
    SamplingPart* const parts = p.parts + row * shares.slices;
    if (threadIdx.x == 0) parts[slice] = {found.best, found.sum.max, found.sum.sum};
    if (!is_last_to_arrive(&p.counters[row], shares.slices)) return;
    found = {};
    for (std::uint32_t i = threadIdx.x; i < shares.slices; i += kSamplingBlock) {
      const SamplingPart part = parts[i];
      found.best = merge(found.best, part.best);
      if (has_sum) found.sum = merge(found.sum, MaxSum{part.max, part.sum});
    }
    found = of_block();
  }
  if (found.best == 0) found.best = first_number(logits, p.vocabulary);
  if (threadIdx.x == 0) write_token(p, logits, row, found);
}

template <class T, Alignment kAlignment, SamplingOp kOp>
__global__ void __launch_bounds__(kSamplingBlock, 3) sample(const __grid_constant__ SamplingParams p) {
  wait_for_predecessors();
  let_dependents_start();
  sample_slice<T, kAlignment, kOp>(p);
  if constexpr (kOp == SamplingOp::kRandom) leave_state(p);
}

// A cluster has a row, a slice of it in the shared memory of each block if there is room.
template <class T, Alignment kAlignment>
__device__ __forceinline__ void sample_row(const SamplingParams& p) {
  __shared__ FilterMemory memory;
  const std::uint32_t row = p.slices.quotient(blockIdx.x), block = Cluster::block();
  if (row >= count_at(p.args.row_count, p.rows)) return;
  const T* const logits = logits_of<T>(p, row);
  Filter<T, kAlignment> filter(memory, p, row);
  const float temperature = temperature_of(p, row);
  const std::int32_t given = p.args.top_k == nullptr ? 0 : p.args.top_k[row];
  const std::uint32_t top_k = given <= 0 ? p.vocabulary : static_cast<std::uint32_t>(given);
  const float top_p = p.args.top_p == nullptr ? 1.0f : p.args.top_p[row];
  const bool has_k = top_k < p.vocabulary;
  const Seen seen = filter.join(filter.load(), has_k ? top_k : 1);
  if (p.args.log_probability != nullptr) {
    const MaxSum sum = reduce_block(filter.sum(seen.max));
    if (threadIdx.x == 0) Cluster::in_block(memory.sums, 0)[block] = sum;
  }
  bool is_alone = Cluster::blocks() == 1;
  std::uint64_t best = 0;
  if (seen.max == -INFINITY || is_greedy(temperature)) {
    best = filter.largest();
  } else {
    float least = kLowest;
    if (has_k || top_p < 1) {
      if (has_k && filter.list(seen, top_k)) {
        if (block != 0) return;
        is_alone = true;
      }
      least = filter.least(seen, 1 / temperature, top_k, top_p, has_k);
    }
    best = filter.race(least, draw_of(p, row, temperature));
  }
  Found found{reduce_block(best)};
  if (!is_alone) {
    if (threadIdx.x == 0) Cluster::in_block(memory.best, 0)[block] = found.best;
    Cluster::sync();
    if (block != 0) return;
  }
  if (threadIdx.x != 0) return;
  for (std::uint32_t i = 1; i < Cluster::blocks() && !is_alone; ++i) found.best = max(found.best, memory.best[i]);
  if (p.args.log_probability != nullptr) {
    found.sum = memory.sums[0];
    for (std::uint32_t i = 1; i < Cluster::blocks(); ++i) found.sum = merge(found.sum, memory.sums[i]);
  }
  write_token(p, logits, row, found);
}

template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kSamplingFilteredBlock) sample_filtered(const __grid_constant__ SamplingParams p) {
  wait_for_predecessors();
  let_dependents_start();
  sample_row<T, kAlignment>(p);
  leave_state(p);
}

template <class T>
void sampling_on_host(HostGrid, SamplingParams p) {
  const bool is_greedy = p.op == SamplingOp::kGreedy;
  const RandomState state = is_greedy ? RandomState{} : *p.args.state;
  std::vector<double> logits(p.vocabulary);
  for (std::uint64_t row = 0, count = count_at(p.args.row_count, p.rows); row < count; ++row) {
    const T* const from = static_cast<const T*>(p.args.logits) + row * p.vocabulary;
    for (std::uint32_t i = 0; i < p.vocabulary; ++i) logits[i] = static_cast<double>(to_float(from[i]));
    SamplingRule rule{.temperature = is_greedy ? 0.0f : 1.0f};
    if (p.args.temperature != nullptr) rule.temperature = p.args.temperature[row];
    if (p.args.top_k != nullptr) rule.top_k = p.args.top_k[row];
    if (p.args.top_p != nullptr) rule.top_p = static_cast<double>(p.args.top_p[row]);
    const std::size_t token =
        sampling_reference(logits, rule, state.seed, state.offset + row * sampling_draws_of_row(p.vocabulary));
    if (p.token_type == DType::kInt64) {
      static_cast<std::int64_t*>(p.args.token)[row] = static_cast<std::int64_t>(token);
    } else {
      static_cast<std::int32_t*>(p.args.token)[row] = static_cast<std::int32_t>(token);
    }
    if (p.args.log_probability != nullptr) {
      p.args.log_probability[row] = static_cast<float>(log_probability_reference(logits, token));
    }
  }
  if (!is_greedy) p.args.state->offset += sampling_draws(p.rows, p.vocabulary);
}

}  // namespace

Kernel<SamplingParams> sampling_kernel(SamplingOp op, DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    constexpr KernelResources kResources{.registers = 80, .max_threads = kSamplingBlock};
    constexpr KernelResources kFilteredResources{.registers = 64, .max_threads = kSamplingFilteredBlock};
    constexpr auto kGreedy = SamplingOp::kGreedy, kRandom = SamplingOp::kRandom;
    switch (op) {
      case kGreedy: return make_kernel<sample<T, kAlignment, kGreedy>, sampling_on_host<T>, kResources>();
      case kRandom: return make_kernel<sample<T, kAlignment, kRandom>, sampling_on_host<T>, kResources>();
      case SamplingOp::kFiltered: break;
    }
    return make_kernel<sample_filtered<T, kAlignment>, sampling_on_host<T>, kFilteredResources>();
  });
}

}  // namespace cgrt::kernels
