#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/published.cuh"
#include "cgrt_kernels/common/row/window.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/cut_words.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

#if __CUDA_ARCH__ >= 900

// What is found of some elements, whose number all know: about their mean, as Comoments.
struct Uncounted {
  float mean, squares, sum, product;
};
template <NormOp kOp>
using UncountedPart = std::conditional_t<kOp == NormOp::kLayerNorm, Uncounted, Products>;

// Not inlined: where all code runs once, how much of it must be fetched counts.
__device__ __noinline__ float4 reduce_all(float4 value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    value = {value.x + shuffle(value.x, mask), value.y + shuffle(value.y, mask), value.z + shuffle(value.z, mask),
             value.w + shuffle(value.w, mask)};
  }
  return value;
}
// From sums over `count` elements of x - base, its square, g, and g * (x - base).
__device__ __forceinline__ Uncounted about_mean(float base, const float4& sums, float count) {
  const float away = __fdividef(sums.x, fmaxf(count, 1.0f)), squares = sums.y - sums.x * away;
  return {base + away, squares < 0 ? 0 : squares, sums.z, sums.w - sums.z * away};  // NaN stays
}
// Of what lanes have, `count` elements each: the first some, if any has.
__device__ __forceinline__ Uncounted merge_lanes(const Uncounted& part, float count, float all) {
  const float base = __shfl_sync(~0u, part.mean, 0), away = part.mean - base;
  return about_mean(
      base, reduce_all({count * away, part.squares + count * away * away, part.sum, part.product + part.sum * away}),
      all);
}
__device__ __forceinline__ Products merge_lanes(const Products& part, float, float) { return reduce_lanes(part); }
__device__ __forceinline__ GradientFacts facts_of(const Uncounted& row, float all, float epsilon) {
  return gradient_facts(Comoments{all, row.mean, row.squares, row.sum, row.product}, all, epsilon);
}
__device__ __forceinline__ GradientFacts facts_of(const Products& row, float all, float epsilon) {
  return gradient_facts(row, all, epsilon);
}
// Of `all` elements, which runs of `run` have one after the other, how many the n-th has.
__device__ __forceinline__ std::uint32_t count_of(std::uint32_t n, std::uint32_t run, std::uint32_t all) {
  const std::uint64_t begin = std::uint64_t{n} * run;
  return begin < all ? min(run, all - static_cast<std::uint32_t>(begin)) : 0;
}

// A run in shared memory, as words that may be read beyond its end.
template <class T>
struct SharedRun {
  const std::uint32_t* words;
  std::uint32_t order;  // of the bytes of two words, between which one of the run's lies

  __device__ __forceinline__ std::uint32_t word(std::uint32_t first) const {
    if constexpr (sizeof(T) == 4) return words[first];
    return __byte_perm(words[first / 2], words[first / 2 + 1], order);
  }
};

// Of `count` elements from `first` on of a block's run, from its words and those of the weights; in all lanes of the
// warp. x as differences from the first value, so that sums are not large beside what is wanted.
template <NormOp kOp, class T>
__device__ __forceinline__ UncountedPart<kOp> part_of_words(const SharedRun<T>& x, const SharedRun<T>& dy,
                                                            const std::uint32_t* weights, std::uint32_t first,
                                                            std::uint32_t count) {
  constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  constexpr std::uint32_t kSize = Word<T>::kSize, kOfWarp = 32 * kSize;
  float base = 0;
  if (kIsLayer && count != 0) {
    float values[kSize];
    Word<T>::unpack(x.word(first), values);
    base = values[0];
  }
  float4 sums = {0, 0, 0, 0};
  const auto add = [&](std::uint32_t at, std::uint32_t there) {
    float values[kSize], gradients[kSize], weight[kSize];
    Word<T>::unpack(x.word(at), values);
    Word<T>::unpack(dy.word(at), gradients);
    Word<T>::unpack(weights[at / kSize], weight);
#pragma unroll
    for (std::uint32_t i = 0; i < kSize; ++i) {
      if (i >= there) break;
      const float away = values[i] - base, g = gradients[i] * weight[i];
      if constexpr (kIsLayer) sums.x += away, sums.z += g;
      sums.y = fmaf(away, away, sums.y);
      sums.w = fmaf(g, away, sums.w);
    }
  };
  std::uint32_t at = threadIdx.x % 32 * kSize;
#pragma unroll 3
  for (std::uint32_t left = count; left >= kOfWarp; left -= kOfWarp, at += kOfWarp) add(first + at, kSize);
  if (at < count) add(first + at, count - at);
  if constexpr (kIsLayer) {
    return about_mean(base, reduce_all(sums), static_cast<float>(count));
  } else {
    return reduce_lanes(Products{sums.y, sums.w});
  }
}

