#include <cmath>
#include <cstdint>

#include "cgrt_kernels/attention/host.h"
#include "cgrt_kernels/attention/kernels.h"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/async_copy_or_zero.cuh"
#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/exp2.cuh"
#include "cgrt_kernels/common/mbarrier.cuh"
#include "cgrt_kernels/common/named_barrier.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/tensor_copy.cuh"
#include "cgrt_kernels/common/wgmma.cuh"
#include "cgrt_kernels/common/word.cuh"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kStages = AttentionHopper::kStages;
constexpr float kLn2 = 0.6931471805599453f;

#if __CUDA_ARCH__ >= 900

// Rows of a head in shared memory, in columns of 64 elements, each swizzled as tensor maps leave it.
template <int kHeadSize, std::uint32_t kRows>
struct Rows {
  static constexpr std::uint32_t kColumnBytes = kRows * 128;

  alignas(1024) unsigned char bytes[kRows * kHeadSize * 2];

  __device__ __forceinline__ unsigned char* piece(std::uint32_t row, std::uint32_t piece) {
    return bytes + piece / 8 * kColumnBytes + row * 128 + (piece % 8 ^ row % 8) * 16;
  }
  // What to add to the descriptor of the first 16 elements of rows for that of others.
  static __device__ __forceinline__ std::uint32_t descriptor_step(std::uint32_t sixteen) {
    return (sixteen / 4 * kColumnBytes + sixteen % 4 * 32) / 16;
  }
};

// Queries of a head that a block works on together.
struct Tile {
  std::uint32_t sequence, head, kv_head;
  AttentionTokens queries, keys;
  std::uint32_t begin, end;  // the first query; how many keys the last one sees

  Tile() = default;
  __device__ __forceinline__ Tile(const AttentionParams& p, std::uint32_t head_of_all, std::uint32_t first,
                                  std::uint32_t size) {
    sequence = head_of_all / p.heads, head = head_of_all - sequence * p.heads, kv_head = head / p.group;
    queries = attention_tokens(p.args.q_offsets, p.args.q_lengths, sequence, p.queries);
    keys = attention_tokens(p.args.k_offsets, p.args.k_lengths, sequence, p.keys);
    begin = first;
    end = has_queries() ? seen_by(p.mask, min(begin + size, queries.count) - 1, queries.count, keys.count) : 0;
  }
  __device__ __forceinline__ bool has_queries() const { return begin < queries.count; }
};

template <int kHeadSize>
struct Shared {
  static constexpr std::uint32_t kQueries = AttentionHopper::queries(kHeadSize);
  static constexpr std::uint32_t kKeys = AttentionHopper::keys(kHeadSize);
  static constexpr bool kHasOutputs = AttentionHopper::has_outputs(kHeadSize);

  Rows<kHeadSize, kQueries> queries[kHasOutputs ? 2 : 1];
  Rows<kHeadSize, kKeys> k[kStages], v[kStages];
  BulkBarrier q_full, k_full[kStages], v_full[kStages];
  Mbarrier q_empty, k_empty[kStages], v_empty[kStages];
  Tile tile;  // of the warp that copies, which has few registers

  __device__ __forceinline__ Rows<kHeadSize, kQueries>& q() { return queries[0]; }
  __device__ __forceinline__ Rows<kHeadSize, kQueries>& out() { return queries[kHasOutputs ? 1 : 0]; }
};

// Stages in turn.
struct Turn {
  std::uint32_t stage = 0, phase = 0;
  __device__ __forceinline__ void operator++() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
};

// The tiles of this block.
template <int kHeadSize, class Use>
__device__ __forceinline__ void for_each_tile(const AttentionParams& p, Use use) {
  constexpr std::uint32_t kQueries = AttentionHopper::queries(kHeadSize);
  const AttentionOrder order{p.batch * p.heads, p.heads_at_once * p.group, p.query_tiles, p.tiles_at_once};
  for (std::uint32_t turn = blockIdx.x;; turn += gridDim.x) {
    const std::uint32_t at = order.step_at(turn, gridDim.x);
    if (at >= order.steps()) return;
    const AttentionOrder::Step step = order.at(at);
#pragma unroll 1
    for (std::uint32_t i = 0; i < p.tiles_at_once; ++i) {
      if (i == 0 || step.first != step.last) {
        use(Tile(p, step.head, (i == 0 ? step.last : step.first) * kQueries, kQueries));
      }
    }
  }
}

