// map: a function of one or more arrays, element by element, as fast as memory. For .cu files; plain.
//
//   struct Clamp {
//     float low, high;
//     __host__ __device__ float operator()(float x) const { return x < low ? low : x > high ? high : x; }
//   };
//   cgrt::kernels::MapKernel<Clamp, __half, __half> clamp_kernel() {
//     return cgrt::kernels::map_kernel<Clamp, __half, __half>();   // the output's type, then the inputs'
//   }
//
// map.h plans and launches it. Inputs are converted to the functor's parameters and its result to the
// output's type, rounded once. A functor may offer more than operator() and is then called so:
//
//   __half2 apply2(__half2 a, __half2 b) const                      pairs, where all arrays are fp16 (or bf16)
//   template <int kSize> Pack<Out, kSize> apply_pack(const Pack<In, kSize>&...) const    16 bytes of the widest
//
// Both beside operator(), which serves what is left at the ends of arrays. It is called on zeros too,
// whose results are dropped. A functor that the host can call runs on the simulator as it is; one that
// is __device__ alone says so: `static constexpr bool kDeviceOnly = true;`.
//
// Arrays are read and written 16 bytes at a time, wherever they begin: of those that begin elsewhere than the output,
// the two aligned packs that a pack lies in.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/map_shape.h"

namespace cgrt::kernels {

template <class T, int kSize>
struct alignas(sizeof(T) * kSize) Pack {
  T of[kSize];
};

namespace internal {

template <std::size_t kBytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = uint2;
};
template <>
struct BitsOf<16> {
  using Type = uint4;
};

template <int kSize, class T>
__device__ __forceinline__ Pack<T, kSize> load_pack(const T* from) {
  using Bits = typename BitsOf<sizeof(Pack<T, kSize>)>::Type;
  const Bits bits = *reinterpret_cast<const Bits*>(from);
  Pack<T, kSize> pack;
  std::memcpy(&pack, &bits, sizeof(pack));
  return pack;
}

template <class T, int kSize>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kSize>& pack) {
  using Bits = typename BitsOf<sizeof(pack)>::Type;
  Bits bits;
  std::memcpy(&bits, &pack, sizeof(pack));
  *reinterpret_cast<Bits*>(to) = bits;
}

// The same where the compiler does not see the alignment, and would split an assignment.
template <class T, int kSize>
__device__ __forceinline__ void store_whole_pack(T* to, const Pack<T, kSize>& pack) {
  using Bits = typename BitsOf<sizeof(pack)>::Type;
  Bits bits;
  std::memcpy(&bits, &pack, sizeof(pack));
  __stwb(reinterpret_cast<Bits*>(to), bits);
}

template <class T>
struct PairOf {};
template <>
struct PairOf<__half> {
  using Type = __half2;
  static __device__ __forceinline__ __half2 rounded(float a, float b) { return __floats2half2_rn(a, b); }
};
template <>
struct PairOf<__nv_bfloat16> {
  using Type = __nv_bfloat162;
  static __device__ __forceinline__ __nv_bfloat162 rounded(float a, float b) { return __floats2bfloat162_rn(a, b); }
};