// A word of columns, and what is added up of all rows.
template <NormOp kOp, class T>
class ColumnWord {
 public:
  static constexpr int kSize = Word<T>::kSize;
  __device__ __forceinline__ explicit ColumnWord(std::uint32_t weight) { Word<T>::unpack(weight, weight_); }
  // What becomes of a row's word of x.
  __device__ __forceinline__ std::uint32_t take(const GradientFacts& row, std::uint32_t x, std::uint32_t dy) {
    float values[kSize], gradients[kSize];
    Word<T>::unpack(x, values);
    Word<T>::unpack(dy, gradients);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      float normalized;
      values[i] = gradient_of(row, values[i], gradients[i], weight_[i], normalized);
      of_weight_[i] = fmaf(gradients[i], normalized, of_weight_[i]);
      of_bias_[i] += gradients[i];
    }
    return Word<T>::pack(values);
  }
  // Of plane 0 the gradients of weights, of plane 1 those of the bias.
  __device__ __forceinline__ const float (&sums(int plane) const)[kSize] { return plane == 0 ? of_weight_ : of_bias_; }

 private:
  float weight_[kSize], of_weight_[kSize] = {}, of_bias_[kSize] = {};
};

// What passes between blocks, in tagged words. The columns of a block are a place. All publish a part of each row for
// each place that they have claimed, and those that have a place with the number of a row its facts. The n-th words of
// those that are read together lie side by side.
template <class Part>
class SpreadRows {
 public:
  __device__ __forceinline__ SpreadRows(WorkspaceHeader* header, std::uint32_t rows)
      : header_(header),
        facts_(header->tagged + rows * kPartWords * gridDim.x),
        claims_(facts_ + rows * kFactWords),
        rows_(rows) {}

  // By one thread of each block, once. Returns the launch's tag.
  __device__ __forceinline__ std::uint32_t begin() const {
    const std::uint64_t ticket = draw_ticket(header_);
    end_if_last(header_, ticket, gridDim.x - 1, static_cast<std::uint32_t>(claims_ - header_->tagged) + gridDim.x);
    return tag_of(ticket);
  }
  // By the same thread: claims the place that has the block's number and, when others have not begun for long, as
  // another kernel has the multiprocessors, some of theirs, too. Returns how many; none where another block has claimed
  // this one's place.
  __device__ std::uint32_t claim(std::uint32_t tag, std::uint16_t* places) const {
    constexpr long long kPatience = 40'000;  // clocks: 20 us, where blocks that can start do so within 2
    const std::uint64_t mine = std::uint64_t{tag} << 32 | 1;
    std::uint32_t count = 0;
    const auto claim_place = [&](std::uint32_t place) {
      const auto before = atomicExch(reinterpret_cast<unsigned long long*>(claims_ + place), mine);
      if (before != mine) places[count++] = static_cast<std::uint16_t>(place);
    };
    claim_place(blockIdx.x);
    if (count == 0) return 0;
    // Where all have begun, each claims its place, or finds it claimed.
    const long long start = clock64();
    const auto have_all_begun = [&] {
      std::uint64_t launches;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(launches) : "l"(&header_->launches) : "memory");
      return tag_of(launches) != tag || static_cast<std::uint32_t>(launches) == gridDim.x;
    };
    for (std::uint32_t next = 1; next < gridDim.x && !have_all_begun();) {
      if (clock64() - start > kPatience) claim_place((blockIdx.x + next++) % gridDim.x);
    }
    return count;
  }
  __device__ __forceinline__ void publish_part(std::uint32_t row, std::uint32_t place, const Part& part,
                                               std::uint32_t tag) const {
    publish_words(parts(row) + place, gridDim.x, part, tag);
  }
  __device__ __forceinline__ Part wait_for_part(std::uint32_t row, std::uint32_t place, std::uint32_t tag) const {
    return wait_for_words<Part>(parts(row) + place, gridDim.x, tag);
  }
  __device__ __forceinline__ void publish_facts(std::uint32_t row, const GradientFacts& facts,
                                                std::uint32_t tag) const {
    publish_words(facts_ + row, rows_, facts, tag);
  }
  __device__ __forceinline__ GradientFacts wait_for_facts(std::uint32_t row, std::uint32_t tag) const {
    return wait_for_words<GradientFacts>(facts_ + row, rows_, tag);
  }

 private:
  static constexpr std::uint32_t kPartWords = sizeof(Part) / 4, kFactWords = sizeof(GradientFacts) / 4;
  __device__ __forceinline__ std::uint64_t* parts(std::uint32_t row) const {
    return header_->tagged + row * kPartWords * gridDim.x;
  }
  template <class Value>
  static __device__ __forceinline__ void publish_words(std::uint64_t* at, std::uint32_t stride, const Value& value,
                                                       std::uint32_t tag) {
    std::uint32_t words[sizeof(Value) / 4];
    memcpy(words, &value, sizeof(Value));
#pragma unroll
    for (std::uint32_t i = 0; i < sizeof(Value) / 4; ++i) {
      store_word(at + i * stride, std::uint64_t{tag} << 32 | words[i]);
    }
  }
  template <class Value>
  static __device__ __forceinline__ Value wait_for_words(const std::uint64_t* at, std::uint32_t stride,
                                                         std::uint32_t tag) {
    Published<Value> found;
    do {
#pragma unroll
      for (std::uint32_t i = 0; i < sizeof(Value) / 4; ++i) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(found.words[i]) : "l"(at + i * stride) : "memory");
      }
    } while (!found.is_there(tag));
    return found.value();
  }

  WorkspaceHeader* const header_;
  std::uint64_t *const facts_, *const claims_;
  const std::uint32_t rows_;
};

