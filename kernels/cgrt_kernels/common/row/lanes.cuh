// Short rows: some lanes of a warp take a row, and each the same columns of all its rows, so that what all rows need
// stays in registers. A warp has consecutive rows, several for each of its lanes, and asks for all of them first.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/common/row/window.cuh"
#include "cgrt_kernels/common/whole.cuh"
#include "cgrt_kernels/common/word.cuh"

namespace cgrt::kernels {

// What a lane has of a row: packs, single elements, or words of two halves, to which all rows are aligned.
template <class T, int kLanes, int kElements, int kOfUnit>
struct LaneRow {
  static_assert(kOfUnit == kPackSize<T> || kOfUnit == 1 || (kOfUnit == 2 && sizeof(T) == 2));
  static constexpr bool kIsSingle = kOfUnit == 1, kIsPack = kOfUnit == kPackSize<T>;
  static constexpr int kSize = kOfUnit, kCount = kElements / kSize;
  using Values = float[kCount][kSize];
  struct Where {
    std::uint32_t first, columns;
    __device__ __forceinline__ explicit Where(std::uint32_t columns_)
        : first(threadIdx.x % kLanes * kSize), columns(columns_) {}
    __device__ __forceinline__ bool has(int i) const { return first + kLanes * kSize * i < columns; }
    // Comparing again costs less than keeping the answers.
    __device__ __forceinline__ void forget() {
      if constexpr (kIsSingle) asm volatile("" : "+r"(first));
    }
  };
  // A pack, or an element in a word: in 16 bits it costs more instructions.
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, float>;
  using Unit =
      std::conditional_t<kIsPack, typename PackOf<T>::Type, std::conditional_t<sizeof(T) == 2, std::uint32_t, float>>;
  using Stored = std::conditional_t<kIsSingle, Bits, Unit>;
  Unit units[kCount];

  // Zeros where there is nothing.
  __device__ __forceinline__ void load(const T* row, const Where& place) {
    const T* const from = row + place.first;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      units[i] = place.has(i) ? *reinterpret_cast<const Stored*>(from + kLanes * kSize * i) : Unit{};
    }
  }
  // Columns that all rows need, or the same value for all.
  __device__ __forceinline__ void load_columns(const void* array, const Where& place, float otherwise) {
    if (array != nullptr) return load(static_cast<const T*>(array), place);
    Values values;
#pragma unroll
    for (auto& of_unit : values) {
#pragma unroll
      for (float& value : of_unit) value = otherwise;
    }
    set(values);
  }
  __device__ __forceinline__ void get(Values& values) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (sizeof(T) == 4) {
        unpack(units[i], values[i]);
      } else if constexpr (kIsPack) {
        const std::uint32_t words[4] = {units[i].words.x, units[i].words.y, units[i].words.z, units[i].words.w};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          float two[2];
          Word<T>::unpack(words[w], two);
          values[i][2 * w] = two[0], values[i][2 * w + 1] = two[1];
        }
      } else if constexpr (!kIsSingle) {
        Word<T>::unpack(units[i], values[i]);
      } else {
        values[i][0] = to_float(reinterpret_cast<const T&>(units[i]));
      }
    }
  }
  __device__ __forceinline__ void set(const Values& values) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kIsPack || sizeof(T) == 4) {
        pack_into(units[i], values[i]);
      } else if constexpr (!kIsSingle) {
        units[i] = Word<T>::pack(values[i]);
      } else {
        const T rounded = from_float<T>(values[i][0]);
        units[i] = reinterpret_cast<const std::uint16_t&>(rounded);
      }
    }
  }
  __device__ __forceinline__ static void store(T* row, const Where& place, const Values& values) {
    T* const to = row + place.first;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!place.has(i)) continue;
      if constexpr (kIsPack) {
        Unit unit;
        pack_into(unit, values[i]);
        store_whole(to + kLanes * kSize * i, unit);
      } else if constexpr (!kIsSingle) {
        *reinterpret_cast<std::uint32_t*>(to + kLanes * kSize * i) = Word<T>::pack(values[i]);
      } else {
        to[kLanes * i] = from_float<T>(values[i][0]);
      }
    }
  }
};

// Of term(value) of each; in four parts, so that additions need not wait for each other.
template <int kCount, int kSize, class Term>
__device__ __forceinline__ float sum_of(const float (&values)[kCount][kSize], Term term) {
  float parts[4] = {};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < kSize; ++j) parts[(i + j) % 4] += term(values[i][j]);
  }
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}
template <int kCount, int kSize, class Visit>
__device__ __forceinline__ void each_pair(float (&values)[kCount][kSize], const float (&others)[kCount][kSize],
                                          Visit visit) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < kSize; ++j) visit(values[i][j], others[i][j]);
  }
}

