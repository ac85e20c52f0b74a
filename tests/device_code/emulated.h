// What device code that emulate.py has rewritten needs on the CPU: CUDA's variables, functions and PTX, as for compute
// capability 8.0. Kernels run when the simulator replays them: threads of a block as fibers, which change places where
// they meet, blocks one after the other. So there is no kernel here whose blocks wait for later ones (`SlicedRows`,
// which keep their host body), and none with clusters. Not thread-safe: one launch at a time.
#pragma once

#define __grid_constant__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __forceinline__
#define __forceinline__ inline
#undef __noinline__
#define __noinline__
#define CGRT_EMULATED_ARCH 800

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cgrt/launch/kernel.h"

struct DeviceIndex {
  unsigned x = 0, y = 0, z = 0;
};
extern DeviceIndex threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

// body(context) in each thread of the grid; aborts when threads wait for what does not come.
void run(const cgrt::HostGrid& grid, void (*body)(void*), void* context);

// For a thread: until all of its warp, or of its block, are here; and before it looks again.
void meet_warp();
void meet_block();
void yield();

void* dynamic_shared();
unsigned lane();
constexpr std::size_t kSlotBytes = 24;
unsigned char* slot(unsigned lane);  // of each lane of the warp

// all(value of each lane), between two meetings.
template <class T, class All>
auto among_lanes(T value, All all) {
  static_assert(sizeof(T) <= kSlotBytes);
  std::memcpy(slot(lane()), &value, sizeof(T));
  meet_warp();
  const auto result = all([](unsigned of) {
    T there;
    std::memcpy(&there, slot(of % 32), sizeof(T));
    return there;
  });
  meet_warp();
  return result;
}
template <class T>
T of_lane(T value, unsigned other) {
  return among_lanes(value, [=](auto value_of) { return value_of(other); });
}
template <class T, class Is>
unsigned mask_of(T value, Is is) {
  return among_lanes(value, [=](auto value_of) {
    unsigned mask = 0;
    for (unsigned i = 0; i < 32; ++i) mask |= is(value_of(i)) ? 1u << i : 0u;
    return mask;
  });
}

template <auto kKernel, class Function>
struct OnFibers;
template <auto kKernel, class... Args>
struct OnFibers<kKernel, void (*)(Args...)> {
  static void body(cgrt::HostGrid grid, Args... args) {
    auto call = [&] { kKernel(args...); };
    run(
        grid, [](void* context) { (*static_cast<decltype(call)*>(context))(); }, &call);
  }
};

// In place of cgrt::make_kernel.
template <auto kKernel, auto kHost, cgrt::KernelResources kResources = cgrt::KernelResources{}>
auto kernel() {
  constexpr bool kWaits = std::string_view(__PRETTY_FUNCTION__).find("SlicedRows") != std::string_view::npos;
  if constexpr (kWaits) {
    return cgrt::make_kernel<kKernel, kHost, kResources>();
  } else {
    return cgrt::make_kernel<kKernel, &OnFibers<kKernel, decltype(kKernel)>::body, kResources>();
  }
}

// PTX. An address is a pointer, or a number: of shared memory, one of 32 bits.
template <class T, class Address>
T& at(Address address) {
  if constexpr (std::is_pointer_v<Address>) {
    return *reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address));
  } else {
    return *reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
  }
}
using U32 = std::uint32_t;
using U64 = std::uint64_t;

