#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/histogram/kernels.h"
#include "cgrt_kernels/histogram/reference.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kAhead = 4;       // packs that a thread has in flight
constexpr std::uint32_t kPack = 4;        // elements
constexpr std::uint32_t kFull = 1 << 15;  // a counter of 16 bits that becomes this large is emptied
// Of the elements between two barriers, all may fall into a bin that is not full yet.
constexpr std::uint32_t kRoundsOfBarrier = 2;
static_assert(kFull - 1 + kRoundsOfBarrier * kAhead * kPack * kHistogramBlock < 1 << 16);

__global__ void __launch_bounds__(kClearCountsBlock) clear_counts(std::int32_t* counts, std::uint32_t bins) {
  const std::uint32_t bin = blockIdx.x * kClearCountsBlock + threadIdx.x;
  let_dependents_start();
  wait_for_predecessors();
  if (bin < bins) counts[bin] = 0;
}

// The counters of a block, and how a pack of each thread is counted. All threads of a block call count().
template <HistogramRegime kRegime>
class Counters;

// Lane i counts in copy i % copies: there are as many copies as banks where the bins are few, and no conflicts.
template <>
class Counters<HistogramRegime::kWords> {
 public:
  __device__ __forceinline__ Counters(std::uint32_t* words, std::int32_t* counts, const HistogramShape& shape)
      : words_(words),
        counts_(counts),
        shape_(shape),
        copy_(static_cast<std::uint32_t>(__cvta_generic_to_shared(words + threadIdx.x % 32 % shape.copies))),
        bytes_(shape.copies * 4) {}

  __device__ __forceinline__ void count(const std::int32_t (&bins)[kPack]) {
#pragma unroll
    for (const std::int32_t bin : bins) {
      asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(copy_ + bin * bytes_) : "memory");
    }
  }
  __device__ __forceinline__ void end_round(std::uint32_t) {}
  // Blocks begin at different bins.
  __device__ __forceinline__ void add_all() {
    const std::uint32_t shift = shape_.bins / gridDim.x * blockIdx.x;
    for (std::uint32_t i = threadIdx.x; i < shape_.bins; i += kHistogramBlock) {
      const std::uint32_t bin = i + shift < shape_.bins ? i + shift : i + shift - shape_.bins;
      std::uint32_t sum = 0;
#pragma unroll 8
      for (std::uint32_t k = 0; k < shape_.copies; ++k) {
        sum += words_[bin * shape_.copies + ((k + threadIdx.x) & (shape_.copies - 1))];
      }
      if (sum != 0) atomicAdd(counts_ + bin, static_cast<std::int32_t>(sum));
    }
  }

 private:
  std::uint32_t* words_;
  std::int32_t* counts_;
  HistogramShape shape_;
  std::uint32_t copy_, bytes_;
};

// The lower halves of the words are the first bins, the upper ones the others.
template <>
class Counters<HistogramRegime::kHalves> {
 public:
  __device__ __forceinline__ Counters(std::uint32_t* words, std::int32_t* counts, const HistogramShape& shape)
      : words_(words), counts_(counts), shape_(shape) {}

  __device__ __forceinline__ void count(const std::int32_t (&bins)[kPack]) {
    bool is_full = false, becomes_full[kPack];
#pragma unroll
    for (std::uint32_t i = 0; i < kPack; ++i) {
      const auto bin = static_cast<std::uint32_t>(bins[i]);
      const bool is_upper = bin >= shape_.words;
      const std::uint32_t before =
          atomicAdd(words_ + (is_upper ? bin - shape_.words : bin), is_upper ? kUpper : std::uint32_t{1});
      becomes_full[i] = (is_upper ? before / kUpper : before % kUpper) == kFull - 1;
      is_full |= becomes_full[i];
    }
    if (!is_full) return;
#pragma unroll
    for (std::uint32_t i = 0; i < kPack; ++i) {
      const auto bin = static_cast<std::uint32_t>(bins[i]);
      if (!becomes_full[i]) continue;
      if (bin < shape_.words) atomicSub(words_ + bin, kFull);
      if (bin >= shape_.words) atomicSub(words_ + (bin - shape_.words), kFull * kUpper);
      if (bin < shape_.bins) atomicAdd(counts_ + bin, static_cast<std::int32_t>(kFull));
    }
  }
  // Behind a barrier no counter is full.
  __device__ __forceinline__ void end_round(std::uint32_t round) {
    if (round % kRoundsOfBarrier == kRoundsOfBarrier - 1) __syncthreads();
  }
  __device__ __forceinline__ void add_all() {
    const std::uint32_t shift = shape_.words / gridDim.x * blockIdx.x;
    for (std::uint32_t i = threadIdx.x; i < shape_.words; i += kHistogramBlock) {
      const std::uint32_t bin = i + shift < shape_.words ? i + shift : i + shift - shape_.words;
      const std::uint32_t lower = words_[bin] % kUpper, upper = words_[bin] / kUpper;
      if (lower != 0) atomicAdd(counts_ + bin, static_cast<std::int32_t>(lower));
      if (upper != 0 && bin + shape_.words < shape_.bins) {
        atomicAdd(counts_ + bin + shape_.words, static_cast<std::int32_t>(upper));
      }
    }
  }

