// A run of consecutive elements that a group of threads keeps in registers, 16 bytes at a time.
//
// Rows need not be aligned. What is stored goes out in whole 16 bytes all the same: the run is cut where its
// addresses are multiples of 16, and the few single elements before and after go to one thread each. Arrays that lie
// otherwise between multiples of 16 are read as two neighbouring 16 bytes, shifted.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/whole.cuh"

namespace cgrt::kernels {

// 16 bytes that begin `shift` bytes behind `low`.
__device__ __forceinline__ uint4 shifted(uint4 low, uint4 high, std::uint32_t shift) {
  std::uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  if ((shift & 8) != 0) {
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
  }
  if ((shift & 4) != 0) {
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = w[i + 1];
  }
  const std::uint32_t bits = shift % 4 * 8;
#pragma unroll
  for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], bits);
  return {w[0], w[1], w[2], w[3]};
}

// The 16 bytes behind the 16 at `low`, of which only those before `end` are there.
template <class T>
__device__ __forceinline__ uint4 load_behind(const uint4* low, const T* end) {
  const T* const from = reinterpret_cast<const T*>(low + 1);
  if (from + kPackSize<T> <= end) return low[1];
  std::uint32_t w[4] = {};
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) {
    if (from + i >= end) continue;
    if constexpr (sizeof(T) == 2) {
      w[i / 2] |= std::uint32_t{reinterpret_cast<const std::uint16_t*>(from)[i]} << (i % 2 * 16);
    } else {
      w[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
    }
  }
  return {w[0], w[1], w[2], w[3]};
}

// A pack at any address, of an array that ends at `end`.
template <class T>
__device__ __forceinline__ typename PackOf<T>::Type load_pack(const T* at, const T* end) {
  const std::uint32_t shift = reinterpret_cast<std::uintptr_t>(at) % 16;
  const auto* const low = reinterpret_cast<const uint4*>(reinterpret_cast<std::uintptr_t>(at) - shift);
  uint4 words = *low;
  if (shift != 0) words = shifted(words, load_behind(low, end), shift);
  return reinterpret_cast<const typename PackOf<T>::Type&>(words);
}

// A pack to any address.
template <Alignment kAlignment, class T>
__device__ __forceinline__ void store_pack(T* to, const typename PackOf<T>::Type& pack) {
  if (kAlignment == Alignment::kAligned || reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    store_whole(to, pack);
    return;
  }
  const uint4& words = reinterpret_cast<const uint4&>(pack);
  const std::uint32_t w[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) {
    if constexpr (sizeof(T) == 2) {
      reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(w[i / 2] >> (i % 2 * 16));
    } else {
      reinterpret_cast<std::uint32_t*>(to)[i] = w[i];
    }
  }
}

// What of a run a thread has: packs that begin at `first` and then every kLanes, and perhaps one single element.
template <class T, int kPacks, int kLanes, Alignment kAlignment>
struct Place {
  static constexpr int kPackCount = kPacks, kSize = kPackSize<T>;
  static constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  static_assert(kIsAligned || kLanes >= 2 * (kSize - 1));
  std::uint32_t first, packs, head, tail, single;

  // Of `count` elements that will be stored at `out`; the packs of kLanes threads lie together.
  __device__ __forceinline__ Place(const T* out, std::uint32_t count, std::uint32_t thread)
      : first(thread / kLanes * kLanes * kPacks + thread % kLanes) {
    if constexpr (kIsAligned) {
      packs = count / kSize, head = tail = single = 0;
    } else {
      const auto lead = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(out) / sizeof(T)) % kSize;
      head = min((kSize - lead) % kSize, count);
      packs = (count - head) / kSize;
      tail = count - head - packs * kSize;
      single = thread < head ? thread : thread + packs * kSize;
      if (thread >= head + tail) single = ~0u;
    }
  }
  __device__ __forceinline__ bool has(int pack) const { return first + kLanes * pack < packs; }
  __device__ __forceinline__ bool has_single() const { return !kIsAligned && single != ~0u; }
  // The first element of a pack, or of what comes behind the packs, from the run's begin.
  __device__ __forceinline__ std::uint64_t of(int pack) const {
    if (!kIsAligned && pack == kPacks) return single;
    return std::uint64_t{first} * kSize + kLanes * kSize * pack + (kIsAligned ? 0 : head);
  }
  // The same with the packs and the single element that begin before `count`.
  __device__ __forceinline__ Place up_to(std::uint32_t count) const {
    Place place = *this;
    place.packs = min(packs, count > head ? (count - head + kSize - 1) / kSize : 0);
    if (single >= count) place.single = ~0u;
    return place;
  }
  // Elements that the threads of this warp have.
  __device__ __forceinline__ std::uint32_t of_warp() const {
    const std::uint32_t begin = first - threadIdx.x % 32;
    const std::uint32_t of_packs = begin < packs ? min(packs - begin, 32u * kPacks) * kSize : 0;
    return begin == 0 ? of_packs + head + tail : of_packs;
  }
};

