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
// a unit. `offset`: of the first in the run. kAreWords: the units of the row's arrays are known to be words.
template <int kCount, bool kAreWords>
struct UnitAt {
  int offset;
};

// What kThreads threads have of a run: thread t every kThreads-th unit from t on. Units begin where addresses of the
// output are multiples of 4, and those of a warp where they are multiples of 128.
template <class T, int kThreads>
struct UnitPlace {
  static constexpr int kSize = 4 / sizeof(T), kStride = kThreads * kSize;
  static constexpr int kGroupUnits = 4, kGroupSize = kGroupUnits * kSize;  // at once
  int first;            // this thread's first element, before the run if negative
  std::uint32_t count;  // elements of the run
  int whole;            // units before this one are within the run, of all threads, but for the first of all
  bool are_words;

  // `are_alike`: the row's arrays lie as the output does between multiples of 4.
  __device__ __forceinline__ UnitPlace(const T* out, std::uint32_t count_, std::uint32_t thread, bool are_alike)
      : count(count_), are_words(kSize == 1 || are_alike) {
    const std::uint32_t lead = reinterpret_cast<std::uintptr_t>(out) / sizeof(T) % (32 * kSize);
    first = static_cast<int>(thread * kSize) - static_cast<int>(lead);
    whole = static_cast<int>((count + lead) / kStride);
  }
  // visit(at) of all that the thread has.
  template <class Visit>
  __device__ __forceinline__ void each(Visit visit) const {
    if (kSize == 1 || are_words) {
      each_unit<true>(visit);
    } else {
      each_unit<false>(visit);
    }
  }
  // Where element i of them is in the run.
  template <int kCount, bool kAreWords>
  __device__ __forceinline__ std::uint32_t of(const UnitAt<kCount, kAreWords>& at, int i = 0) const {
    return static_cast<std::uint32_t>(at.offset + i / kSize * kStride + i % kSize);
  }

 private:
  template <bool kAreWords, class Visit>
  __device__ __forceinline__ void each_unit(Visit visit) const {
    const auto at = [this](int unit) { return first + unit * kStride; };
    visit_if_there<kAreWords>(0, visit);
    int i = 1;
#pragma unroll 1
    for (; i + kGroupUnits <= whole; i += kGroupUnits) visit(UnitAt<kGroupSize, kAreWords>{at(i)});
    if (i + 2 <= whole) {
      visit(UnitAt<2 * kSize, kAreWords>{at(i)});
      i += 2;
    }
    if (i < whole) {
      visit(UnitAt<kSize, kAreWords>{at(i)});
      ++i;
    }
    if (whole > 0) visit_if_there<kAreWords>(i, visit);
  }
  template <bool kAreWords, class Visit>
  __device__ __forceinline__ void visit_if_there(int unit, Visit visit) const {
    const int at = first + unit * kStride;
    const bool has_first = static_cast<std::uint32_t>(at) < count;
    if constexpr (kSize == 1) {
      if (has_first) visit(UnitAt<1, kAreWords>{at});
    } else {
      const bool has_second = static_cast<std::uint32_t>(at + 1) < count;
      if (has_first && has_second) {
        visit(UnitAt<2, kAreWords>{at});
      } else if (has_first || has_second) {
        visit(UnitAt<1, kAreWords>{has_first ? at : at + 1});
      }
    }
  }
};

// An array of which a thread reads or writes units: all of them lie at multiples of 4, or none does. kIsOfRow: where
// the place knows which.
template <class T, class Place, bool kIsOfRow = false>
struct UnitArray {
  using Value = std::remove_const_t<T>;
  T* begin;
  bool is_aligned;

  __device__ __forceinline__ UnitArray(T* at, const Place& place)
      : begin(at), is_aligned(sizeof(T) == 4 || reinterpret_cast<std::uintptr_t>(at + place.first) % 4 == 0) {}