 private:
  static constexpr std::uint32_t kUpper = 1 << 16;

  std::uint32_t* words_;
  std::int32_t* counts_;
  HistogramShape shape_;
};

// Equal bins of a warp are one addition: those to one address wait for each other.
template <>
class Counters<HistogramRegime::kGlobal> {
 public:
  __device__ __forceinline__ Counters(std::uint32_t*, std::int32_t* counts, const HistogramShape& shape)
      : counts_(counts), shape_(shape) {}

  __device__ __forceinline__ void count(const std::int32_t (&bins)[kPack]) {
#pragma unroll
    for (const std::int32_t bin : bins) {
      const std::uint32_t equal = __match_any_sync(~0u, bin), lower_lanes = (1u << threadIdx.x % 32) - 1;
      if (bin < shape_.bins && (equal & lower_lanes) == 0) atomicAdd(counts_ + bin, __popc(equal));
    }
  }
  __device__ __forceinline__ void end_round(std::uint32_t) {}
  __device__ __forceinline__ void add_all() {}

 private:
  std::int32_t* counts_;
  HistogramShape shape_;
};

// Threads read packs of 16 bytes; up to 3 elements before and behind these are read by themselves.
template <class T, HistogramRegime kRegime>
__global__ void __launch_bounds__(kHistogramBlock, 1) count_bins(HistogramParams<T> p) {
  extern __shared__ uint4 shared[];
  const auto& [counts, in, count, bin_of, shape] = p;
  for (std::uint32_t i = threadIdx.x; i < shape.words / 4; i += kHistogramBlock) shared[i] = {0, 0, 0, 0};
  wait_for_predecessors();
  __syncthreads();
  Counters<kRegime> counters(reinterpret_cast<std::uint32_t*>(shared), counts, shape);

  const auto misaligned = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(in) / sizeof(T) % kPack);
  const std::uint64_t before = min(std::uint64_t{(kPack - misaligned) % kPack}, count);
  const std::uint64_t packs = (count - before) / kPack, stride = std::uint64_t{gridDim.x} * kHistogramBlock;
  const auto* const from = reinterpret_cast<const uint4*>(in + before);
  const auto count_packs = [&](std::uint64_t first, auto is_whole) {
    constexpr bool kIsWhole = decltype(is_whole)::value;
    uint4 packs_of_round[kAhead];
#pragma unroll
    for (std::uint32_t k = 0; k < kAhead; ++k) {
      const std::uint64_t at = first + k * stride;
      if (kIsWhole || at < packs) packs_of_round[k] = __ldcs(from + at);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kAhead; ++k) {
      T values[kPack];
      memcpy(values, packs_of_round + k, sizeof(values));
      std::int32_t bins[kPack];
#pragma unroll
      for (std::uint32_t i = 0; i < kPack; ++i) {
        const std::int32_t bin = bin_of(values[i]);
        bins[i] = kIsWhole || first + k * stride < packs ? bin : bin_of.bins();
      }
      counters.count(bins);
    }
  };
  if (blockIdx.x == 0) {
    const std::uint64_t at = threadIdx.x < before ? threadIdx.x : threadIdx.x + packs * kPack;
    const std::int32_t none = bin_of.bins();
    counters.count({at < count ? bin_of(in[at]) : none, none, none, none});
  }
  const std::uint64_t block = std::uint64_t{blockIdx.x} * kHistogramBlock;
  std::uint64_t first = block;
  for (std::uint32_t round = 0; first + (kAhead - 1) * stride + kHistogramBlock <= packs; first += kAhead * stride) {
    count_packs(first + threadIdx.x, std::true_type());
    counters.end_round(round++);
  }
  if (first < packs) count_packs(first + threadIdx.x, std::false_type());
  let_dependents_start();
  __syncthreads();
  counters.add_all();
}

void clear_on_host(HostGrid, std::int32_t* counts, std::uint32_t bins) { std::fill_n(counts, bins, 0); }

template <class T>
void count_on_host(HostGrid, HistogramParams<T> p) {
  add_to_histogram(p.counts, p.in, p.count, p.bin_of);
}

template <class T, HistogramRegime kRegime>
HistogramKernel<T> of_regime() {
  return make_kernel<count_bins<T, kRegime>, count_on_host<T>,
                     KernelResources{.registers = 64, .max_threads = kHistogramBlock}>();
}

}  // namespace

template <class T>
HistogramKernel<T> histogram_kernel(HistogramRegime regime) {
  switch (regime) {
    case HistogramRegime::kWords: return of_regime<T, HistogramRegime::kWords>();
    case HistogramRegime::kHalves: return of_regime<T, HistogramRegime::kHalves>();
    case HistogramRegime::kGlobal: break;
  }
  return of_regime<T, HistogramRegime::kGlobal>();
}
template HistogramKernel<float> histogram_kernel(HistogramRegime regime);
template HistogramKernel<std::int32_t> histogram_kernel(HistogramRegime regime);

ClearCountsKernel clear_counts_kernel() {
  return make_kernel<clear_counts, clear_on_host, KernelResources{.registers = 32, .max_threads = kClearCountsBlock}>();
}

}  // namespace cgrt::kernels
