#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/cut_words.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {

// A block has its columns of every gridDim.y-th row: from the last one, which the L2 cache may still have, down to the
// first.
struct ColumnBlocks {
  std::uint32_t rows_of_all;
  __device__ std::uint32_t block() const { return blockIdx.x; }
  __device__ std::uint64_t row() const { return std::uint64_t{rows_of_all} - 1 - blockIdx.y; }
  __device__ std::uint64_t rows() const { return 0 - std::uint64_t{gridDim.y}; }  // to the next
};

namespace {

// The columns of a thread, of a run of them that belongs to a block: words, each a float or two halves. Neighbouring
// threads have neighbouring words, which lie at multiples of 4 bytes of a row or do not.
template <class T, int kUnits>
struct ColumnWords {
  static constexpr int kSize = Word<T>::kSize, kStride = kSumColumnThreads * kSize;
  std::uint32_t first = threadIdx.x * kSize, count;  // in the run

  __device__ __forceinline__ explicit ColumnWords(std::uint32_t count_) : count(count_) {}
  __device__ __forceinline__ bool are_whole() const { return count == kUnits * kStride; }  // of all threads
  __device__ __forceinline__ std::uint32_t of(int unit) const { return first + unit * kStride; }
  __device__ __forceinline__ bool has_first(int unit) const { return of(unit) < count; }
  __device__ __forceinline__ bool has_all(int unit) const { return of(unit) + kSize <= count; }

  // Of a run at `from`; nothing where there is nothing.
  __device__ __forceinline__ std::uint32_t load(const T* from, int unit) const {
    return load_word(from + of(unit), is_word(from), has_first(unit), has_all(unit));
  }
  // To a run at `to`, by all lanes of a warp.
  __device__ __forceinline__ void store(T* to, int unit, std::uint32_t word) const {
    T* const at = to + of(unit);
    if (is_word(to) && has_all(unit)) {
      *reinterpret_cast<std::uint32_t*>(at) = word;
    } else if (!is_word(to) && are_whole()) {
      store_cut_words(at, word);
    } else {
      store_halves(at, word, has_first(unit), has_all(unit));
    }
  }
};

// What a thread has of its columns, and of the rows of its block: kFacts of them at once.
template <NormOp kOp, class T, int kUnits>
class ColumnSums {
 public:
  static constexpr int kSize = Word<T>::kSize;
  static constexpr std::uint32_t kFacts = 32;
  const ColumnBlocks rows;
  const std::uint32_t begin;  // the block's first column
  const ColumnWords<T, kUnits> words;

  __device__ __forceinline__ explicit ColumnSums(const NormBackwardParams& p)
      : rows{p.rows}, begin(blockIdx.x * p.shares.share), words(min(p.shares.share, p.columns - begin)), p_(p) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      float ones[kSize];
#pragma unroll
      for (float& one : ones) one = 1;
      weights_[u] = p.weight != nullptr ? words.load(static_cast<const T*>(p.weight) + begin, u) : Word<T>::pack(ones);
    }
  }
  // Of the block's columns.
  __device__ __forceinline__ std::uint64_t begin_of(std::uint64_t row) const { return row * p_.columns + begin; }

  // What the chunks of `row`, and of those that follow, have left: for take(). By all threads.
  __device__ __forceinline__ void merge_facts(std::uint64_t row) const {
    using Part = GradientPart<kOp>;
    const Part* const parts = chunk_parts<const Part>(p_.workspace);
    const std::uint32_t lane = threadIdx.x % 32, chunks = p_.slices.chunks;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x / 32; i < kFacts; i += kSumColumnThreads / 32) {
      const std::uint64_t at = row + i * rows.rows();
      if (at >= p_.rows) break;
      Part all = none(Part{});
#pragma unroll 4
      for (std::uint32_t chunk = lane; chunk < chunks; chunk += 32) all = merge(all, parts[at * chunks + chunk]);
      all = join_lanes(all);
      if (lane == 0) facts()[i] = gradient_facts(all, static_cast<float>(p_.columns), p_.epsilon);
    }
    __syncthreads();
  }
  // A word of x and of dy in the block's row number `index`, which goes to dx. By all lanes of a warp.
  __device__ __forceinline__ void take(std::uint64_t row, std::uint32_t index, int u, std::uint32_t x,
                                       std::uint32_t dy) {
    const GradientFacts of_row = facts()[index % kFacts];
    float values[kSize], gradients[kSize], weight[kSize];
    Word<T>::unpack(x, values);
    Word<T>::unpack(dy, gradients);
    Word<T>::unpack(weights_[u], weight);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      float normalized;
      values[i] = gradient_of(of_row, values[i], gradients[i], weight[i], normalized);
      of_weight_[u][i] = fmaf(gradients[i], normalized, of_weight_[u][i]);
      if (kIsLayer) of_bias_[u][i] += gradients[i];
    }
    words.store(static_cast<T*>(p_.dx) + begin_of(row), u, Word<T>::pack(values));
  }
  // The sums, or what this block has of them.
  __device__ __forceinline__ void store() const {
#pragma unroll
    for (int plane = 0; plane < (kIsLayer ? 2 : 1); ++plane) {
      T* const out = static_cast<T*>(plane == 0 ? p_.dweight : p_.dbias);
      float* const partials = p_.partials + (std::uint64_t(plane) * gridDim.y + blockIdx.y) * p_.columns;
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          if (i == 0 ? !words.has_first(u) : !words.has_all(u)) continue;
          const std::uint32_t column = begin + words.of(u) + i;
          const float sum = plane == 0 ? of_weight_[u][i] : of_bias_[u][i];
          if (p_.partials != nullptr) {
            partials[column] = sum;
          } else if (out != nullptr) {
            out[column] = from_float<T>(sum);
          }
        }
      }
    }
  }

 private:
  static constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  __device__ static GradientFacts* facts() {
    __shared__ GradientFacts of_rows[kFacts];
    return of_rows;
  }
  const NormBackwardParams& p_;
  std::uint32_t weights_[kUnits];
  float of_weight_[kUnits][kSize] = {}, of_bias_[kUnits][kSize] = {};
};