// Copies rows `first` to `first` + kRows - 1 of a head; zeros for those that do not count. By all lanes of a warp.
template <class T, int kHeadSize, std::uint32_t kRows>
__device__ __forceinline__ void copy_rows(Rows<kHeadSize, kRows>& to, BulkBarrier& full, const CUtensorMap& map,
                                          const void* array, const AttentionStrides& strides,
                                          const AttentionTokens& tokens, bool is_dense, std::uint32_t head,
                                          std::uint32_t first) {
  std::uint32_t lane = threadIdx.x;
  asm volatile("" : "+r"(lane));  // registers are too few to keep what follows from it
  lane %= 32;
  if (is_dense || first + kRows <= tokens.count) {
    if (lane != 0) return;
    full.expect(sizeof(to));
    copy_box(to.bytes, map, {0, tokens.first + first, 0, head, tokens.sequence}, full);
    return;
  }
  // A box would have rows of what is behind the sequence.
  constexpr std::uint32_t kPieces = kHeadSize / 8;
  const T* from = static_cast<const T*>(array) + tokens.offset(strides) + head * strides.head +
                  (first + lane / kPieces) * strides.token + lane % kPieces * 8;
  const std::uint32_t count = tokens.count - first;
#pragma unroll 1
  for (std::uint32_t row = lane / kPieces; row < kRows; row += 32 / kPieces, from += 32 / kPieces * strides.token) {
    copy_or_zero_asynchronously(to.piece(row, lane % kPieces), from, row < count);
  }
  end_copy_group();
  wait_for_copies<0>();
  fence_for_tensor_copies();
  __syncwarp();
  if (lane == 0) full.expect(0);
}

// Blocks of keys are copied from the last to the first. Queries come behind the first of them: their place is free
// last.
template <class T, int kHeadSize>
__device__ __forceinline__ void copy_tiles(const AttentionParams& p, Shared<kHeadSize>& shared) {
  constexpr std::uint32_t kKeys = Shared<kHeadSize>::kKeys;
  const bool has_all_queries = p.args.q_offsets == nullptr && p.args.q_lengths == nullptr;
  const bool has_all_keys = p.args.k_offsets == nullptr && p.args.k_lengths == nullptr;
  Turn turn;
  std::uint32_t q_phase = 0;
  for_each_tile<kHeadSize>(p, [&](const Tile& next) {
    __syncwarp();
    if (threadIdx.x == 0) shared.tile = next;
    __syncwarp();
    const Tile& tile = shared.tile;
    std::uint32_t block = (tile.end + kKeys - 1) / kKeys;
    for (; block-- != 0; ++turn) {
      shared.k_empty[turn.stage].wait(turn.phase ^ 1);
      copy_rows<T>(shared.k[turn.stage], shared.k_full[turn.stage], p.k_map, p.args.k, p.k, tile.keys, has_all_keys,
                   tile.kv_head, block * kKeys);
      if (block == (tile.end - 1) / kKeys) {
        shared.q_empty.wait(q_phase ^ 1);
        q_phase ^= 1;
        copy_rows<T>(shared.q(), shared.q_full, p.q_map, p.args.q, p.q, tile.queries, has_all_queries, tile.head,
                     tile.begin);
      }
      shared.v_empty[turn.stage].wait(turn.phase ^ 1);
      copy_rows<T>(shared.v[turn.stage], shared.v_full[turn.stage], p.v_map, p.args.v, p.v, tile.keys, has_all_keys,
                   tile.kv_head, block * kKeys);
    }
  });
}

// What a warpgroup computes of its 64 queries. A lane has rows lane / 4 and that plus 8 of its warp's 16: see
// wgmma.cuh.
template <class T, int kHeadSize>
class Consumer {
 public:
  static constexpr std::uint32_t kKeys = Shared<kHeadSize>::kKeys, kConsumers = AttentionHopper::consumers(kHeadSize);