// The rows of a warp: kRows for each kLanes of its lanes, or one where the grid has enough of them for all rows.
template <int kLanes, int kRows>
struct LaneRows {
  static constexpr std::uint32_t kAtOnce = 32 / kLanes;
  std::uint32_t first, count, columns;

  __device__ __forceinline__ LaneRows(std::uint32_t rows, std::uint32_t columns_) : columns(columns_) {
    const std::uint32_t warps = blockDim.x / 32, all = gridDim.x * warps * kAtOnce;
    const std::uint32_t of_warp = all < rows ? kAtOnce * kRows : kAtOnce;
    first = (blockIdx.x * warps + threadIdx.x / 32) * of_warp;
    count = first < rows ? min(of_warp, rows - first) : 0;
  }
  __device__ __forceinline__ std::uint64_t begin() const { return std::uint64_t{first} * columns; }

  // visit(index, offset, has_row) of each row: `offset` from begin(). Lanes without a row stay with the others of their
  // warp, and have the last one.
  template <class Visit>
  __device__ __forceinline__ void each(Visit visit) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::uint32_t row = i * kAtOnce + threadIdx.x % 32 / kLanes;
      if (i * kAtOnce < count) visit(i, min(row, count - 1) * columns, row < count);
    }
  }
};

// A run of elements that a warp works on in shared memory, where it lies as the result will: as far behind a multiple
// of 16 bytes. There and back go 16 bytes at a time.
template <class T>
class WarpStage {
 public:
  // Asks for `count` elements at `in`, in an array from `first` to `last`; the result goes to `out`.
  __device__ __forceinline__ WarpStage(uint4* stage, T* out, const T* in, std::uint32_t count, const T* first,
                                       const T* last)
      : stage_(reinterpret_cast<unsigned char*>(stage)), out_(out), window_(in, count, first, last) {
    is_alike_ = (reinterpret_cast<std::uintptr_t>(in) - reinterpret_cast<std::uintptr_t>(out)) % 16 == 0;
    const std::uint32_t lane = threadIdx.x % 32;
    if (is_alike_) {
      unsigned char* const to = stage_ + (window_.is_cut_before ? 16 : 0);
      const auto* const from = reinterpret_cast<const unsigned char*>(window_.low);
#pragma unroll 4
      for (std::uint32_t at = lane * 16; at < window_.bytes(); at += 32 * 16) copy_asynchronously(to + at, from + at);
      end_copy_group();
    } else {
      for (std::uint32_t i = lane; i < count; i += 32) begin()[i] = in[i];
    }
  }
  // Where the run lies.
  __device__ __forceinline__ T* begin() const {
    return reinterpret_cast<T*>(stage_ + reinterpret_cast<std::uintptr_t>(out_) % 16);
  }
  // Until it is there.
  __device__ __forceinline__ void wait() const {
    wait_for_copies<0>();
    if (is_alike_ && window_.is_cut()) {
      __syncwarp();
      window_.copy_rest(stage_, threadIdx.x % 32);
    }
    __syncwarp();
  }
  // What all lanes have left there.
  __device__ __forceinline__ void store() const {
    const Place<T, 1, 32, Alignment::kUnaligned> place(out_, window_.count, threadIdx.x % 32);
    __syncwarp();
    const auto* const from = reinterpret_cast<const uint4*>(begin() + place.head);
    auto* const to = reinterpret_cast<uint4*>(out_ + place.head);
#pragma unroll 4
    for (std::uint32_t pack = place.first; pack < place.packs; pack += 32) to[pack] = from[pack];
    if (place.has_single()) out_[place.single] = begin()[place.single];
  }

 private:
  unsigned char* const stage_;
  T* const out_;
  const Window<T> window_;
  bool is_alike_;
};

// What a lane has of each row of a stage, and the lanes of others, which have kStep rows between them: words of shared
// memory. Of a row's first and last word perhaps one half alone is its own. `row`: where the row begins.
template <class T, int kLanesOfRow, int kWordsOfLane>
class StagedRow {
 public:
  using Element = T;
  static constexpr int kLanes = kLanesOfRow, kWords = kWordsOfLane;
  static constexpr int kOfWord = Word<T>::kSize, kStep = 32 / kLanes;
  static_assert(kOfWord == 1 || kStep % 2 == 0, "all rows of a lane begin alike");
  // More than it can reach behind a row.
  static constexpr std::uint32_t kMaxColumns = kLanes * kWords * kOfWord - (kOfWord - 1);
  using Values = float[kWords][kOfWord];