// A row in shared memory: x and dy.
struct alignas(16) PlaceOfRow {
  std::uint32_t words[2], order[2];  // SharedRun, from the beginning of dynamic shared memory
};

#endif

// Few long rows, all at once: a block has its columns of each in shared memory. It publishes what it has found of the
// rows; some blocks merge what there is of a row each, and publish its facts. Then all write dx and the sums of their
// columns, which are finished. Of a row in a block, a warp takes parts of `slices.columns` to begin with. A block that
// has claimed several places fetches the rows' columns of each twice.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(kSpreadThreads, 1) norm_backward_spread(NormBackwardParams p) {
#if __CUDA_ARCH__ >= 900
  using Part = UncountedPart<kOp>;
  constexpr std::uint32_t kSize = Word<T>::kSize, kWarps = kSpreadThreads / 32, kOfWarp = 32 * kSize;
  static_assert(kWarps == 32 && kMaxSpreadRows <= kWarps);
  constexpr int kPlanes = kOp == NormOp::kLayerNorm ? 2 : 1;
  extern __shared__ __align__(128) std::uint32_t weights[];  // words; behind them rows
  __shared__ BulkBarrier landed[kMaxSpreadRows];
  __shared__ PlaceOfRow places[kMaxSpreadRows];
  __shared__ GradientFacts facts[kMaxSpreadRows + 1];  // the last: of no row
  __shared__ Part of_parts[kMaxSpreadParts], of_warps[kWarps];
  __shared__ std::uint32_t shared_tag, place_count;
  __shared__ std::uint16_t places_of_block[kMaxSpreadBlocks];
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const SpreadRows<Part> published(static_cast<WorkspaceHeader*>(p.workspace), p.rows);
  std::uint32_t begin = 0, count = 0, phase = 0;  // of the place at hand
  const auto at = [&](std::uint32_t row, int array) {
    return static_cast<const T*>(array == 0 ? p.x : p.dy) + std::uint64_t{row} * p.columns + begin;
  };
  const auto window_of = [&](std::uint32_t row, int array) {
    return Window<T>(at(row, array), count, at(0, array) - begin, at(p.rows, array) - begin);
  };
  const auto landing_of = [&](std::uint32_t row, int array) {
    return p.shares.share / kSize + (2 * row + array) * p.shares.stride * 4;  // words
  };
  const auto landing = [&](std::uint32_t row, int array) {
    return reinterpret_cast<unsigned char*>(weights + landing_of(row, array));
  };
  const auto store_sum = [&](int plane, std::uint32_t column, float sum) {
    T* const out = static_cast<T*>(plane == 0 ? p.dweight : p.dbias);
    if (out != nullptr) out[begin + column] = from_float<T>(sum);
  };
  const auto move_to = [&](std::uint32_t place) {
    begin = min(place * p.shares.share, p.columns), count = min(p.shares.share, p.columns - begin);
  };
  const auto run_of = [&](std::uint32_t row, int array) {
    return SharedRun<T>{weights + places[row].words[array], places[row].order[array]};
  };

  // Asks for the rows' columns of the place at hand, and reads the weights. Threads meet before and behind it.
  const auto fetch = [&] {
    if (lane == 0 && warp < p.rows) {
      make_barriers_visible();
      copy_all<2>(
          landed[warp], [&](int a) { return window_of(warp, a); }, [&](int a) { return landing(warp, a); });
#pragma unroll
      for (int a = 0; a < 2; ++a) {
        const std::uint32_t bytes = reinterpret_cast<std::uintptr_t>(at(warp, a)) % 16;
        places[warp].words[a] = landing_of(warp, a) + bytes / 4;
        places[warp].order[a] = bytes % 4 == 0 ? 0x3210 : 0x5432;
      }
    }
    if (warp == kWarps - 1) {  // only the first row and the last can have less around them than what is copied
#pragma unroll 1
      for (std::uint32_t row = 0; row < p.rows; row += max(p.rows - 1, 1u)) {
#pragma unroll 1
        for (int a = 0; a < 2; ++a) {
          const Window<T> window = window_of(row, a);
          if (window.is_cut()) window.copy_rest(landing(row, a), lane);
        }
      }
    }
    for (std::uint32_t i = thread; i * kSize < count; i += kSpreadThreads) {
      const T* const from = static_cast<const T*>(p.weight) + begin + i * kSize;
      float ones[kSize];
#pragma unroll
      for (float& one : ones) one = 1;
      weights[i] =
          p.weight != nullptr ? load_word(from, is_word(from), true, i * kSize + kSize <= count) : Word<T>::pack(ones);
    }
  };
  // dx and the sums of the place at hand. Warps that have the same columns have rows in turn.
  const auto write = [&] {
    const std::uint32_t groups = p.shares.blocks, column_warps = p.shares.share / kOfWarp;
    const std::uint32_t group = groups == 1 ? 0 : warp / column_warps;
    auto* const sums = reinterpret_cast<float*>(weights + landing_of(p.rows, 0));
#pragma unroll 1
    for (std::uint32_t of_warp = (warp - group * column_warps) * kOfWarp; of_warp < count && group < groups;
         of_warp += kWarps * kOfWarp) {
      const std::uint32_t first = of_warp + lane * kSize;
      ColumnWord<kOp, T> columns(weights[first / kSize]);
      T* const dx = static_cast<T*>(p.dx) + begin + first;
      const auto take_all = [&](auto store) {
        constexpr std::uint32_t kRows = 4;  // at once; those behind the last add nothing
#pragma unroll 1
        for (std::uint32_t row = group; row < p.rows; row += kRows * groups) {
          std::uint32_t x[kRows], dy[kRows];
          const auto is_there = [&](std::uint32_t r) { return row + r * groups < p.rows; };
#pragma unroll
          for (std::uint32_t r = 0; r < kRows; ++r) {
            const std::uint32_t mine = is_there(r) ? row + r * groups : row;
            x[r] = run_of(mine, 0).word(first), dy[r] = run_of(mine, 1).word(first);
          }
#pragma unroll
          for (std::uint32_t r = 0; r < kRows; ++r) {
            x[r] = columns.take(facts[is_there(r) ? row + r * groups : kMaxSpreadRows], is_there(r) ? x[r] : 0,
                                is_there(r) ? dy[r] : 0);
          }
#pragma unroll
          for (std::uint32_t r = 0; r < kRows; ++r) {
            if (is_there(r)) store(dx + std::uint64_t{row + r * groups} * p.columns, x[r]);
          }
        }
      };
      if (of_warp + kOfWarp <= count) {
        take_all([](T* to, std::uint32_t word) { store_words(to, word); });
      } else {
        take_all([&](T* to, std::uint32_t word) {
          if constexpr (kSize == 1) {
            if (first < count) *reinterpret_cast<std::uint32_t*>(to) = word;
          } else {
            store_halves(to, word, first < count, first + 1 < count);
          }
        });
      }
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
#pragma unroll
        for (std::uint32_t i = 0; i < kSize; ++i) {
          if (first + i >= count) break;
          if (groups == 1) {
            store_sum(plane, first + i, columns.sums(plane)[i]);
          } else {
            sums[(group * kPlanes + plane) * p.shares.share + first + i] = columns.sums(plane)[i];
          }
        }
      }
    }
    if (groups == 1) return;
    __syncthreads();
    for (std::uint32_t i = thread; i < count; i += kSpreadThreads) {
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        float sum = 0;
        for (std::uint32_t g = 0; g < groups; ++g) sum += sums[(g * kPlanes + plane) * p.shares.share + i];
        store_sum(plane, i, sum);
      }
    }
  };
  const auto counted = [](std::uint32_t n, std::uint32_t run, std::uint32_t all) {
    return static_cast<float>(count_of(n, run, all));
  };

  if (lane == 0 && warp < p.rows) landed[warp].initialize();
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t parts = (p.shares.share + p.slices.columns - 1) / p.slices.columns;  // of a row
  const bool is_last_thread = thread == kSpreadThreads - 1;
  std::uint32_t tag = 0, claimed;
  if (is_last_thread) tag = published.begin();