template <class T, class Value>
__host__ __device__ __forceinline__ T rounded_to(Value value) {
  if constexpr (std::is_same_v<T, __half> && std::is_same_v<Value, float>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16> && std::is_same_v<Value, float>) {
    return __float2bfloat16_rn(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class T, int kSize>
__device__ __forceinline__ auto pair_of(const Pack<T, kSize>& pack, int i) {
  typename PairOf<T>::Type pair;
  pair.x = pack.of[i], pair.y = pack.of[i + 1];
  return pair;
}

template <class Out, int kSize, class Pair>
__device__ __forceinline__ void put_pair(Pack<Out, kSize>& pack, int i, Pair pair) {
  pack.of[i] = pair.x, pack.of[i + 1] = pair.y;
}

template <class F, class Out, class... In>
concept TakesPairs = (std::is_same_v<Out, In> && ...) &&
                     requires(const F& f, typename PairOf<Out>::Type out, typename PairOf<In>::Type... in) {
  out = f.apply2(in...);
};

template <class Out, int kSize, class F, class... In>
__device__ __forceinline__ Pack<Out, kSize> apply(const F& f, const Pack<In, kSize>&... in) {
  Pack<Out, kSize> out;
  if constexpr (requires { out = f.apply_pack(in...); }) {
    out = f.apply_pack(in...);
  } else if constexpr (kSize % 2 == 0 && TakesPairs<F, Out, In...>) {
#pragma unroll
    for (int i = 0; i < kSize; i += 2) put_pair(out, i, f.apply2(pair_of(in, i)...));
  } else if constexpr (kSize % 2 == 0 && requires { typename PairOf<Out>::Type; } &&
                       std::is_same_v<decltype(f(in.of[0]...)), float>) {
#pragma unroll
    for (int i = 0; i < kSize; i += 2) put_pair(out, i, PairOf<Out>::rounded(f(in.of[i]...), f(in.of[i + 1]...)));
  } else {
#pragma unroll
    for (int i = 0; i < kSize; ++i) out.of[i] = rounded_to<Out>(f(in.of[i]...));
  }
  return out;
}

// `words` from byte `bytes` on.
template <int kWords>
__device__ __forceinline__ void shift_words(std::uint32_t (&words)[2 * kWords], std::uint32_t bytes) {
  if constexpr (kWords > 2) {
#pragma unroll
    for (int i = 0; i + 2 < 2 * kWords; ++i) words[i] = (bytes & 8) != 0 ? words[i + 2] : words[i];
  }
  if constexpr (kWords > 1) {
#pragma unroll
    for (int i = 0; i + 1 < 2 * kWords; ++i) words[i] = (bytes & 4) != 0 ? words[i + 1] : words[i];
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], 8 * (bytes & 3));
}

// A pack that begins anywhere in an array: the two aligned packs that it lies in, or the one that it is. Several can be
// asked for before the first is taken.
template <class T, int kSize>
class ShiftedPack {
  using Bits = typename BitsOf<sizeof(Pack<T, kSize>)>::Type;
  static constexpr int kWords = sizeof(Bits) / 4;

 public:
  __device__ __forceinline__ explicit ShiftedPack(const T* from) {
    if constexpr (kWords == 0) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) single_.of[i] = from[i];
    } else {
      beyond_ = reinterpret_cast<std::uintptr_t>(from) % sizeof(Bits);
      const auto* const aligned = reinterpret_cast<const Bits*>(reinterpret_cast<const unsigned char*>(from) - beyond_);
      bits_[0] = aligned[0];
      bits_[1] = beyond_ != 0 ? aligned[1] : Bits{};
    }
  }
  __device__ __forceinline__ Pack<T, kSize> take() const {
    if constexpr (kWords == 0) {
      return single_;
    } else {
      std::uint32_t words[2 * kWords];
      std::memcpy(words, bits_, sizeof(words));
      shift_words<kWords>(words, beyond_);
      Pack<T, kSize> pack;
      std::memcpy(&pack, words, sizeof(pack));
      return pack;
    }
  }

 private:
  std::uint32_t beyond_;  // bytes
  Bits bits_[kWords == 0 ? 1 : 2];
  Pack<T, kSize> single_;
};

template <class T>
__device__ __forceinline__ std::uint32_t element_address(const T* pointer) {  // its lower bits
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer) / sizeof(T));
}
// Elements before the first of which packs go out, in whole 16 bytes: that of a line of 128 bytes, so that warps have
// whole lines, and behind a pack where `has_margin`.
template <int kPack, class T>
__device__ __forceinline__ std::uint32_t begin_of_packs(const T* out, bool has_margin) {
  constexpr std::uint32_t kLine = 128 / sizeof(T);
  const std::uint32_t head = (0 - element_address(out)) % kLine;
  return has_margin && head < kPack ? head + kLine : head;
}
template <int kSize, class T>
__device__ __forceinline__ std::uint64_t misalignment(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Pack<T, kSize>);
}

