#include "cgrt_kernels/dropout/kernels.h"

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/philox.h"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/random_state.cuh"
#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::kernels {
namespace {

// The first `count` elements of a pack; zeros behind them.
template <int kSize, class T>
__device__ __forceinline__ Pack<T, kSize> load_some(const T* from, std::uint64_t count) {
  Pack<T, kSize> pack;
#pragma unroll
  for (int i = 0; i < kSize; ++i) pack.of[i] = static_cast<unsigned>(i) < count ? from[i] : from_float<T>(0.0f);
  return pack;
}

template <class T, int kSize>
__device__ __forceinline__ void store_some(T* to, const Pack<T, kSize>& pack, std::uint64_t count) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (static_cast<unsigned>(i) < count) to[i] = pack.of[i];
  }
}

// 16 bytes of elements, from a multiple of as many elements on.
template <class T, Alignment kAlignment>
struct Elements {
  static constexpr int kPack = kPackSize<T>;
  Pack<T, kPack> pack;

  __device__ __forceinline__ void load(const T* from, std::uint64_t begin, std::uint64_t count) {
    if constexpr (kAlignment == Alignment::kAligned) {
      if (begin + kPack <= count) {
        pack = internal::load_pack<kPack>(from + begin);
        return;
      }
    } else if (begin >= kPack && begin + 2 * kPack <= count) {  // both aligned packs that it lies in are in the array
      pack = internal::ShiftedPack<T, kPack>(from + begin).take();
      return;
    }
    pack = load_some<kPack>(from + begin, begin < count ? count - begin : 0);
  }

  // For all threads of a warp, whose packs follow each other.
  __device__ __forceinline__ void store(T* to, std::uint64_t begin, std::uint64_t count) const {
    if constexpr (kAlignment == Alignment::kAligned) {
      store_aligned(to, begin, count);
    } else {
      store_shifted(to, begin, count);
    }
  }
  __device__ __forceinline__ void store_aligned(T* to, std::uint64_t begin, std::uint64_t count) const {
    if (begin + kPack <= count) {
      internal::store_whole_pack(to + begin, pack);
    } else if (begin < count) {
      store_some(to + begin, pack, count - begin);
    }
  }

  __device__ __forceinline__ void apply(std::uint32_t kept, float scale) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      pack.of[i] = from_float<T>((kept >> i & 1) != 0 ? to_float(pack.of[i]) * scale : 0.0f);
    }
  }

 private:
  // A thread stores the aligned 16 bytes in which its pack begins: the end of the pack before, and its own begin. What
  // no thread has so, at the ends of a warp's packs and of the array, is stored by element.
  __device__ __forceinline__ void store_shifted(T* to, std::uint64_t begin, std::uint64_t count) const {
    const bool is_whole = begin + kPack <= count;
    const std::uint32_t beyond = reinterpret_cast<std::uintptr_t>(to) % 16, lane = threadIdx.x % 32;
    std::uint32_t words[8];
    std::memcpy(words + 4, &pack, 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = __shfl_up_sync(~0u, words[4 + i], 1);
    internal::shift_words<4>(words, (16 - beyond) % 16);
    const bool has_begin = is_whole && (lane != 0 || beyond == 0);
    if (has_begin) {
      const uint4 chunk = beyond != 0 ? uint4{words[0], words[1], words[2], words[3]} : own_words();
      *reinterpret_cast<uint4*>(reinterpret_cast<unsigned char*>(to + begin) - beyond) = chunk;
    }
    const bool has_end = (lane != 31 && begin + 2 * kPack <= count) || (beyond == 0 && is_whole);
    if (has_begin && has_end) return;
    const int own = static_cast<int>((16 - beyond) / sizeof(T));  // in the 16 bytes in which the pack begins
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (!(i < own ? has_begin : has_end) && begin + i < count) to[begin + i] = pack.of[i];
    }
  }
  __device__ __forceinline__ uint4 own_words() const {
    uint4 words;
    std::memcpy(&words, &pack, sizeof(words));
    return words;
  }
};