  __device__ __forceinline__ Consumer(const AttentionParams& p, Shared<kHeadSize>& shared, std::uint32_t number)
      : p_(p),
        shared_(shared),
        number_(number),
        q_(matrix_descriptor<MatrixMajor::kK>(shared.q().bytes + number * 64 * 128)),
        k_(matrix_descriptor<MatrixMajor::kK>(shared.k[0].bytes)),
        v_(matrix_descriptor<MatrixMajor::kMn>(shared.v[0].bytes, shared.v[0].kColumnBytes)) {}

  // While one warpgroup weighs scores another multiplies: they take turns (Shah et al., "FlashAttention-3", 2024).
  __device__ __forceinline__ void compute_tiles() {
    if (number_ == kConsumers - 1) arrive_at_named_barrier<256>(kFirstTurn);
    for_each_tile<kHeadSize>(p_, [&](const Tile& tile) {
      if (tile.has_queries()) compute(tile);
    });
    if (number_ == 0) wait_at_named_barrier<256>(kFirstTurn);
  }

 private:
  static constexpr std::uint32_t kFirstTurn = 1, kFirstMeeting = kFirstTurn + kConsumers;  // named barriers

  __device__ __forceinline__ void compute(const Tile& tile) {
    const std::uint32_t warp_row = number_ * 64 + threadIdx.x / 32 % 4 * 16;
    const std::uint32_t begin = tile.begin + number_ * 64;  // of the warpgroup
    const auto seen = [&](std::uint32_t query) {
      return seen_by(p_.mask, min(query, tile.queries.count - 1), tile.queries.count, tile.keys.count);
    };
    Sums sums;
    if (tile.end != 0) {
      const std::uint32_t row = tile.begin + warp_row + threadIdx.x % 32 / 4, end[2] = {seen(row), seen(row + 8)};
      std::uint32_t block = (tile.end - 1) / kKeys;
      float scores[kKeys / 2];
      std::uint32_t weights[kKeys / 16][4];
      const auto weigh = [&](bool is_masked) {
        if (is_masked) hide(scores, block * kKeys, end);
        sums.weigh(scores, p_.scale);
      };
      const auto step = [&](bool is_masked) {
        --block;
        shared_.k_full[k_turn_.stage].wait(k_turn_.phase);
        wait_at_named_barrier<256>(kFirstTurn + number_);
        multiply(scores);
        shared_.v_full[v_turn_.stage].wait(v_turn_.phase);
        add(sums, weights);
        arrive_at_named_barrier<256>(kFirstTurn + (number_ + 1) % kConsumers);
        wait_for_products<1>();
        fence_registers(scores);
        release(shared_.k_empty, k_turn_);
        weigh(is_masked);
        wait_for_products<0>();
        fence_registers(sums.values);
        release(shared_.v_empty, v_turn_);
        sums.correct();
        pack(weights, scores);
      };
      shared_.q_full.wait(q_phase_);
      q_phase_ ^= 1;
      shared_.k_full[k_turn_.stage].wait(k_turn_.phase);
      multiply(scores);
      wait_for_products<0>();
      fence_registers(scores);
      release(shared_.k_empty, k_turn_);
      weigh(true);
      pack(weights, scores);
      for (const std::uint32_t whole = seen(begin) / kKeys; block > whole;) step(true);
      while (block != 0) step(false);
      if (Shared<kHeadSize>::kHasOutputs) release_queries();
      shared_.v_full[v_turn_.stage].wait(v_turn_.phase);
      add(sums, weights);
      wait_for_products<0>();
      fence_registers(sums.values);
      release(shared_.v_empty, v_turn_);
      if (!Shared<kHeadSize>::kHasOutputs) wait_at_named_barrier<128>(kFirstMeeting + number_);  // all have read them
    }
    finish(tile, sums, warp_row);
  }

  struct Sums {
    float values[kHeadSize / 2] = {};
    float max[2] = {-INFINITY, -INFINITY}, sum[2] = {};  // of scores without the scale; of the lane's columns
    float correction[2];                                 // of what was there before the last scores