template <class Address>
void ptx_st_global_v4_b32(Address to, U32 a, U32 b, U32 c, U32 d) {
  at<uint4>(to) = {a, b, c, d};
}
template <class Address>
void ptx_ld_global_v4_b32(U32& a, U32& b, U32& c, U32& d, Address from) {
  const uint4 words = at<uint4>(from);
  a = words.x, b = words.y, c = words.z, d = words.w;
}
template <class Address>
void ptx_ld_global_L1_no_allocate_v4_b32(U32& a, U32& b, U32& c, U32& d, Address from) {
  ptx_ld_global_v4_b32(a, b, c, d, from);
}
template <class To, class From>
void ptx_cp_async_cg_shared_global(To to, From from) {
  at<uint4>(to) = at<const uint4>(from);
}
template <class To, class From>
void ptx_cp_async_cg_shared_global(To to, From from, int bytes) {
  at<uint4>(to) = bytes == 0 ? uint4{} : at<const uint4>(from);
}
template <class To, class From>
void ptx_cp_async_ca_shared_global(To to, From from) {
  at<U32>(to) = at<const U32>(from);
}
inline void ptx_cp_async_commit_group() {}
inline void ptx_cp_async_wait_group(int) {}
template <class Address>
void ptx_prefetch_global_L2(Address) {}
inline void ptx_fence_acq_rel_gpu() {}
template <class Address>
void ptx_st_relaxed_gpu_global_u64(Address to, U64 value) {
  at<U64>(to) = value;
}
template <class Value, class Address>
void ptx_ld_relaxed_gpu_global_u64(Value& value, Address from) {
  yield();
  value = at<const U64>(from);
}
template <class Value, class Address>
void ptx_ld_acquire_gpu_global_u32(Value& value, Address from) {
  yield();
  value = at<const U32>(from);
}
template <class Address>
void ptx_atom_relaxed_gpu_global_inc_u32(U32& old, Address to, U32 last) {
  U32& counter = at<U32>(to);
  old = counter;
  counter = old >= last ? 0 : old + 1;
}
template <class Address>
void ptx_red_shared_add_u32(Address to) {
  ++at<U32>(to);
}
template <class Address>
void ptx_ld_shared_u32(U32& value, Address from) {
  value = at<U32>(from);
}
// Elements of 16 bits, row and column, of matrix `i`, whose rows begin at the addresses that lanes have.
template <class Address, class Element>
void load_matrices(U32 (&matrices)[4], Address row, Element element) {
  among_lanes(row, [&](auto row_of) {
    for (unsigned i = 0; i < 4; ++i) {
      std::uint16_t pair[2];
      for (unsigned j = 0; j < 2; ++j) {
        const auto [matrix_row, column] = element(j);
        const uint4 words = at<const uint4>(row_of(8 * i + matrix_row));
        std::memcpy(&pair[j], reinterpret_cast<const unsigned char*>(&words) + 2 * column, 2);
      }
      std::memcpy(&matrices[i], pair, 4);
    }
    return 0;
  });
}
template <class Address>
void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(U32& a, U32& b, U32& c, U32& d, Address row) {
  U32 matrices[4];
  load_matrices(matrices, row, [](unsigned j) { return std::pair(lane() / 4, lane() % 4 * 2 + j); });
  a = matrices[0], b = matrices[1], c = matrices[2], d = matrices[3];
}
template <class Address>
void ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(U32& a, U32& b, U32& c, U32& d, Address row) {
  U32 matrices[4];
  load_matrices(matrices, row, [](unsigned j) { return std::pair(lane() % 4 * 2 + j, lane() / 4); });
  a = matrices[0], b = matrices[1], c = matrices[2], d = matrices[3];
}
struct Barrier {
  std::uint16_t arrivals, left;
  U32 phase;
};
template <class Address>
void ptx_mbarrier_init_shared_b64(Address barrier, U32 arrivals) {
  const auto count = static_cast<std::uint16_t>(arrivals);
  at<Barrier>(barrier) = {count, count, 0};
}
template <class Address>
void ptx_mbarrier_arrive_shared_b64(Address address) {
  Barrier& barrier = at<Barrier>(address);
  if (--barrier.left == 0) barrier.left = barrier.arrivals, barrier.phase ^= 1;
}
template <class Address>
void ptx_mbarrier_wait(Address barrier, U32 phase) {
  while (at<Barrier>(barrier).phase == phase) yield();
}
// As exact as the device's, but not the same bits.
inline void ptx_ex2_approx_ftz_f32(float& result, float x) { result = x < -126 ? 0 : std::exp2(x); }
inline void ptx_div_approx_ftz_f32(float& result, float x, float y) {
  result = std::abs(y) > 0x1p126f && !std::isinf(x) ? 0 * x : x / y;
}
inline void ptx_lop3_b32(U32& result, U32 a, U32 b, U32 c) { result = (a & b) | c; }  // with 0xea
// Lane 4 g + t has of a: rows g and g + 8, columns 2 t, 2 t + 1 and those plus 8; of b: rows as a's columns, column g;
// of d: rows g and g + 8, columns 2 t and 2 t + 1.
template <class Pair>
void mma_m16n8k16(float* const (&d)[4], std::array<U32, 6> words) {  // of a and b
  const unsigned g = lane() / 4, t = lane() % 4;
  const auto put = [](float* to, U32 word) {
    Pair two;
    std::memcpy(static_cast<void*>(&two), &word, sizeof(word));
    to[0] = static_cast<float>(two.x), to[1] = static_cast<float>(two.y);
  };
  float left[2][16], right[2][16];
  among_lanes(words, [&](auto value_of) {
    for (unsigned i = 0; i < 4; ++i) {
      const auto a = value_of(4 * g + i);
      for (unsigned word = 0; word < 4; ++word) put(&left[word % 2][2 * i + word / 2 * 8], a[word]);
      for (unsigned column = 0; column < 2; ++column) {
        const auto b = value_of(4 * (2 * t + column) + i);
        put(&right[column][2 * i], b[4]), put(&right[column][2 * i + 8], b[5]);
      }
    }
    return 0;
  });
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) *d[i] += left[i / 2][k] * right[i % 2][k];
  }
}
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float& d0, float& d1, float& d2, float& d3, U32 a0,
                                                                  U32 a1, U32 a2, U32 a3, U32 b0, U32 b1) {
  mma_m16n8k16<__half2>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3, b0, b1});
}
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float& d0, float& d1, float& d2, float& d3, U32 a0,
                                                                    U32 a1, U32 a2, U32 a3, U32 b0, U32 b1) {
  mma_m16n8k16<__nv_bfloat162>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3, b0, b1});
}
inline void ptx_max_NaN_f32(float& result, float a, float b) { result = a != a ? a : b != b || a < b ? b : a; }
inline void ptx_min_NaN_f32(float& result, float a, float b) { result = a != a ? a : b != b || b < a ? b : a; }

}  // namespace emulated

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::of_lane(value, emulated::lane() ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  const auto group = static_cast<unsigned>(width);
  return emulated::of_lane(value, emulated::lane() / group * group + static_cast<unsigned>(lane) % group);
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned by, unsigned width = 32) {
  const unsigned lane = emulated::lane();
  return emulated::of_lane(value, lane % width >= by ? lane - by : lane);
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned by, unsigned width = 32) {
  const unsigned lane = emulated::lane();
  return emulated::of_lane(value, lane % width + by < width ? lane + by : lane);
}
inline unsigned __reduce_max_sync(unsigned all, unsigned value) {
  for (int distance = 16; distance > 0; distance /= 2) value = std::max(value, __shfl_xor_sync(all, value, distance));
  return value;
}
inline unsigned __reduce_min_sync(unsigned all, unsigned value) { return ~__reduce_max_sync(all, ~value); }
inline unsigned __ballot_sync(unsigned, int value) {
  return emulated::mask_of(value, [](int there) { return there != 0; });
}
inline int __any_sync(unsigned all, int value) { return __ballot_sync(all, value) != 0 ? 1 : 0; }
inline int __all_sync(unsigned all, int value) { return __ballot_sync(all, value) == ~0u ? 1 : 0; }
template <class T>
unsigned __match_any_sync(unsigned, T value) {
  return emulated::mask_of(value, [=](T there) { return there == value; });
}
inline void __syncwarp(unsigned = ~0u) { emulated::meet_warp(); }
inline void __syncthreads() { emulated::meet_block(); }
inline int __syncthreads_count(int value) {
  static int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  count += value != 0 ? 1 : 0;
  __syncthreads();
  const int result = count;
  __syncthreads();
  return result;
}
inline void __threadfence() {}
inline long long clock64() {
  static long long now;
  return now += 100;
}