  template <int kCount, bool kAreWords>
  __device__ __forceinline__ void load(const UnitAt<kCount, kAreWords>& at, float (&values)[kCount]) const {
    T* const from = begin + at.offset;
    if constexpr (kCount == 1) {
      values[0] = to_float(*from);
    } else {
      std::uint32_t words[kCount / Place::kSize];
      if ((kIsOfRow && kAreWords) || is_aligned) {
#pragma unroll
        for (int i = 0; i < kCount / Place::kSize; ++i) {
          words[i] = *reinterpret_cast<const std::uint32_t*>(from + i * Place::kStride);
        }
      } else if constexpr (Place::kSize == 2) {
#pragma unroll
        for (int i = 0; i < kCount / 2; ++i) {
          const auto* const halves = reinterpret_cast<const std::uint16_t*>(from + i * Place::kStride);
          words[i] = halves[0] | std::uint32_t{halves[1]} << 16;
        }
      }
#pragma unroll
      for (int i = 0; i < kCount / Place::kSize; ++i) {
        float of_word[Place::kSize];
        Word<Value>::unpack(words[i], of_word);
#pragma unroll
        for (int k = 0; k < Place::kSize; ++k) values[i * Place::kSize + k] = of_word[k];
      }
    }
  }
  template <int kCount, bool kAreWords>
  __device__ __forceinline__ void store(const UnitAt<kCount, kAreWords>& at, const float (&values)[kCount]) const {
    T* const to = begin + at.offset;
    if constexpr (kCount == 1) {
      *to = from_float<T>(values[0]);
    } else {
#pragma unroll
      for (int i = 0; i < kCount / Place::kSize; ++i) {
        float of_word[Place::kSize];
#pragma unroll
        for (int k = 0; k < Place::kSize; ++k) of_word[k] = values[i * Place::kSize + k];
        store_word(to + i * Place::kStride, Word<Value>::pack(of_word));
      }
    }
  }

 private:
  __device__ __forceinline__ void store_word(T* to, std::uint32_t word) const {
    if (kIsOfRow || is_aligned) {
      *reinterpret_cast<std::uint32_t*>(to) = word;
    } else if constexpr (Place::kSize == 2) {
      auto* const halves = reinterpret_cast<std::uint16_t*>(to);
      halves[0] = static_cast<std::uint16_t>(word), halves[1] = static_cast<std::uint16_t>(word >> 16);
    }
  }
};
// The output, which says where the place has its units.
template <class T, class Place>
using UnitOutput = UnitArray<T, Place, true>;

// The first value that a thread sees, and how many.
struct FirstValue {
  float value = 0, count = 0;
  template <int kCount>
  __device__ __forceinline__ void see(const float (&values)[kCount]) {
    value = count == 0 ? values[0] : value;
    count += kCount;
  }
};

// A run's elements, or the sums of two runs', rounded to the type. What of Tile is needed, with units for packs.
template <class T, class Place, int kArrays = 1>
struct UnitRow {
  using Element = T;
  using Where = Place;
  UnitArray<const T, Place, true> arrays[kArrays];

  template <int kCount, bool kAreWords>
  __device__ __forceinline__ void get(const UnitAt<kCount, kAreWords>& at, float (&values)[kCount]) const {
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
    place.each([&]<int kCount, bool kAreWords>(const UnitAt<kCount, kAreWords>& at) {
      float values[kCount];
      get(at, values);
      visit(values, at);
    });
  }
  // visit(values, offset, at), whose result goes to `out`: the output of `place`.
  template <class Visit>
  __device__ __forceinline__ void store(T* out, const Place& place, Visit visit) const {
    const UnitOutput<T, Place> to(out, place);
    each(place, [&](auto& values, const auto& at) {
      visit(values, static_cast<std::uint32_t>(at.offset), at);
      to.store(at, values);
    });
  }
  // To any array.
  __device__ __forceinline__ void store_as_is(T* out, const Place& place) const {
    const UnitArray<T, Place> to(out, place);
    each(place, [&](const auto& values, const auto& at) { to.store(at, values); });
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
