// A run of consecutive elements of which each thread of a block has its units: 4 bytes, a float or two halves.
// Neighbouring threads have neighbouring units, so that no address need be aligned to more than an element. Elements
// stay where they are, in shared memory, and are loaded each time they are needed: several units at once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/word.cuh"

namespace cgrt::kernels {

// kCount elements that a thread works on at once: those of some units or of one, or one where the run has only half of
// a unit. `offset`: of the first in the run; `unit`: which of the thread's units it is.
template <int kCount>
struct UnitAt {
  int unit, offset;
};

// What kThreads threads have of a run: thread t every kThreads-th unit from t on. Units begin where addresses of the
// output are multiples of 4, and those of a warp where they are multiples of 128; unless kUnits is not 0: then a thread
// has the same columns of every run, kUnits units at most.
template <class T, int kThreads, int kUnits>
struct UnitPlace {
  static constexpr bool kHasSameColumns = kUnits != 0;
  static constexpr int kSize = 4 / sizeof(T), kStride = kThreads * kSize;
  static constexpr int kGroupUnits = kHasSameColumns && kSize == 2 ? 1 : 4,
                       kGroupSize = kGroupUnits * kSize;  // at once
  int first;                                              // this thread's first element, before the run if negative
  std::uint32_t count;                                    // elements of the run
  int whole;  // units before this one are within the run, of all threads, but for the first of all

  __device__ __forceinline__ UnitPlace(const T* out, std::uint32_t count_, std::uint32_t thread) : count(count_) {
    std::uint32_t lead = 0;
    if constexpr (!kHasSameColumns) lead = reinterpret_cast<std::uintptr_t>(out) / sizeof(T) % (32 * kSize);
    first = static_cast<int>(thread * kSize) - static_cast<int>(lead);
    whole = static_cast<int>((count + lead) / kStride);
  }
  // visit(at) of all that the thread has.
  template <class Visit>
  __device__ __forceinline__ void each(Visit visit) const {
    if constexpr (kHasSameColumns) {
#pragma unroll
      for (int i = 0; i < kUnits; i += kGroupUnits) {
        if (i + kGroupUnits <= whole) {
          visit(UnitAt<kGroupSize>{i, first + i * kStride});
        } else {
#pragma unroll
          for (int k = i; k < i + kGroupUnits; ++k) visit_if_there(k, visit);
        }
      }
    } else {
      visit_if_there(0, visit);
      int i = 1;
#pragma unroll 1
      for (; i + kGroupUnits <= whole; i += kGroupUnits) visit(UnitAt<kGroupSize>{i, first + i * kStride});
      if (i + 2 <= whole) {
        visit(UnitAt<2 * kSize>{i, first + i * kStride});
        i += 2;
      }
      if (i < whole) {
        visit(UnitAt<kSize>{i, first + i * kStride});
        ++i;
      }
      if (whole > 0) visit_if_there(i, visit);
    }
  }
  // This thread's elements.
  __device__ __forceinline__ std::uint32_t elements() const {
    std::uint32_t all = 0;
#pragma unroll
    for (int k = 0; k < kSize; ++k) {
      const int begin = first + k;
      if (begin < static_cast<int>(count)) all += (static_cast<int>(count) - begin + kStride - 1) / kStride;
      if (begin < 0) --all;
    }
    return all;
  }
  // Where element i of them is in the run.
  template <int kCount>
  __device__ __forceinline__ std::uint32_t of(const UnitAt<kCount>& at, int i = 0) const {
    return static_cast<std::uint32_t>(at.offset + i / kSize * kStride + i % kSize);
  }

 private:
  template <class Visit>
  __device__ __forceinline__ void visit_if_there(int unit, Visit visit) const {
    const int at = first + unit * kStride;
    const bool has_first = static_cast<std::uint32_t>(at) < count;
    if constexpr (kSize == 1) {
      if (has_first) visit(UnitAt<1>{unit, at});
    } else {
      const bool has_second = static_cast<std::uint32_t>(at + 1) < count;
      if (has_first && has_second) {
        visit(UnitAt<2>{unit, at});
      } else if (has_first || has_second) {
        visit(UnitAt<1>{unit, has_first ? at : at + 1});
      }
    }
  }
};

// An array of which a thread reads or writes units: all of them lie at multiples of 4, or none does.
template <class T, class Place>
struct UnitArray {
  using Value = std::remove_const_t<T>;
  T* begin;
  bool is_aligned;