#pragma unroll 1
  for (std::uint32_t n = 0;; ++n) {
    const std::uint32_t place = n == 0 ? blockIdx.x : places_of_block[n];
    move_to(place);
    fetch();
    __syncthreads();
    // To begin with the last warp claims places meanwhile.
    if (n == 0 && is_last_thread) {
      facts[kMaxSpreadRows] = {};
      place_count = published.claim(tag, places_of_block), shared_tag = tag;
    }
    const std::uint32_t work_warps = n == 0 ? kWarps - 1 : kWarps;
    for (std::uint32_t i = warp; i < p.rows * parts && warp < work_warps; i += work_warps) {
      const std::uint32_t row = i / parts, index = i - row * parts;
      landed[row].wait(phase);
      const Part part = part_of_words<kOp, T>(run_of(row, 0), run_of(row, 1), weights, index * p.slices.columns,
                                              count_of(index, p.slices.columns, count));
      if (lane == 0) of_parts[i] = part;
    }
    __syncthreads();
    phase ^= 1;
    tag = shared_tag, claimed = place_count;
    if (claimed == 0) return;
    if (warp < p.rows) {
      Part part{};
      if (lane < parts) part = of_parts[warp * parts + lane];
      part = merge_lanes(part, counted(lane, p.slices.columns, count), static_cast<float>(count));
      if (lane == 0) published.publish_part(warp, place, part, tag);
    }
    if (n + 1 == claimed) break;
    __syncthreads();
  }
