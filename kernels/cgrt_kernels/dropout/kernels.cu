#include "cgrt_kernels/dropout/kernels.h"

#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/philox.h"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::kernels {
namespace {

// kPack elements that are moved at once where all of them are in the array, else one by one.
template <class T, int kPack>
struct Elements {
  Pack<T, kPack> pack;

  __device__ __forceinline__ void load(const T* from, std::uint64_t begin, std::uint64_t count) {
    if (begin + kPack <= count) {
      pack = internal::load_pack<kPack>(from + begin);
      return;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) pack.of[i] = begin + i < count ? from[begin + i] : from_float<T>(0);
  }
  __device__ __forceinline__ void store(T* to, std::uint64_t begin, std::uint64_t count) const {
    if (begin + kPack <= count) {
      internal::store_pack(to + begin, pack);
      return;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (begin + i < count) to[begin + i] = pack.of[i];
    }
  }
  __device__ __forceinline__ void apply(std::uint32_t kept, float scale) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      pack.of[i] = from_float<T>((kept >> i & 1) != 0 ? to_float(pack.of[i]) * scale : 0.0f);
    }
  }
};

// Which of kPack elements from a multiple of kPack on are kept, as bits.
template <int kPack>
__device__ __forceinline__ std::uint32_t draw(const RandomState& state, std::uint64_t begin, std::uint32_t threshold) {
  std::uint32_t kept = 0;
  if constexpr (kPack >= 4) {
#pragma unroll
    for (int i = 0; i < kPack; i += 4) {
      const Random4 numbers = random4(state.seed, state.offset + (begin + i) / 4);
#pragma unroll
      for (int k = 0; k < 4; ++k) kept |= (numbers.of[k] >= threshold ? 1u : 0u) << (i + k);
    }
  } else {
    const Random4 numbers = random4(state.seed, state.offset + begin / 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) kept |= (numbers.of[k] >= threshold ? 1u : 0u) << k;
    kept = kept >> (begin % 4) & ((1u << kPack) - 1);
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

// The state as it is for all blocks of the launch: the one that has read it last moves it on.
__device__ __forceinline__ RandomState take_state(const DropoutParams& p) {
  __shared__ std::uint64_t seed, offset;
  if (threadIdx.x == 0) {
    seed = p.args.state->seed, offset = p.args.state->offset;
    __threadfence();
    if (atomicAdd(&p.args.state->arrived, 1u) == gridDim.x - 1) {
      p.args.state->offset = offset + dropout_draws(p.count);
      p.args.state->arrived = 0;
    }
  }
  __syncthreads();
  return {.seed = seed, .offset = offset};
}

// Blocks go through the array together, kDropoutPacks packs of each thread at a time.
template <class T, int kPack, DropoutOp kOp>
__global__ void __launch_bounds__(kDropoutBlock) dropout(const __grid_constant__ DropoutParams p) {
  constexpr int kTile = kDropoutBlock * kDropoutPacks;  // packs
  const T* const in = static_cast<const T*>(p.args.in);
  T* const out = static_cast<T*>(p.args.out);
  wait_for_predecessors();
  let_dependents_start();
  RandomState state;
  if constexpr (kOp == DropoutOp::kForward) state = take_state(p);
  for (std::uint64_t tile = std::uint64_t{blockIdx.x} * kTile; tile * kPack < p.count;
       tile += std::uint64_t{gridDim.x} * kTile) {
    const std::uint64_t first = (tile + threadIdx.x) * kPack;
    Elements<T, kPack> elements[kDropoutPacks];
#pragma unroll
    for (int i = 0; i < kDropoutPacks; ++i) elements[i].load(in, first + i * kDropoutBlock * kPack, p.count);
#pragma unroll
    for (int i = 0; i < kDropoutPacks; ++i) {
      const std::uint64_t begin = first + i * kDropoutBlock * kPack;
      std::uint32_t kept = 0;
      if constexpr (kOp == DropoutOp::kForward) {
        kept = within(draw<kPack>(state, begin, p.threshold), begin, p.count);
        store_bits<kPack>(p.args.mask, begin, p.count, kept);
      } else if (begin < p.count) {
        kept = static_cast<std::uint32_t>(p.args.mask[begin / 8]) >> (begin % 8);
      }
      elements[i].apply(kept, p.scale);
      elements[i].store(out, begin, p.count);
    }
  }
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

template <class T, int kPack>
Kernel<DropoutParams> of_pack(DropoutOp op) {
  constexpr KernelResources kResources{.registers = 32, .max_threads = kDropoutBlock};
  constexpr auto kForward = DropoutOp::kForward, kBackward = DropoutOp::kBackward;
  if (op == kBackward) {
    return make_kernel<dropout<T, kPack, kBackward>, dropout_on_host<T, kBackward>, kResources>();
  }
  return make_kernel<dropout<T, kPack, kForward>, dropout_on_host<T, kForward>, kResources>();
}

}  // namespace

Kernel<DropoutParams> dropout_kernel(DropoutOp op, DType type, std::uint32_t pack) {
  return of_float_type(type, [=]<class T>() {
    constexpr int kMax = kPackSize<T>;
    switch (pack / sizeof(T)) {
      case kMax: return of_pack<T, kMax>(op);
      case kMax / 2: return of_pack<T, kMax / 2>(op);
      case 1: break;
      default: return of_pack<T, 2>(op);  // of 16 bits
    }
    return of_pack<T, 1>(op);
  });
}

}  // namespace cgrt::kernels