    // Scores become weights.
    __device__ __forceinline__ void weigh(float (&scores)[kKeys / 2], float scale) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = max[half];
#pragma unroll
        for (std::uint32_t j = 2 * half; j < kKeys / 2; j += 4) most = fmaxf(most, fmaxf(scores[j], scores[j + 1]));
        most = fmaxf(most, shuffle(most, 1));
        most = fmaxf(most, shuffle(most, 2));
        const float shift = finite_or_zero(most), base = shift * scale;
        correction[half] = exp2_of((max[half] - shift) * scale);  // 1 where the maximum stays
        max[half] = most;
        sum[half] *= correction[half];
#pragma unroll
        for (std::uint32_t j = 2 * half; j < kKeys / 2; j += 4) {
          scores[j] = exp2_of(scores[j] * scale - base), scores[j + 1] = exp2_of(scores[j + 1] * scale - base);
          sum[half] += scores[j] + scores[j + 1];
        }
      }
    }
    __device__ __forceinline__ void correct() {
#pragma unroll
      for (int i = 0; i < kHeadSize / 2; ++i) values[i] *= correction[i / 2 % 2];
    }
  };

  __device__ __forceinline__ void multiply(float (&scores)[kKeys / 2]) {
    const std::uint64_t k = k_ + k_turn_.stage * (sizeof(shared_.k[0]) / 16);
    fence_registers(scores);
    fence_products();
#pragma unroll
    for (int i = 0; i < kHeadSize / 16; ++i) {
      multiply_add_shared<T, kKeys>(scores, q_ + shared_.q().descriptor_step(i), k + shared_.k[0].descriptor_step(i),
                                    i != 0);
    }
    commit_products();
  }

  __device__ __forceinline__ void add(Sums& sums, std::uint32_t (&weights)[kKeys / 16][4]) {
    const std::uint64_t v = v_ + v_turn_.stage * (sizeof(shared_.v[0]) / 16);
    fence_registers(sums.values);
    fence_products();
#pragma unroll
    for (std::uint32_t i = 0; i < kKeys / 16; ++i) {
      multiply_add_registers<T, kHeadSize, MatrixMajor::kMn>(sums.values, weights[i], v + i * (16 * 128 / 16));
    }
    commit_products();
  }

  __device__ __forceinline__ static void pack(std::uint32_t (&weights)[kKeys / 16][4],
                                              const float (&scores)[kKeys / 2]) {
#pragma unroll
    for (std::uint32_t i = 0; i < kKeys / 4; ++i) {
      weights[i / 4][i % 4] = Word<T>::pack({scores[2 * i], scores[2 * i + 1]});
    }
  }

  // Scores of a block that begins with key `first`, of keys that a row does not see.
  __device__ __forceinline__ static void hide(float (&scores)[kKeys / 2], std::uint32_t first,
                                              const std::uint32_t (&end)[2]) {
    first += threadIdx.x % 4 * 2;
#pragma unroll
    for (std::uint32_t i = 0; i < kKeys / 2; ++i) {
      if (first + i / 4 * 8 + i % 2 >= end[i / 2 % 2]) scores[i] = -INFINITY;
    }
  }

  __device__ __forceinline__ static void release(Mbarrier* empty, Turn& turn) {
    if (threadIdx.x % 32 == 0) empty[turn.stage].arrive();
    ++turn;
  }

  __device__ __forceinline__ void release_queries() {
    fence_for_tensor_copies();
    __syncwarp();
    if (threadIdx.x % 32 == 0) shared_.q_empty.arrive();
  }

  // Outputs, by way of shared memory, and, unless null, their lse.
  __device__ __forceinline__ void finish(const Tile& tile, Sums& sums, std::uint32_t warp_row) {
    constexpr std::uint32_t kPieces = kHeadSize / 8;
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t own = tile.begin + warp_row;
    const std::uint32_t count = own < tile.queries.count ? tile.queries.count - own : 0;
    float* const lse = p_.args.lse == nullptr
                           ? nullptr
                           : p_.args.lse + (std::uint64_t{tile.sequence} * p_.heads + tile.head) * p_.queries + own;
    const bool has_rows = tile.end != 0;  // they are the next tile's where no keys are seen
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = half * 8 + lane / 4;
      const float sum = reduce_lanes<4>(sums.sum[half]), inverse = sum == 0 ? 0 : 1 / sum;
      if (lse != nullptr && lane % 4 == 0 && row < count) lse[row] = sums.max[half] * p_.scale * kLn2 + logf(sum);
      if (!has_rows) continue;
#pragma unroll
      for (std::uint32_t i = 0; i < kPieces; ++i) {
        *reinterpret_cast<std::uint32_t*>(shared_.out().piece(warp_row + row, i) + lane % 4 * 4) =
            Word<T>::pack({sums.values[4 * i + 2 * half] * inverse, sums.values[4 * i + 2 * half + 1] * inverse});
      }
    }
    __syncwarp();
    T* const out =
        static_cast<T*>(p_.args.out) + tile.queries.offset(p_.out) + tile.head * p_.out.head + own * p_.out.token;
