#include "cgrt_kernels/attention/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cgrt_kernels/attention/host.h"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/async_copy_or_zero.cuh"
#include "cgrt_kernels/common/exp2.cuh"
#include "cgrt_kernels/common/matrix_load.cuh"
#include "cgrt_kernels/common/mma.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/word.cuh"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kThreads = kAttentionThreads, kKeys = kAttentionKeys;
constexpr float kLn2 = 0.6931471805599453f;

// threadIdx.x. What follows from it is computed where it is needed: the compiler would keep it in registers for all
// steps, and they would be too few.
__device__ __forceinline__ std::uint32_t recomputed_thread() {
  std::uint32_t thread = threadIdx.x;
  asm volatile("" : "+r"(thread));
  return thread;
}

// Rows of a head, in shared memory. The pieces of 16 bytes of a row change places by its number, so that those in one
// place of eight rows are in different banks.
template <int kHeadSize>
struct Rows {
  static constexpr std::uint32_t kRowBytes = kHeadSize * 2, kPieces = kRowBytes / 16;
  static __device__ __forceinline__ std::uint32_t place(std::uint32_t row, std::uint32_t piece) {
    return row * kRowBytes + (piece ^ row % 8) * 16;
  }

  // The piece of a tile's first rows that this thread copies.
  template <class T>
  static __device__ __forceinline__ const T* own_piece(const T* array, std::uint64_t stride) {
    return array + threadIdx.x / kPieces * stride + threadIdx.x % kPieces * 8;
  }
  // A tile of rows `first` to `first` + kCount - 1, zeros for those from `end` on; all threads of the block copy.
  // `from` moves on to the next tile.
  template <std::uint32_t kCount, class T>
  static __device__ __forceinline__ void copy(unsigned char* to, const T*& from, std::uint64_t stride,
                                              std::uint32_t first, std::uint32_t end) {
    constexpr std::uint32_t kStep = kThreads / kPieces;
    const std::uint32_t thread = kHeadSize == 128 ? recomputed_thread() : threadIdx.x;
#pragma unroll
    for (std::uint32_t i = 0; i < kCount / kStep; ++i, from += kStep * stride) {
      const std::uint32_t row = thread / kPieces + i * kStep;
      copy_or_zero_asynchronously(to + place(row, thread % kPieces), from, first + row < end);
    }
  }
};

// What one warp has computed of its queries, kTiles of 16, as mma.m16n8k16 leaves it: of a tile a lane has rows
// lane / 4 and that plus 8.
template <class T, int kHeadSize, int kTiles>
class WarpQueries {
 public:
  using Head = Rows<kHeadSize>;

  // Products with the keys of a step, which is `scores` after it. Queries are read again for each step: registers hold
  // the outputs.
  __device__ __forceinline__ static void multiply(float (&scores)[kTiles][kKeys / 8][4], const unsigned char* q,
                                                  const unsigned char* k) {
    const std::uint32_t lane = recomputed_thread() % 32;
#pragma unroll
    for (std::uint32_t i = 0; i < kHeadSize / 16; ++i) {
      std::uint32_t a[kTiles][4];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        load_matrices(a[tile], q + Head::place(tile * 16 + lane % 16, 2 * i + lane / 16));
      }
#pragma unroll
      for (std::uint32_t j = 0; j < kKeys / 16; ++j) {
        std::uint32_t b[4];
        load_matrices(b, k + Head::place(j * 16 + lane % 8 + lane / 16 * 8, 2 * i + lane / 8 % 2));
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const std::uint32_t(&q_words)[4] = a[tile];
          multiply_add<T>(scores[tile][2 * j], q_words[0], q_words[1], q_words[2], q_words[3], b[0], b[1]);
          multiply_add<T>(scores[tile][2 * j + 1], q_words[0], q_words[1], q_words[2], q_words[3], b[2], b[3]);
        }
      }
    }
  }

  // Weights of a tile of queries, as words of the next product; what was there before is weighted by the new maximum.
  __device__ __forceinline__ void weigh(std::uint32_t (&weights)[kKeys / 16][4], float (&scores)[kKeys / 8][4],
                                        int tile, float scale) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float max = max_[tile][half];