inline std::uint32_t __funnelshift_r(std::uint32_t low, std::uint32_t high, std::uint32_t shift) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
inline std::uint32_t __umulhi(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
inline std::uint64_t __umul64hi(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Product>(a) * b >> 64);
}
inline std::uint32_t __byte_perm(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<std::uint32_t>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return result;
}
inline int __clz(int value) { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __ffs(int value) { return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1; }
inline int __popc(unsigned value) { return std::popcount(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __int_as_float(int value) { return std::bit_cast<float>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long value) { return std::bit_cast<double>(value); }
inline unsigned __float2uint_rn(float value) {
  return value > 0 ? static_cast<unsigned>(std::min(std::rint(static_cast<double>(value)), 4294967295.0)) : 0;
}
inline float __logf(float value) { return std::log(value); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float rsqrtf(float value) { return 1 / std::sqrt(value); }

template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
T __ldcs(const T* from) {
  return *from;
}
template <class T>
void __stwb(T* to, T value) {
  *to = value;
}
template <class T>
void __stcs(T* to, T value) {
  *to = value;
}
template <class T>
T atomicAdd(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  *to = static_cast<T>(old + value);
  return old;
}
template <class T>
T atomicSub(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  *to = static_cast<T>(old - value);
  return old;
}
inline std::size_t __cvta_generic_to_shared(const void* pointer) { return reinterpret_cast<std::size_t>(pointer); }
inline std::size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<std::size_t>(pointer); }

using std::max;
using std::min;
template <class A, class B>
requires(!std::is_same_v<A, B> && std::is_arithmetic_v<A> && std::is_arithmetic_v<B>) auto min(A a, B b) {
  return std::min<std::common_type_t<A, B>>(a, b);
}
template <class A, class B>
requires(!std::is_same_v<A, B> && std::is_arithmetic_v<A> && std::is_arithmetic_v<B>) auto max(A a, B b) {
  return std::max<std::common_type_t<A, B>>(a, b);
}