// On other architectures 64 registers for each of 1,024 threads do not suffice.
#if __CUDA_ARCH__ > 900
constexpr int kBlocksOfSm = 3;
#else
constexpr int kBlocksOfSm = 4;
#endif

// dx, and the sums of columns, of rows whose chunks have left their parts. Of what others wrote only these parts are
// not there yet when it begins: the kernel that found them had waited for the rest. A thread has one word of several
// rows in flight.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(kSumColumnThreads, kBlocksOfSm) norm_backward_columns(NormBackwardParams p) {
  constexpr int kRows = 8;
  ColumnSums<kOp, T, 1> sums(p);
  const std::uint64_t step = sums.rows.rows();
  std::uint32_t x[kRows], dy[kRows];
  const auto load = [&](std::uint64_t row, int r) {
    if (row >= p.rows) return;
    x[r] = sums.words.load(static_cast<const T*>(p.x) + sums.begin_of(row), 0);
    dy[r] = sums.words.load(static_cast<const T*>(p.dy) + sums.begin_of(row), 0);
  };
#pragma unroll
  for (int r = 0; r < kRows; ++r) load(sums.rows.row() + r * step, r);
  wait_for_predecessors();
  let_dependents_start();
  std::uint32_t index = 0;
#pragma unroll 1
  for (std::uint64_t first = sums.rows.row(); first < p.rows; first += kRows * step, index += kRows) {
    if (index % sums.kFacts == 0) sums.merge_facts(first);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::uint64_t row = first + r * step;
      if (row >= p.rows) break;
      const std::uint32_t x_word = x[r], dy_word = dy[r];
      load(row + kRows * step, r);
      sums.take(row, index + r, 0, x_word, dy_word);
    }
  }
  sums.store();
}

// The same where there are enough rows or columns for threads with kSumWords words: rows pass through shared memory.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(kSumColumnThreads, kBlocksOfSm) norm_backward_columns_streamed(NormBackwardParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  ColumnSums<kOp, T, kSumWords> sums(p);
  BulkStream<T, ColumnBlocks, Alignment::kUnaligned, 2> stream(p.shares, ring, sums.rows, p.rows, p.columns,
                                                               {p.x, p.dy});
  stream.start(sums.rows.row());
  wait_for_predecessors();
  let_dependents_start();
  std::uint32_t index = 0;
#pragma unroll 1
  for (std::uint64_t row = sums.rows.row(); row < p.rows; row += sums.rows.rows(), ++index) {
    if (index % sums.kFacts == 0) sums.merge_facts(row);
    const T* at[2];
    stream.wait(row, at);
#pragma unroll
    for (int u = 0; u < kSumWords; ++u) sums.take(row, index, u, sums.words.load(at[0], u), sums.words.load(at[1], u));
    __syncthreads();
    stream.next(row);
  }
  sums.store();
#endif
}

template <auto kKernel, NormOp kOp, class T>
NormBackwardKernel with_host_body() {
  return make_kernel<kKernel, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kSumColumnThreads}>();
}
template <NormOp kOp, class T>
NormBackwardKernel of_columns(bool is_stream) {
  return is_stream ? with_host_body<norm_backward_columns_streamed<kOp, T>, kOp, T>()
                   : with_host_body<norm_backward_columns<kOp, T>, kOp, T>();
}

}  // namespace

NormBackwardKernel norm_summed_chunks(NormOp op, DType type, bool is_stream) {
  return of_float_type(type, [=]<class T>() {
    return op == NormOp::kLayerNorm ? of_columns<NormOp::kLayerNorm, T>(is_stream)
                                    : of_columns<NormOp::kRmsNorm, T>(is_stream);
  });
}

}  // namespace cgrt::kernels