// What a kernel's threads do for out[i] = f(in[i]...), i < count: a pack each. `out` may be one of the inputs. Elements
// of no pack have the last threads of the last block, in warps that seldom have packs: neither waits for the other.
//
// Aligned arrays go straight: a small kernel is over in the time that a branch and its instruction fetch
// cost, and large ones are as fast as with more packs per thread or with persistent threads, or faster.
// Alignment is looked at here and not at plan time, so that new pointers never need another kernel.
template <class F, class Out, class... In>
__device__ __forceinline__ void map_elements(const F& f, std::uint64_t count, Out* out, const In*... in) {
  constexpr int kPack = kMapPack<Out, In...>;
  const std::uint64_t i = (std::uint64_t{blockIdx.x} * kMapBlock + threadIdx.x) * kPack;
  const bool is_aligned = (misalignment<kPack>(out) | ... | misalignment<kPack>(in)) == 0;
  if (is_aligned) [[likely]] {
    let_dependents_start();
    wait_for_predecessors();
    if (i + kPack <= count) [[likely]] {
      store_pack(out + i, apply<Out, kPack>(f, load_pack<kPack>(in + i)...));
      return;
    }
    const std::uint64_t edge = count - (kMapBlock - threadIdx.x);
    if (blockIdx.x == gridDim.x - 1 && edge >= count / kPack * kPack && edge < count) {
      out[edge] = rounded_to<Out>(f(in[edge]...));
    }
    return;
  }

  // Packs that are aligned in the output. Where an input's are not, the two that one lies in are inside of it, since a
  // pack is left out at either end.
  const bool are_alike = (((element_address(in) - element_address(out)) | ...) % kPack) == 0;
  const std::uint32_t margin = are_alike ? 0 : kPack, begin = begin_of_packs<kPack>(out, !are_alike);
  const std::uint64_t packs = count < begin + margin ? 0 : (count - begin - margin) / kPack, at = begin + i;
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t nth = kMapBlock - 1 - threadIdx.x;
  if (blockIdx.x == gridDim.x - 1 && nth < count - packs * kPack) {
    const std::uint64_t edge = nth < begin ? nth : packs * kPack + nth;
    out[edge] = rounded_to<Out>(f(in[edge]...));
  }
  if (i < packs * kPack) store_whole_pack(out + at, apply<Out, kPack>(f, ShiftedPack<In, kPack>(in + at).take()...));
}

template <class F, class Out, class... In>
__global__ void __launch_bounds__(kMapBlock) map(Out* out, F f, std::uint64_t count, const In*... in) {
  map_elements(f, count, out, in...);
}

template <class F, class Out, class... In>
void map_on_host(HostGrid, Out* out, F f, std::uint64_t count, const In*... in) {
  for (std::uint64_t i = 0; i < count; ++i) out[i] = rounded_to<Out>(f(in[i]...));
}

}  // namespace internal

template <class F, class Out, class... In>
static MapKernel<F, Out, In...> map_kernel() {
  static_assert(sizeof...(In) > 0 && sizeof(Out) <= 16 && ((sizeof(In) <= 16) && ...));
  static_assert(std::is_trivially_copyable_v<F>);
  constexpr KernelResources kResources{.registers = 40, .max_threads = kMapBlock};
  if constexpr (requires { F::kDeviceOnly; }) {
    return make_kernel<internal::map<F, Out, In...>, nullptr, kResources>();
  } else {
    return make_kernel<internal::map<F, Out, In...>, internal::map_on_host<F, Out, In...>, kResources>();
  }
}

}  // namespace cgrt::kernels