template <class T, int kPacks, int kLanes, Alignment kAlignment>
struct Tile {
  using Element = T;
  using Pack = typename PackOf<T>::Type;
  using Where = Place<T, kPacks, kLanes, kAlignment>;
  static constexpr int kPackCount = kPacks, kSize = kPackSize<T>;
  static constexpr bool kIsHalves = sizeof(T) == 2, kIsAligned = Where::kIsAligned;
  static constexpr int kFewAtOnce = kPacks <= 4 ? kPacks : 2;  // where two blocks share a multiprocessor's registers
  Pack packs[kPacks];
  T single;

  // Of the run at `at`, in an array that ends at `end`; zeros where there is nothing. kAtOnce: shifted packs that are
  // asked for together, of which two halves each are in registers then.
  template <int kAtOnce = kPacks>
  __device__ __forceinline__ void load(const T* at, const Where& place, const T* end) {
    if constexpr (!kIsAligned) {
      single = place.has_single() ? at[place.single] : T{};
      const auto shift = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at + place.head) % 16);
      if (shift != 0) {
        const auto low = [&](int p) {
          return reinterpret_cast<const uint4*>(reinterpret_cast<std::uintptr_t>(at + place.of(p)) - shift);
        };
#pragma unroll
        for (int first = 0; first < kPacks; first += kAtOnce) {
          uint4 lows[kAtOnce], highs[kAtOnce];
#pragma unroll
          for (int i = 0; i < kAtOnce && first + i < kPacks; ++i) {
            const int p = first + i;
            lows[i] = place.has(p) ? *low(p) : uint4{};
            highs[i] = place.has(p) ? load_behind(low(p), end) : uint4{};
          }
#pragma unroll
          for (int i = 0; i < kAtOnce && first + i < kPacks; ++i) {
            const uint4 words = shifted(lows[i], highs[i], shift);
            packs[first + i] = reinterpret_cast<const Pack&>(words);
          }
        }
        return;
      }
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      packs[p] = place.has(p) ? *reinterpret_cast<const Pack*>(at + place.of(p)) : Pack{};
    }
  }

  // The same from shared memory, where all of the 16 bytes may be read that a pack lies in.
  __device__ __forceinline__ void load_shared(const T* at, const Where& place) {
    std::uint32_t shift = 0;
    if constexpr (!kIsAligned) {
      single = place.has_single() ? at[place.single] : T{};
      shift = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at + place.head) % 16);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      uint4 words = {};
      if (place.has(p)) {
        const auto* const low =
            reinterpret_cast<const uint4*>(reinterpret_cast<const unsigned char*>(at + place.of(p)) - shift);
        words = *low;
        if (!kIsAligned && shift != 0) words = shifted(words, low[1], shift);
      }
      packs[p] = reinterpret_cast<const Pack&>(words);
    }
  }

  // The pack of that index, or the single element.
  template <int kCount>
  __device__ __forceinline__ void get(int index, float (&values)[kCount]) const {
    if constexpr (kCount == 1) {
      unpack(single, values);
    } else {
      unpack(packs[index], values);
    }
  }

  __device__ __forceinline__ void fill(float value) {
    float values[kSize];
#pragma unroll
    for (float& one : values) one = value;
#pragma unroll
    for (Pack& pack : packs) pack_into(pack, values);
    single = from_float<T>(value);
  }

  // Keeps the compiler from unpacking before this: two halves in one register, or two registers and half as many
  // threads.
  __device__ __forceinline__ void stay_packed() {
    if constexpr (kIsHalves) {
#pragma unroll
      for (Pack& pack : packs) {
        asm volatile("" : "+r"(pack.words.x), "+r"(pack.words.y), "+r"(pack.words.z), "+r"(pack.words.w));
      }
    }
  }

  // visit(values, index) of each pack that there is, and of the single element, whose index is kPacks: arrays of
  // floats. One pack at a time, behind a branch: without it the compiler unpacks, or addresses, all at once and runs
  // out of registers.
  template <class Visit>
  __device__ __forceinline__ void each(const Where& place, Visit visit) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!place.has(p)) continue;
      float values[kSize];
      unpack(packs[p], values);
      visit(values, p);
    }
    if constexpr (!kIsAligned) {
      if (!place.has_single()) return;
      float value[1];
      unpack(single, value);
      visit(value, kPacks);
    }
  }
  // The same, and what visit leaves is kept, rounded to the type.
  template <class Visit>
  __device__ __forceinline__ void update(const Where& place, Visit visit) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!place.has(p)) continue;
      float values[kSize];
      unpack(packs[p], values);
      visit(values);
      pack_into(packs[p], values);
    }
    if constexpr (!kIsAligned) {
      if (!place.has_single()) return;
      float value[1];
      unpack(single, value);
      visit(value);
      pack_into(single, value);
    }
  }
  // visit(values, offset, index) of each pack and of the single element, whose result goes to `out`. `offset` is that
  // of the first of the values in the run; `index` that of the pack, kPacks of the single element.
  template <class Visit>
  __device__ __forceinline__ void store(T* out, const Where& place, Visit visit) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!place.has(p)) continue;
      float values[kSize];
      unpack(packs[p], values);
      visit(values, place.of(p), p);
      Pack pack;
      pack_into(pack, values);
      store_whole(out + place.of(p), pack);
    }
    if constexpr (!kIsAligned) {
      if (!place.has_single()) return;
      float value[1];
      unpack(single, value);
      visit(value, std::uint64_t{place.single}, kPacks);
      pack_into(out[place.single], value);
    }
  }

  // Elements become sums with another tile's, rounded to the type.
  __device__ __forceinline__ void add(const Tile& other, const Where& place) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (!place.has(p)) continue;
      float a[kSize], b[kSize];
      unpack(packs[p], a);
      unpack(other.packs[p], b);