#pragma unroll
      for (std::uint32_t j = 0; j < kKeys / 8; ++j) {
        max = fmaxf(max, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
      }
      max = fmaxf(max, shuffle(max, 1));
      max = fmaxf(max, shuffle(max, 2));
      const float shift = finite_or_zero(max), base = shift * scale;
      const float correction = exp2_of((max_[tile][half] - shift) * scale);  // 1 where the maximum stays
      max_[tile][half] = max;
      sum_[tile][half] *= correction;
#pragma unroll
      for (int i = 0; i < kHeadSize / 8; ++i) {
        values_[tile][i][2 * half] *= correction, values_[tile][i][2 * half + 1] *= correction;
      }
#pragma unroll
      for (std::uint32_t j = 0; j < kKeys / 8; ++j) {
        const float first = exp2_of(scores[j][2 * half] * scale - base);
        const float second = exp2_of(scores[j][2 * half + 1] * scale - base);
        sum_[tile][half] += first + second;
        weights[j / 2][half + j % 2 * 2] = Word<T>::pack({first, second});
      }
    }
  }

  __device__ __forceinline__ void add(const std::uint32_t (&weights)[kTiles][kKeys / 16][4], const unsigned char* v) {
    const std::uint32_t lane = recomputed_thread() % 32;
#pragma unroll
    for (std::uint32_t j = 0; j < kKeys / 16; ++j) {
#pragma unroll
      for (std::uint32_t i = 0; i < kHeadSize / 16; ++i) {
        std::uint32_t b[4];
        load_transposed_matrices(b, v + Head::place(j * 16 + lane % 16, 2 * i + lane / 16));
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const std::uint32_t(&words)[4] = weights[tile][j];
          multiply_add<T>(values_[tile][2 * i], words[0], words[1], words[2], words[3], b[0], b[1]);
          multiply_add<T>(values_[tile][2 * i + 1], words[0], words[1], words[2], words[3], b[2], b[3]);
        }
      }
    }
  }

  // Outputs of the first `count` queries, through shared memory that is the warp's own, and, unless null, their lse.
  __device__ __forceinline__ void finish(unsigned char* shared, T* out, std::uint64_t stride, float* lse,
                                         std::uint32_t count, float scale) {
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t row = tile * 16 + half * 8 + lane / 4;
        const float sum = reduce_lanes<4>(sum_[tile][half]), inverse = sum == 0 ? 0 : 1 / sum;
#pragma unroll
        for (int i = 0; i < kHeadSize / 8; ++i) {
          *reinterpret_cast<std::uint32_t*>(shared + Head::place(row, i) + lane % 4 * 4) =
              Word<T>::pack({values_[tile][i][2 * half] * inverse, values_[tile][i][2 * half + 1] * inverse});
        }
        if (lse != nullptr && lane % 4 == 0 && row < count) {
          lse[row] = max_[tile][half] * scale * kLn2 + logf(sum);
        }
      }
    }
    __syncwarp();
#pragma unroll
    for (std::uint32_t i = 0; i < kTiles * 16 * Head::kPieces / 32; ++i) {
      const std::uint32_t row = (i * 32 + lane) / Head::kPieces, piece = lane % Head::kPieces;
      if (row >= count) continue;
      *reinterpret_cast<uint4*>(out + row * stride + piece * 8) =
          *reinterpret_cast<const uint4*>(shared + Head::place(row, piece));
    }
  }

  __device__ __forceinline__ WarpQueries() {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) max_[i / 2][i % 2] = -INFINITY;
  }

 private:
  float max_[kTiles][2], sum_[kTiles][2] = {};  // of scores without `scale`; `sum_`: of the columns that the lane has
  float values_[kTiles][kHeadSize / 8][4] = {};
};

// Of the first `seen` keys only, in a step that begins with key `first`.
template <class See>
__device__ __forceinline__ void hide(float (&scores)[kKeys / 8][4], std::uint32_t first, See seen) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t end = seen(half);
#pragma unroll
    for (std::uint32_t j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (first + j * 8 + threadIdx.x % 4 * 2 + i >= end) scores[j][2 * half + i] = -INFINITY;
      }
    }
  }
}

// Where a block works. Heads whose keys and values fit into the cache together are a section of the grid; in it blocks
// with many keys come first, and heads that share keys and values are neighbours.
struct Place {
  std::uint32_t sequence, head, tile;

  __device__ __forceinline__ explicit Place(const AttentionParams& p) {
    const std::uint32_t section_heads = p.heads_at_once * p.group, section_blocks = section_heads * p.query_tiles;
    const std::uint32_t section = blockIdx.x / section_blocks, block = blockIdx.x - section * section_blocks;
    const std::uint32_t first = section * section_heads;
    const std::uint32_t heads = min(section_heads, p.batch * p.heads - first);
    const std::uint32_t order = block / heads, among_all = first + block - order * heads;
    tile = p.query_tiles - 1 - order;
    sequence = among_all / p.heads, head = among_all - sequence * p.heads;
  }
};