// Which of kPack elements from a multiple of kPack on are kept, as bits.
template <int kPack>
__device__ __forceinline__ std::uint32_t draw(const RandomState& state, std::uint64_t begin, std::uint32_t threshold) {
  std::uint32_t kept = 0;
#pragma unroll
  for (int i = 0; i < kPack; i += 4) {
    const Random4 numbers = random4(state.seed, state.offset + (begin + i) / 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) kept |= (numbers.of[k] >= threshold ? 1u : 0u) << (i + k);
  }
  return kept;
}

// The bits of a warp's packs, which follow each other, as bytes. For all threads of a warp.
template <int kPack>
__device__ __forceinline__ void store_bits(std::uint8_t* mask, std::uint64_t begin, std::uint64_t count,
                                           std::uint32_t kept) {
  constexpr int kSharers = 8 / kPack;  // of a byte
  const std::uint32_t sharer = threadIdx.x % kSharers;
  std::uint32_t byte = kept << (sharer * kPack);
#pragma unroll
  for (int distance = 1; distance < kSharers; distance *= 2) byte |= __shfl_xor_sync(~0u, byte, distance);
  if (sharer == 0 && begin < count) mask[begin / 8] = static_cast<std::uint8_t>(byte);
}

// Of the elements of the last byte, those that the array has.
__device__ __forceinline__ std::uint32_t within(std::uint32_t kept, std::uint64_t begin, std::uint64_t count) {
  if (begin >= count) return 0;
  return count - begin < 8 ? kept & ((1u << (count - begin)) - 1) : kept;
}

// Blocks go through the array together, kPacks packs of each thread at a time.
template <class T, Alignment kAlignment, int kPacks>
__global__ void __launch_bounds__(kDropoutBlock) dropout(const __grid_constant__ DropoutParams p) {
  constexpr int kPack = kPackSize<T>, kTile = kDropoutBlock * kPacks;  // a tile in packs
  const T* const in = static_cast<const T*>(p.args.in);
  T* const out = static_cast<T*>(p.args.out);
  wait_for_predecessors();
  let_dependents_start();
  RandomState state;
  state.seed = p.args.state->seed, state.offset = p.args.state->offset;
  for (std::uint64_t tile = std::uint64_t{blockIdx.x} * kTile; tile * kPack < p.count;
       tile += std::uint64_t{gridDim.x} * kTile) {
    const std::uint64_t first = (tile + threadIdx.x) * kPack;
    Elements<T, kAlignment> elements[kPacks];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) elements[i].load(in, first + i * kDropoutBlock * kPack, p.count);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const std::uint64_t begin = first + i * kDropoutBlock * kPack;
      const std::uint32_t kept = within(draw<kPack>(state, begin, p.threshold), begin, p.count);
      store_bits<kPack>(p.args.mask, begin, p.count, kept);
      elements[i].apply(kept, p.scale);
      elements[i].store(out, begin, p.count);
    }
  }
  leave_state(p.args.state, state.offset, dropout_draws(p.count));
}

// Bits of a mask from element `begin` on, behind which there are 8 elements and more.
template <int kPack>
__device__ __forceinline__ std::uint32_t load_bits(const std::uint8_t* mask, std::uint64_t begin) {
  std::uint32_t bits = mask[begin / 8];
  const std::uint32_t shift = begin % 8;
  if (shift + kPack > 8) bits |= std::uint32_t{mask[begin / 8 + 1]} << 8;
  return bits >> shift;
}

template <class T>
__device__ __forceinline__ void apply_to_element(const DropoutParams& p, std::uint64_t i) {
  const bool is_kept = (p.args.mask[i / 8] >> i % 8 & 1) != 0;
  const T value = static_cast<const T*>(p.args.in)[i];
  static_cast<T*>(p.args.out)[i] = from_float<T>(is_kept ? to_float(value) * p.scale : 0.0f);
}

// A pack a thread: large arrays are faster so than with more packs or with persistent blocks, and a small kernel is
// over in the time that its instructions take to arrive. Of elements that are no pack each has a thread behind those
// of packs, as they would wait for each other in one.
template <class T>
__global__ void __launch_bounds__(kDropoutBlock) dropout_backward(const __grid_constant__ DropoutParams p) {
  constexpr int kPack = kPackSize<T>;
  const std::uint64_t pack = std::uint64_t{blockIdx.x} * kDropoutBlock + threadIdx.x, packs = p.count / kPack;
  wait_for_predecessors();
  let_dependents_start();
  if (pack < packs) [[likely]] {
    const std::uint64_t begin = pack * kPack;
    Elements<T, Alignment::kAligned> elements;
    elements.pack = internal::load_pack<kPack>(static_cast<const T*>(p.args.in) + begin);
    elements.apply(p.args.mask[begin / 8] >> begin % 8, p.scale);
    internal::store_whole_pack(static_cast<T*>(p.args.out) + begin, elements.pack);
    return;
  }
  const std::uint64_t i = packs * kPack + (pack - packs);
  if (i < p.count) apply_to_element<T>(p, i);
}