#pragma unroll
      for (int i = 0; i < kSize; ++i) a[i] += b[i];
      pack_into(packs[p], a);
    }
    if constexpr (!kIsAligned) single = from_float<T>(to_float(single) + to_float(other.single));
  }
  // Elements as they are, to an array that may lie otherwise between multiples of 16 bytes than the place says.
  __device__ __forceinline__ void store_as_is(T* out, const Where& place) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (place.has(p)) store_pack<kAlignment>(out + place.of(p), packs[p]);
    }
    if constexpr (!kIsAligned) {
      if (place.has_single()) out[place.single] = single;
    }
  }

  template <class Term>
  __device__ __forceinline__ float sum(const Where& place, Term term) const {
    float result = 0;
    each(place, [&](const auto& values, int) {
      float of_pack = 0;
#pragma unroll
      for (const float value : values) of_pack += term(value);
      result += of_pack;
    });
    return result;
  }
};

// Elements of a second array beside a tile's: values[i] of `offset` on. Aligned ones are read whole.
template <Alignment kAlignment, class T>
__device__ __forceinline__ void load_values(float (&values)[kPackSize<T>], const T* at, std::uint64_t offset,
                                            const T* end) {
  if constexpr (kAlignment == Alignment::kAligned) {
    unpack(load_whole<typename PackOf<T>::Type>(at + offset), values);
  } else {
    unpack(load_pack(at + offset, end), values);
  }
}
template <Alignment kAlignment, class T>
__device__ __forceinline__ void load_values(float (&value)[1], const T* at, std::uint64_t offset, const T*) {
  unpack(at[offset], value);
}

// Rounds and stores what the values of a pack, or of a single element, have become.
template <class T>
__device__ __forceinline__ void store_values(T* at, const float (&values)[kPackSize<T>]) {
  typename PackOf<T>::Type pack;
  pack_into(pack, values);
  store_whole(at, pack);
}
template <class T>
__device__ __forceinline__ void store_values(T* at, const float (&value)[1]) {
  pack_into(*at, value);
}

}  // namespace cgrt::kernels