// Keys and values have one tile each in shared memory, and take turns: while one is multiplied the other is copied.
// That leaves room for two blocks on a multiprocessor, which fill each other's waits.
template <class T, int kHeadSize, AttentionBlock kBlock>
__global__ void __launch_bounds__(kThreads) attention(const __grid_constant__ AttentionParams p) {
  using Head = Rows<kHeadSize>;
  constexpr std::uint32_t kQueries = attention_queries(kBlock), kOwn = kQueries / (kThreads / 32);
  constexpr int kTiles = kOwn / 16;
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned char* const k_rows = shared + kQueries * Head::kRowBytes;
  unsigned char* const v_rows = k_rows + kKeys * Head::kRowBytes;
  const std::uint32_t lane = threadIdx.x % 32;
  const Place place(p);
  const std::uint32_t begin = place.tile * kQueries, own = begin + threadIdx.x / 32 * kOwn;  // queries
  unsigned char* const own_rows = shared + threadIdx.x / 32 * kOwn * Head::kRowBytes;
  wait_for_predecessors();

  const AttentionTokens queries = attention_tokens(p.args.q_offsets, p.args.q_lengths, place.sequence, p.queries);
  if (begin >= queries.count) return;
  const AttentionTokens keys = attention_tokens(p.args.k_offsets, p.args.k_lengths, place.sequence, p.keys);
  const auto seen = [&](std::uint32_t query) {
    return seen_by(p.mask, min(query, queries.count - 1), queries.count, keys.count);
  };
  const T* q =
      Head::own_piece(static_cast<const T*>(p.args.q) + queries.offset(p.q) + place.head * p.q.head, p.q.token);
  const std::uint32_t kv_head = place.head / p.group;
  const T* k = Head::own_piece(static_cast<const T*>(p.args.k) + keys.offset(p.k) + kv_head * p.k.head, p.k.token);
  const T* v = Head::own_piece(static_cast<const T*>(p.args.v) + keys.offset(p.v) + kv_head * p.v.head, p.v.token);
  const std::uint32_t end = max(seen(begin + kQueries - 1), 1u);  // the first step has zeros where there are no keys

  q += begin * p.q.token;
  Head::template copy<kQueries>(shared, q, p.q.token, begin, queries.count);
  Head::template copy<kKeys>(k_rows, k, p.k.token, 0, keys.count);
  end_copy_group();
  WarpQueries<T, kHeadSize, kTiles> sums;
  for (std::uint32_t first = 0; first < end; first += kKeys) {
    wait_for_copies<0>();
    __syncthreads();  // the keys of all threads are here, and all have read the values
    Head::template copy<kKeys>(v_rows, v, p.v.token, first, keys.count);
    end_copy_group();
    const std::uint32_t own = begin + recomputed_thread() / 32 * kOwn;
    const bool is_seen = own < queries.count && first < seen(own + kOwn - 1);
    std::uint32_t weights[kTiles][kKeys / 16][4];
    if (is_seen) {
      float scores[kTiles][kKeys / 8][4] = {};
      sums.multiply(scores, own_rows, k_rows);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (first + kKeys > seen(own)) {
          hide(scores[tile], first, [&](int half) { return seen(own + tile * 16 + half * 8 + lane / 4); });
        }
        sums.weigh(weights[tile], scores[tile], tile, p.scale);
      }
    }
    wait_for_copies<0>();
    __syncthreads();  // the values of all threads are here, and all have read the keys
    if (first + kKeys < end) Head::template copy<kKeys>(k_rows, k, p.k.token, first + kKeys, keys.count);
    end_copy_group();
    if (is_seen) sums.add(weights, v_rows);
  }
  let_dependents_start();
  if (own >= queries.count) return;
  T* const out = static_cast<T*>(p.args.out) + queries.offset(p.out) + place.head * p.out.head + own * p.out.token;
  float* const lse = p.args.lse == nullptr
                         ? nullptr
                         : p.args.lse + (std::uint64_t{place.sequence} * p.heads + place.head) * p.queries + own;
  sums.finish(own_rows, out, p.out.token, lse, queries.count - own, p.scale);
}

template <class T, int kHeadSize, AttentionBlock kBlock, int kRegisters>
Kernel<AttentionParams> kernel_of() {
  return make_kernel<attention<T, kHeadSize, kBlock>, attention_on_host<T, kHeadSize>,
                     KernelResources{.registers = kRegisters, .max_threads = kThreads}>();
}

template <class T>
Kernel<AttentionParams> of_head_size(std::uint64_t head_size, AttentionBlock block) {
  using enum AttentionBlock;
  if (head_size == 64) return block == kLarge ? kernel_of<T, 64, kLarge, 168>() : kernel_of<T, 64, kSmall, 128>();
  if (head_size == 128) return block == kLarge ? kernel_of<T, 128, kLarge, 255>() : kernel_of<T, 128, kSmall, 168>();
  return kernel_of<T, 256, kSmall, 255>();
}

}  // namespace

Kernel<AttentionParams> attention_kernel(DType type, std::uint64_t head_size, AttentionBlock block) {
  return type == DType::kFloat16 ? of_head_size<__half>(head_size, block)
                                 : of_head_size<__nv_bfloat16>(head_size, block);
}

}  // namespace cgrt::kernels