#pragma unroll
    for (std::uint32_t i = 0; i < 16 * kPieces / 32; ++i) {
      const std::uint32_t row = (i * 32 + lane) / kPieces, piece = lane % kPieces;
      if (row >= count) continue;
      *reinterpret_cast<uint4*>(out + row * p_.out.token + piece * 8) =
          has_rows ? *reinterpret_cast<const uint4*>(shared_.out().piece(warp_row + row, piece)) : uint4{};
    }
    if (has_rows && !Shared<kHeadSize>::kHasOutputs) release_queries();
  }

  const AttentionParams& p_;
  Shared<kHeadSize>& shared_;
  const std::uint32_t number_;
  const std::uint64_t q_, k_, v_;  // descriptors
  Turn k_turn_, v_turn_;
  std::uint32_t q_phase_ = 0;
};

#endif

template <class T, int kHeadSize>
__global__ void __launch_bounds__(AttentionHopper::threads(kHeadSize), 1)
    attention_hopper(const __grid_constant__ AttentionParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<kHeadSize>*>(memory + (0 - shared_address(memory)) % 1024);
  if (threadIdx.x == 0) {
    constexpr std::uint32_t kWarps = 4 * AttentionHopper::consumers(kHeadSize);
    shared.q_full.initialize();
    shared.q_empty.initialize(kWarps);
    for (std::uint32_t i = 0; i < kStages; ++i) {
      shared.k_full[i].initialize(), shared.v_full[i].initialize();
      shared.k_empty[i].initialize(kWarps), shared.v_empty[i].initialize(kWarps);
    }
    make_barriers_visible();
  }
  __syncthreads();
  wait_for_predecessors();
  constexpr bool kHasThree = AttentionHopper::consumers(kHeadSize) == 3;
  if (threadIdx.x < 128) {
    give_registers<kHasThree ? 32 : 56>();
    if (threadIdx.x < 32) copy_tiles<T>(p, shared);
    let_dependents_start();
  } else {
    take_registers<kHasThree ? 160 : 224>();
    // The same for all lanes, so that the compiler computes descriptors once for a warp.
    const std::uint32_t number = __shfl_sync(~0u, threadIdx.x / 128 - 1, 0);
    Consumer<T, kHeadSize>(p, shared, number).compute_tiles();
  }
#endif
}

template <class T, int kHeadSize>
Kernel<AttentionParams> kernel_of() {
  return make_kernel<attention_hopper<T, kHeadSize>, attention_on_host<T, kHeadSize>,
                     KernelResources{.registers = kHeadSize == 64 ? 128 : 168,
                                     .max_threads = AttentionHopper::threads(kHeadSize)}>();
}

template <class T>
Kernel<AttentionParams> of_head_size(std::uint64_t head_size) {
  return head_size == 64 ? kernel_of<T, 64>() : head_size == 128 ? kernel_of<T, 128>() : kernel_of<T, 256>();
}

}  // namespace

Kernel<AttentionParams> attention_hopper_kernel(DType type, std::uint64_t head_size) {
  return type == DType::kFloat16 ? of_head_size<__half>(head_size) : of_head_size<__nv_bfloat16>(head_size);
}

}  // namespace cgrt::kernels