// Packs that are aligned in the output, of which warps have whole lines. A pack is left out at either end: the two that
// one lies in are inside of the input then.
template <class T>
__global__ void __launch_bounds__(kDropoutBlock) dropout_backward_unaligned(const __grid_constant__ DropoutParams p) {
  constexpr int kPack = kPackSize<T>;
  T* const out = static_cast<T*>(p.args.out);
  const std::uint64_t head = internal::begin_of_packs<kPack>(out, true);
  const std::uint64_t packs = p.count < head + kPack ? 0 : (p.count - head - kPack) / kPack;
  const std::uint64_t pack = std::uint64_t{blockIdx.x} * kDropoutBlock + threadIdx.x;
  wait_for_predecessors();
  let_dependents_start();
  if (pack < packs) {
    const std::uint64_t begin = head + pack * kPack;
    const internal::ShiftedPack<T, kPack> in(static_cast<const T*>(p.args.in) + begin);
    const std::uint32_t kept = load_bits<kPack>(p.args.mask, begin);
    Elements<T, Alignment::kAligned> elements{in.take()};
    elements.apply(kept, p.scale);
    internal::store_whole_pack(out + begin, elements.pack);
    return;
  }
  const std::uint64_t single = pack - packs, i = single < head ? single : packs * kPack + single;
  if (i < p.count) apply_to_element<T>(p, i);
}

template <class T, DropoutOp kOp>
void dropout_on_host(HostGrid, DropoutParams p) {
  const T* const in = static_cast<const T*>(p.args.in);
  T* const out = static_cast<T*>(p.args.out);
  for (std::uint64_t begin = 0; begin < p.count; begin += 8) {
    std::uint8_t& byte = p.args.mask[begin / 8];
    const std::uint64_t end = begin + 8 < p.count ? begin + 8 : p.count;
    if constexpr (kOp == DropoutOp::kForward) {
      byte = 0;
      for (std::uint64_t i = begin; i < end; ++i) {
        const Random4 numbers = random4(p.args.state->seed, p.args.state->offset + i / 4);
        if (numbers.of[i % 4] >= p.threshold) byte = static_cast<std::uint8_t>(byte | 1u << (i - begin));
      }
    }
    for (std::uint64_t i = begin; i < end; ++i) {
      out[i] = from_float<T>((byte >> (i - begin) & 1) != 0 ? to_float(in[i]) * p.scale : 0.0f);
    }
  }
  if constexpr (kOp == DropoutOp::kForward) p.args.state->offset += dropout_draws(p.count);
}

template <class T, Alignment kAlignment>
Kernel<DropoutParams> of_op(DropoutOp op, bool is_small) {
  constexpr KernelResources kResources{.registers = 50, .max_threads = kDropoutBlock};
  constexpr auto kForward = dropout_on_host<T, DropoutOp::kForward>,
                 kBackward = dropout_on_host<T, DropoutOp::kBackward>;
  if (op == DropoutOp::kForward) {
    return is_small ? make_kernel<dropout<T, kAlignment, 1>, kForward, kResources>()
                    : make_kernel<dropout<T, kAlignment, kDropoutPacks>, kForward, kResources>();
  }
  return kAlignment == Alignment::kAligned ? make_kernel<dropout_backward<T>, kBackward, kResources>()
                                           : make_kernel<dropout_backward_unaligned<T>, kBackward, kResources>();
}

}  // namespace

Kernel<DropoutParams> dropout_kernel(DropoutOp op, DType type, Alignment alignment, bool is_small) {
  return of_float_type(type, alignment,
                       [=]<class T, Alignment kAlignment>() { return of_op<T, kAlignment>(op, is_small); });
}

}  // namespace cgrt::kernels