  __device__ __forceinline__ StagedRow(const T* row, std::uint32_t columns)
      : lead_(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % kOfWord)),
        first_(threadIdx.x % kLanes * kOfWord - lead_),
        columns_(columns) {
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      masks_[word] = has(word, 0) ? (kOfWord == 1 ? ~0u : 0xffffu) : 0;
      if (has(word, kOfWord - 1)) masks_[word] |= 0xffff0000u;
    }
  }
  // Columns that all rows need, or the same value for all.
  __device__ __forceinline__ void load_columns(Values& values, const void* array, float otherwise) const {
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
#pragma unroll
      for (int i = 0; i < kOfWord; ++i) {
        values[word][i] = otherwise;
        if (array != nullptr && has(word, i)) values[word][i] = to_float(static_cast<const T*>(array)[of(word, i)]);
      }
    }
  }
  // One value where the row has an element, the other elsewhere.
  __device__ __forceinline__ void mark(Values& values, float there, float elsewhere) const {
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
#pragma unroll
      for (int i = 0; i < kOfWord; ++i) values[word][i] = has(word, i) ? there : elsewhere;
    }
  }
  // Zeros where there is nothing. All lanes of the warp meet: two rows may share a word, of which each writes its half.
  __device__ __forceinline__ void get(Values& values, const T* row) const {
    const auto* const words = words_of(row);
    if constexpr (kOfWord > 1) __syncwarp();
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const std::uint32_t bits = words[kLanes * word] & masks_[word];
      Word<T>::unpack(bits, values[word]);
    }
    if constexpr (kOfWord > 1) __syncwarp();
  }
  __device__ __forceinline__ void put(T* row, const Values& values) const {
    auto* const words = const_cast<std::uint32_t*>(words_of(row));
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const std::uint32_t bits = Word<T>::pack(values[word]);
      if constexpr (kOfWord == 1) {
        if (has(word, 0)) words[kLanes * word] = bits;
      } else {
        auto* const halves = reinterpret_cast<std::uint16_t*>(words + kLanes * word);
        if (of(word, 0) < columns_ - 1) {
          words[kLanes * word] = bits;
        } else if (of(word, 0) == columns_ - 1) {
          halves[0] = static_cast<std::uint16_t>(bits);
        } else if (word == 0 && of(0, 1) == 0) {
          halves[1] = static_cast<std::uint16_t>(bits >> 16);
        }
      }
    }
  }

 private:
  __device__ __forceinline__ std::uint32_t of(int word, int i) const { return first_ + kLanes * kOfWord * word + i; }
  __device__ __forceinline__ bool has(int word, int i) const { return of(word, i) < columns_; }
  __device__ __forceinline__ const std::uint32_t* words_of(const T* row) const {
    return reinterpret_cast<const std::uint32_t*>(row - lead_) + threadIdx.x % kLanes;
  }

  const std::uint32_t lead_, first_, columns_;
  std::uint32_t masks_[kWords];
};

// Of up to 127 (floats: 128) and of up to 255 columns.
template <class T>
using ShortStagedRow = StagedRow<T, 16, sizeof(T) == 4 ? 8 : 4>;
template <class T>
using LongStagedRow = StagedRow<T, sizeof(T) == 4 ? 32 : 16, 8>;

// The rows of a warp in a stage: `rounds` for each kLanes of its lanes, from `first` on.
struct StagedRows {
  std::uint32_t first, count;
  __device__ __forceinline__ StagedRows(std::uint32_t rows, std::uint32_t of_warp)
      : first((blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * of_warp),
        count(first < rows ? min(of_warp, rows - first) : 0) {}

  // Where they pass through shared memory, asked for. `p`: parameters of a kernel.
  template <class T, class Params>
  __device__ __forceinline__ WarpStage<T> stage(uint4* stages, const Params& p) const {
    const std::uint64_t begin = std::uint64_t{first} * p.columns;
    const T* const in = static_cast<const T*>(p.in);
    return {
        stages + threadIdx.x / 32 * p.shares.stride, static_cast<T*>(p.out) + begin, in + begin, count * p.columns, in,
        in + std::uint64_t{p.rows} * p.columns};
  }
};

}  // namespace cgrt::kernels
