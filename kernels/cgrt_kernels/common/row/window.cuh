// Bulk copies of runs of elements that need not be aligned: what is copied are the whole 16 bytes around a run, which
// then lies in shared memory as it lies in global memory, as far behind a multiple of 16 bytes. Of the 16 bytes that
// reach out of the array, threads copy single elements.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"

namespace cgrt::kernels {

// Of `count` elements at `from`, in an array from `first` to `last`.
template <class T>
struct Window {
  const T* from;
  std::uintptr_t low, high;     // what is copied
  std::uint32_t count, before;  // elements of the first 16 bytes that are not of the run
  bool is_cut_before, is_cut_behind;

  __device__ __forceinline__ Window(const T* from_, std::uint32_t count_, const T* first, const T* last)
      : from(from_), count(count_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(from), end = reinterpret_cast<std::uintptr_t>(from + count);
    low = begin / 16 * 16, high = (end + 15) / 16 * 16;
    before = static_cast<std::uint32_t>(begin - low) / sizeof(T);
    is_cut_before = low < reinterpret_cast<std::uintptr_t>(first);
    is_cut_behind = high > reinterpret_cast<std::uintptr_t>(last);
    if (is_cut_before) low += 16;
    if (is_cut_behind) high -= 16;
  }
  __device__ __forceinline__ bool is_cut() const { return is_cut_before || is_cut_behind; }
  __device__ __forceinline__ std::uint32_t bytes() const {
    return high > low ? static_cast<std::uint32_t>(high - low) : 0;
  }
  // Where the run begins, in what was copied to `landing`.
  __device__ __forceinline__ T* in(unsigned char* landing) const { return reinterpret_cast<T*>(landing) + before; }

#if __CUDA_ARCH__ >= 900
  // bytes() of them must be expected.
  __device__ __forceinline__ void copy(BulkBarrier& barrier, unsigned char* landing) const {
    if (bytes() != 0) barrier.copy(landing + (is_cut_before ? 16 : 0), reinterpret_cast<const void*>(low), bytes());
  }
#endif
  // What a cut window leaves out, by threads from 0 on, who meet others before these read it.
  __device__ __forceinline__ void copy_rest(unsigned char* landing, std::uint32_t thread) const {
    constexpr std::uint32_t kSize = 16 / sizeof(T);
    if (thread >= min(kSize, count)) return;
    // As what it is: nvcc 13.0 takes `from` for shared memory in some kernels, as `landing` is.
    const auto load = [this](std::uint32_t i) { return __ldcg(from + i); };
    if (is_cut_before) in(landing)[thread] = load(thread);
    if (is_cut_behind) in(landing)[count - 1 - thread] = load(count - 1 - thread);
  }
};

#if __CUDA_ARCH__ >= 900

// Where the runs of kArrays arrays begin whose copies have landed; window_of(array) and landing_of(array) give each.
// What cut windows leave out is there, too: the block meets then.
template <class T, int kArrays, class WindowOf, class LandingOf>
__device__ __forceinline__ void begins_of(const T* (&at)[kArrays], WindowOf window_of, LandingOf landing_of) {
  bool is_cut = false;
#pragma unroll
  for (int a = 0; a < kArrays; ++a) {
    const Window<T> window = window_of(a);
    at[a] = window.in(landing_of(a));
    is_cut |= window.is_cut();
  }
  if (!is_cut) return;
#pragma unroll
  for (int a = 0; a < kArrays; ++a) window_of(a).copy_rest(landing_of(a), threadIdx.x);
  make_barriers_visible();  // stores before later bulk copies to the same place
  __syncthreads();
}

// Expects and asks for the runs of kArrays arrays.
template <int kArrays, class WindowOf, class LandingOf>
__device__ __forceinline__ void copy_all(BulkBarrier& barrier, WindowOf window_of, LandingOf landing_of) {
  std::uint32_t bytes = 0;
#pragma unroll
  for (int a = 0; a < kArrays; ++a) bytes += window_of(a).bytes();
  barrier.expect(bytes);
#pragma unroll
  for (int a = 0; a < kArrays; ++a) window_of(a).copy(barrier, landing_of(a));
}

#endif

}  // namespace cgrt::kernels