  __device__ __forceinline__ UnitArray(T* at, const Place& place)
      : begin(at), is_aligned(sizeof(T) == 4 || reinterpret_cast<std::uintptr_t>(at + place.first) % 4 == 0) {}

  template <int kCount>
  __device__ __forceinline__ void load(const UnitAt<kCount>& at, float (&values)[kCount]) const {
    T* const from = begin + at.offset;
    if constexpr (kCount == 1) {
      values[0] = to_float(*from);
    } else if constexpr (Place::kSize == 1) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = from[i * Place::kStride];
    } else {
      std::uint32_t words[kCount / 2];
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) words[i] = load_pair(from + i * Place::kStride);
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        float two[2];
        Word<Value>::unpack(words[i], two);
        values[2 * i] = two[0], values[2 * i + 1] = two[1];
      }
    }
  }
  template <int kCount>
  __device__ __forceinline__ void store(const UnitAt<kCount>& at, const float (&values)[kCount]) const {
    T* const to = begin + at.offset;
    if constexpr (kCount == 1) {
      *to = from_float<T>(values[0]);
    } else if constexpr (Place::kSize == 1) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) to[i * Place::kStride] = values[i];
    } else {
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        store_pair(to + i * Place::kStride, Word<Value>::pack({values[2 * i], values[2 * i + 1]}));
      }
    }
  }

 private:
  __device__ __forceinline__ std::uint32_t load_pair(const T* from) const {
    if (is_aligned) return *reinterpret_cast<const std::uint32_t*>(from);
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(from);
    return halves[0] | std::uint32_t{halves[1]} << 16;
  }
  __device__ __forceinline__ void store_pair(T* to, std::uint32_t word) const {
    if (is_aligned) {
      *reinterpret_cast<std::uint32_t*>(to) = word;
    } else {
      auto* const halves = reinterpret_cast<std::uint16_t*>(to);
      halves[0] = static_cast<std::uint16_t>(word), halves[1] = static_cast<std::uint16_t>(word >> 16);
    }
  }
};

// A run's elements, or the sums of two runs', rounded to the type. What of Tile is needed, with units for packs.
template <class T, class Place, int kArrays = 1>
struct UnitRow {
  using Element = T;
  using Where = Place;
  UnitArray<const T, Place> arrays[kArrays];

  template <int kCount>
  __device__ __forceinline__ void get(const UnitAt<kCount>& at, float (&values)[kCount]) const {
    arrays[0].load(at, values);
    if constexpr (kArrays == 2) {
      float others[kCount];
      arrays[1].load(at, others);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = to_float(from_float<T>(values[i] + others[i]));
    }
  }
  __device__ __forceinline__ void stay_packed() {}

  // visit(values, at) of all that a thread has: arrays of floats.
  template <class Visit>
  __device__ __forceinline__ void each(const Place& place, Visit visit) const {
    place.each([&]<int kCount>(const UnitAt<kCount>& at) {
      float values[kCount];
      get(at, values);
      visit(values, at);
    });
  }
  // visit(values, offset, at), whose result goes to `out`.
  template <class Visit>
  __device__ __forceinline__ void store(T* out, const Place& place, Visit visit) const {
    const UnitArray<T, Place> to(out, place);
    each(place, [&](auto& values, const auto& at) {
      visit(values, static_cast<std::uint32_t>(at.offset), at);
      to.store(at, values);
    });
  }
  __device__ __forceinline__ void store_as_is(T* out, const Place& place) const {
    store(out, place, [](auto&, std::uint32_t, const auto&) {});
  }
  // In four parts, so that additions need not wait for each other.
  template <class Term>
  __device__ __forceinline__ float sum(const Place& place, Term term) const {
    float parts[4] = {};
    each(place, [&](const auto& values, const auto&) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(values) / sizeof(float)); ++i) parts[i % 4] += term(values[i]);
    });
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
};

}  // namespace cgrt::kernels