#pragma unroll 1
  for (std::uint32_t n = 0; n < claimed; ++n) {
    const std::uint32_t row = places_of_block[n];
    if (row >= p.rows) continue;
    Part part{};
    if (thread < gridDim.x) part = published.wait_for_part(row, thread, tag);
    part = merge_lanes(part, counted(thread, p.shares.share, p.columns), counted(warp, 32 * p.shares.share, p.columns));
    __syncthreads();
    if (lane == 0) of_warps[warp] = part;
    __syncthreads();
    if (warp == 0) {
      const auto all = static_cast<float>(p.columns);
      part = merge_lanes(of_warps[lane], counted(lane, 32 * p.shares.share, p.columns), all);
      if (lane == 0) published.publish_facts(row, facts_of(part, all, p.epsilon), tag);
    }
  }
  if (thread < p.rows) facts[thread] = published.wait_for_facts(thread, tag);
  __syncthreads();

#pragma unroll 1
  for (std::uint32_t n = 0; n < claimed; ++n) {
    if (claimed > 1) {
      __syncthreads();
      move_to(places_of_block[n]);
      fetch();
      __syncthreads();
      for (std::uint32_t row = 0; row < p.rows; ++row) landed[row].wait(phase);
      phase ^= 1;
    }
    write();
  }
#endif
}

template <NormOp kOp, class T>
NormBackwardKernel of_type() {
  return make_kernel<norm_backward_spread<kOp, T>, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kSpreadThreads}>();
}

}  // namespace

NormBackwardKernel norm_spread_sums(NormOp op, DType type) {
  return of_float_type(type, [=]<class T>() {
    return op == NormOp::kLayerNorm ? of_type<NormOp::kLayerNorm, T>() : of_type<NormOp::kRmsNorm, T>();
  });
}

}  // namespace cgrt::kernels
