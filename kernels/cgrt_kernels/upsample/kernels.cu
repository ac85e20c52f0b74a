#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/upsample/kernels.h"
#include "cgrt_kernels/upsample/reference.h"

namespace cgrt::kernels {
namespace {

__device__ __forceinline__ uint2 half_pack(float, const float (&values)[2]) {
  return {__float_as_uint(values[0]), __float_as_uint(values[1])};
}
template <class T>
__device__ __forceinline__ uint2 half_pack(T, const float (&values)[4]) {
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  uint2 words;
  from_float2(reinterpret_cast<Pair&>(words.x), {values[0], values[1]});
  from_float2(reinterpret_cast<Pair&>(words.y), {values[2], values[3]});
  return words;
}

// Exactly 2 x 2 copies: an item is a pack of each of two rows, which becomes half a pack.
template <class T>
__global__ void __launch_bounds__(kUpsampleBlock) gather_twice(UpsampleParams p) {
  const UpsampleShape shape = p.shape;
  using Pack = typename PackOf<T>::Type;
  constexpr int kHalf = kPackSize<T> / 2;
  const std::uint32_t item = blockIdx.x * kUpsampleBlock + threadIdx.x;
  if (item >= shape.items) return;
  const std::uint32_t packs = shape.packs.value();
  const auto* const from = static_cast<const Pack*>(p.in) + item + shape.packs.quotient(item) * packs;
  let_dependents_start();
  wait_for_predecessors();
  const Pack upper = from[0], lower = from[packs];
  float a[2 * kHalf], b[2 * kHalf], sums[kHalf];
  unpack(upper, a), unpack(lower, b);
#pragma unroll
  for (int k = 0; k < kHalf; ++k) sums[k] = a[2 * k] + a[2 * k + 1] + b[2 * k] + b[2 * k + 1];
  static_cast<uint2*>(p.out)[item] = half_pack(T{}, sums);
}

// 3 x 3 copies of each 2 x 2 pixels, two of the first and one of the second in either direction: an item is three packs
// of each of three rows, which become two of each of two.
template <class T>
__global__ void __launch_bounds__(kUpsampleBlock, 5) gather_thirds(UpsampleParams p) {
  const UpsampleShape shape = p.shape;
  using Pack = typename PackOf<T>::Type;
  constexpr int kSize = kPackSize<T>;
  const std::uint32_t item = blockIdx.x * kUpsampleBlock + threadIdx.x;
  if (item >= shape.items) return;
  const std::uint32_t thirds = shape.packs.value(), line = shape.packs.quotient(item), x = item - line * thirds;
  const Pack* const from = static_cast<const Pack*>(p.in) + 3 * (3 * line * thirds + x);
  Pack* const to = static_cast<Pack*>(p.out) + 2 * (2 * line * thirds + x);
  let_dependents_start();
  wait_for_predecessors();
  Pack held[3][3];
#pragma unroll
  for (std::uint32_t row = 0; row < 3; ++row) {
#pragma unroll
    for (std::uint32_t k = 0; k < 3; ++k) held[row][k] = from[row * (3 * thirds) + k];
  }
#pragma unroll
  for (std::uint32_t row = 0; row < 2; ++row) {
    float sums[3 * kSize];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      float a[kSize], b[kSize];
      unpack(held[2 * row][k], a), unpack(held[1][k], b);
#pragma unroll
      for (int j = 0; j < kSize; ++j) sums[k * kSize + j] = row == 0 ? a[j] + b[j] : a[j];
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float pixels[kSize];
#pragma unroll
      for (int j = 0; j < kSize; j += 2) {
        const float* const three = sums + (k * kSize + j) / 2 * 3;
        pixels[j] = three[0] + three[1], pixels[j + 1] = three[2];
      }
      pack_into(to[row * (2 * thirds) + k], pixels);
    }
  }
}

template <class Element, int kCount>
struct alignas(kCount * sizeof(Element)) Group {
  Element values[kCount];
};

// An item is kCount columns of a few rows of the output. Of two rows the columns are in flight at once, and only
// once where both show the same row of the image.
template <class Element, int kCount>
__global__ void __launch_bounds__(kUpsampleBlock) upsample_columns(UpsampleParams p) {
  const UpsampleShape shape = p.shape;
  const std::uint32_t item = blockIdx.x * kUpsampleBlock + threadIdx.x;
  if (item >= shape.items) return;
  const std::uint32_t line = shape.packs.quotient(item), pack = item - line * shape.packs.value();
  const std::uint32_t image = shape.row_items.quotient(line);
  const std::uint32_t first = (line - image * shape.row_items.value()) * shape.rows.together;
  std::uint32_t column[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) column[k] = shape.columns.source(pack * kCount + k);
  const auto* const from = static_cast<const Element*>(p.in) + image * shape.rows.size * shape.columns.size;
  auto* const to = static_cast<Group<Element, kCount>*>(p.out) + image * shape.rows.out_size * shape.packs.value();
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t end = min(first + shape.rows.together, shape.rows.out_size);
  for (std::uint32_t row = first; row < end; row += 2) {
    const std::uint32_t source = shape.rows.source(row),
                        next_source = row + 1 < end ? shape.rows.source(row + 1) : source;
    Group<Element, kCount> group, next;
    const auto gather_row = [&](Group<Element, kCount>& into, std::uint32_t of) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) into.values[k] = from[of * shape.columns.size + column[k]];
    };
    gather_row(group, source);
    if (next_source != source) gather_row(next, next_source);
    to[row * shape.packs.value() + pack] = group;
    if (row + 1 < end) to[(row + 1) * shape.packs.value() + pack] = next_source != source ? next : group;
  }
}

// Where an item of channels lies: `x` and `y` count items side by side and below each other.
struct ChannelItem {
  std::uint32_t pack, x, y, image;
  __device__ ChannelItem(const UpsampleShape& shape, std::uint32_t item) {
    const std::uint32_t pixel = shape.packs.quotient(item), line = shape.column_items.quotient(pixel);
    pack = item - pixel * shape.packs.value();
    x = pixel - line * shape.column_items.value();
    image = shape.row_items.quotient(line);
    y = line - image * shape.row_items.value();
  }
};

// An item is a pack of channels in a few rows and columns of the output. A kernel has one host body, so
// that it is told what the elements are.
template <class Element, class Pack>
__global__ void __launch_bounds__(kUpsampleBlock) upsample_channels(UpsampleParams p) {
  const UpsampleShape shape = p.shape;
  const std::uint32_t item = blockIdx.x * kUpsampleBlock + threadIdx.x;
  if (item >= shape.items) return;
  const ChannelItem at(shape, item);
  const std::uint32_t packs = shape.packs.value();
  const auto* const from = static_cast<const Pack*>(p.in) + at.pack;
  auto* const to = static_cast<Pack*>(p.out) + at.pack;
  const std::uint32_t rows = min((at.y + 1) * shape.rows.together, shape.rows.out_size);
  const std::uint32_t columns = min((at.x + 1) * shape.columns.together, shape.columns.out_size);
  let_dependents_start();
  wait_for_predecessors();
  Pack value;
  std::uint32_t held = ~0u;
  for (std::uint32_t row = at.y * shape.rows.together; row < rows; ++row) {
    const std::uint32_t line = (at.image * shape.rows.size + shape.rows.source(row)) * shape.columns.size;
    const std::uint32_t out_line = (at.image * shape.rows.out_size + row) * shape.columns.out_size;
    for (std::uint32_t column = at.x * shape.columns.together; column < columns; ++column) {
      const std::uint32_t source = line + shape.columns.source(column);
      if (source != held) value = from[source * packs];
      held = source;
      to[(out_line + column) * packs] = value;
    }
  }
}

// The copies of a pixel in the larger image.
struct Copies {
  std::uint32_t row, rows, column, columns;
  __device__ Copies(const UpsampleShape& shape, std::uint32_t y, std::uint32_t x)
      : row(shape.rows.begin(y)),
        rows(shape.rows.begin(y + 1) - row),
        column(shape.columns.begin(x)),
        columns(shape.columns.begin(x + 1) - column) {}
};

// To a sum that may have a million summands, of which a float alone would lose the last bits (Kahan): `rest` is what
// the sum has too much, nothing if it is infinite.
__device__ __forceinline__ void add_to_many(float& sum, float& rest, float value) {
  const float corrected = value - rest, next = sum + corrected, error = next - sum - corrected;
  rest = fabsf(error) < INFINITY ? error : 0;
  sum = next;
}

// An item is a pack of channels of a pixel, or an element: always of channels last, or of one channel. Where no pixel
// has more than kCopies copies in a row, all are in flight at once; kCopies 0: however many, some at once.
template <class T, Alignment kAlignment, int kCopies>
__global__ void __launch_bounds__(kUpsampleBlock, 4) gather(UpsampleParams p) {
  const UpsampleShape shape = p.shape;
  using Pack = PackFor<T, kAlignment>;
  constexpr int kCount = kPackSizeFor<T, kAlignment>;
  const std::uint32_t item = blockIdx.x * kUpsampleBlock + threadIdx.x;
  if (item >= shape.items) return;
  const ChannelItem at(shape, item);
  const Copies copies(shape, at.y, at.x);
  const std::uint32_t packs = shape.packs.value();
  const auto* const from =
      static_cast<const Pack*>(p.in) +
      ((at.image * shape.rows.out_size + copies.row) * shape.columns.out_size + copies.column) * packs + at.pack;
  const auto add = [](float(&sums)[kCount], const Pack& pack) {
    float values[kCount];
    unpack(pack, values);
#pragma unroll
    for (int k = 0; k < kCount; ++k) sums[k] += values[k];
  };
  let_dependents_start();
  wait_for_predecessors();
  float sums[kCount] = {};
  if constexpr (kCopies > 0) {
    Pack held[kCopies][kCopies];
#pragma unroll
    for (std::uint32_t row = 0; row < kCopies; ++row) {
#pragma unroll
      for (std::uint32_t column = 0; column < kCopies; ++column) {
        if (row < copies.rows && column < copies.columns) {
          held[row][column] = from[(row * shape.columns.out_size + column) * packs];
        }
      }
    }
#pragma unroll
    for (std::uint32_t row = 0; row < kCopies; ++row) {
#pragma unroll
      for (std::uint32_t column = 0; column < kCopies; ++column) {
        if (row < copies.rows && column < copies.columns) add(sums, held[row][column]);
      }
    }
  } else {
    constexpr std::uint32_t kInFlight = 4;
    float rests[kCount] = {};
    for (std::uint32_t row = 0; row < copies.rows; ++row) {
      for (std::uint32_t column = 0; column < copies.columns; column += kInFlight) {
        Pack held[kInFlight];
#pragma unroll
        for (std::uint32_t i = 0; i < kInFlight; ++i) {
          if (column + i < copies.columns) held[i] = from[(row * shape.columns.out_size + column + i) * packs];
        }
#pragma unroll
        for (std::uint32_t i = 0; i < kInFlight; ++i) {
          if (column + i >= copies.columns) break;
          float values[kCount];
          unpack(held[i], values);
#pragma unroll
          for (int k = 0; k < kCount; ++k) add_to_many(sums[k], rests[k], values[k]);
        }
      }
    }
  }
  Pack result;
  pack_into(result, sums);
  static_cast<Pack*>(p.out)[item] = result;
}

// A block has a tile of the image. It first adds the rows' copies pack by pack, whose sums go to shared
// memory, and there the columns' copies, which begin anywhere in a pack. kCopies: those that are in flight together, in
// either direction, of two packs of a thread.
template <class T, std::uint32_t kCopies>
__global__ void __launch_bounds__(kUpsampleBlock, sizeof(T) == 4 && kCopies == 2 ? 5 : 4)
    gather_lines(UpsampleParams p) {
  const UpsampleShape shape = p.shape;
  using Pack = typename PackOf<T>::Type;
  constexpr int kSize = kPackSize<T>;
  constexpr std::uint32_t kTogether = kTilePacks / kUpsampleBlock;
  __shared__ float4 row_sums[kTilePacks * kSize / 4];
  const UpsampleTile& tile = shape.tile;
  const std::uint32_t group = shape.column_items.quotient(blockIdx.x);
  const std::uint32_t first_line = group * tile.lines;
  const std::uint32_t lines = min(tile.lines, shape.images * shape.rows.size - first_line);
  const std::uint32_t first_column = (blockIdx.x - group * shape.column_items.value()) * tile.columns.value();
  const std::uint32_t first_pack = shape.columns.begin(first_column) / kSize;
  const std::uint32_t items = lines * tile.packs.value(), row_packs = shape.packs.value();  // no more than kTilePacks
  // Where the copies of each line begin, in packs, and how many there are.
  __shared__ uint2 copies_of[kTilePacks];
  for (std::uint32_t i = threadIdx.x; i < lines; i += kUpsampleBlock) {
    const std::uint32_t image = shape.row_items.quotient(first_line + i);
    const std::uint32_t y = first_line + i - image * shape.row_items.value(), begin = shape.rows.begin(y);
    copies_of[i] = {(image * shape.rows.out_size + begin) * row_packs, shape.rows.begin(y + 1) - begin};
  }
  __syncthreads();
  let_dependents_start();
  wait_for_predecessors();
  const Pack* from[kTogether];
  std::uint32_t rows[kTogether];
  Pack held[kTogether][kCopies];
#pragma unroll
  for (std::uint32_t item = 0; item < kTogether; ++item) {
    const std::uint32_t i = threadIdx.x + item * kUpsampleBlock;
    const std::uint32_t line = tile.packs.quotient(i), pack = first_pack + i - line * tile.packs.value();
    rows[item] = 0;
    if (i >= items || pack >= row_packs) continue;
    const uint2 copies = copies_of[line];
    rows[item] = copies.y;
    from[item] = static_cast<const Pack*>(p.in) + (copies.x + pack);
#pragma unroll
    for (std::uint32_t k = 0; k < kCopies; ++k) {
      if (k < rows[item]) held[item][k] = from[item][k * row_packs];
    }
  }
#pragma unroll
  for (std::uint32_t item = 0; item < kTogether; ++item) {
    float sums[kSize] = {};  // 0 where a factor leaves a line without copies
    const auto add = [&](const Pack& pack) {
      float values[kSize];
      unpack(pack, values);
#pragma unroll
      for (int j = 0; j < kSize; ++j) sums[j] += values[j];
    };
#pragma unroll
    for (std::uint32_t k = 0; k < kCopies; ++k) {
      if (k < rows[item]) add(held[item][k]);
    }
    float rests[kSize] = {};
    for (std::uint32_t k = kCopies; k < rows[item]; ++k) {
      float values[kSize];
      unpack(from[item][k * row_packs], values);
#pragma unroll
      for (int j = 0; j < kSize; ++j) add_to_many(sums[j], rests[j], values[j]);
    }
#pragma unroll
    for (int j = 0; j < kSize; j += 4) {
      row_sums[(threadIdx.x + item * kUpsampleBlock) * (kSize / 4) + j / 4] = {sums[j], sums[j + 1], sums[j + 2],
                                                                               sums[j + 3]};
    }
  }
  __syncthreads();

  // Threads side by side have columns side by side, and keep theirs for all lines.
  const std::uint32_t columns = tile.columns.value(), last = min(first_column + columns, shape.columns.size);
  const std::uint32_t step = columns < kUpsampleBlock ? kUpsampleBlock / columns : 1;  // lines
  const std::uint32_t line = columns < kUpsampleBlock ? tile.columns.quotient(threadIdx.x) : 0;
  if (line >= step) return;
  for (std::uint32_t x = first_column + threadIdx.x - line * columns; x < last; x += kUpsampleBlock) {
    const std::uint32_t begin = shape.columns.begin(x), copies = shape.columns.begin(x + 1) - begin;
    const float* from = reinterpret_cast<const float*>(row_sums) + begin - first_pack * kSize;
    for (std::uint32_t at = line; at < lines; at += step) {
      const float* const sums = from + at * tile.packs.value() * kSize;
      float sum = 0;
#pragma unroll
      for (std::uint32_t k = 0; k < kCopies; ++k) {
        if (k < copies) sum += sums[k];
      }
      float rest = 0;
      for (std::uint32_t k = kCopies; k < copies; ++k) add_to_many(sum, rest, sums[k]);
      static_cast<T*>(p.out)[(first_line + at) * shape.columns.size + x] = from_float<T>(sum);
    }
  }
}

template <class Element>
void upsample_on_host(HostGrid, UpsampleParams p) {
  visit_upsampled(p.shape, [&](std::size_t to, std::size_t from) {
    static_cast<Element*>(p.out)[to] = static_cast<const Element*>(p.in)[from];
  });
}

template <class T>
void gather_on_host(HostGrid, UpsampleParams p) {
  std::vector<double> sums(upsample_pixels(p.shape));
  visit_upsampled(p.shape, [&](std::size_t from, std::size_t to) {
    sums[to] += static_cast<double>(to_float(static_cast<const T*>(p.in)[from]));
  });
  for (std::size_t i = 0; i < sums.size(); ++i) static_cast<T*>(p.out)[i] = from_float<T>(static_cast<float>(sums[i]));
}

constexpr KernelResources kResources{.registers = 64, .max_threads = kUpsampleBlock};

template <auto kKernel, class Element>
UpsampleKernel forward() {
  return make_kernel<kKernel, upsample_on_host<Element>, kResources>();
}
template <auto kKernel, class T>
UpsampleKernel backward() {
  return make_kernel<kKernel, gather_on_host<T>, kResources>();
}

// Element: an unsigned number as large as the type.
template <class Element>
UpsampleKernel forward_kernel(ImageLayout layout, std::uint32_t pack_bytes) {
  constexpr int kSize = sizeof(Element);
  if (layout == ImageLayout::kNchw) {
    if (pack_bytes == 16) return forward<upsample_columns<Element, 16 / kSize>, Element>();
    if (pack_bytes == 8) return forward<upsample_columns<Element, 8 / kSize>, Element>();
    if (pack_bytes == 4) return forward<upsample_columns<Element, 4 / kSize>, Element>();
    return forward<upsample_columns<Element, 1>, Element>();
  }
  if (pack_bytes == 16) return forward<upsample_channels<Element, uint4>, Element>();
  if (pack_bytes == 8) return forward<upsample_channels<Element, uint2>, Element>();
  if (pack_bytes > sizeof(Element)) return forward<upsample_channels<Element, std::uint32_t>, Element>();
  return forward<upsample_channels<Element, Element>, Element>();
}

template <class T, Alignment kAlignment>
UpsampleKernel of_regime(UpsampleBackwardRegime regime, std::uint32_t copies) {
  switch (regime) {
    case UpsampleBackwardRegime::kTwice: return backward<gather_twice<T>, T>();
    case UpsampleBackwardRegime::kThirds: return backward<gather_thirds<T>, T>();
    case UpsampleBackwardRegime::kLines:
      return copies <= 2 ? backward<gather_lines<T, 2>, T>() : backward<gather_lines<T, 3>, T>();
    case UpsampleBackwardRegime::kPixels: break;
  }
  if (copies <= 2) return backward<gather<T, kAlignment, 2>, T>();
  if (copies == 3) return backward<gather<T, kAlignment, 3>, T>();
  return backward<gather<T, kAlignment, 0>, T>();
}

}  // namespace

UpsampleKernel upsample_kernel(DType type, ImageLayout layout, std::uint32_t pack_bytes) {
  return size_of(type) == 4 ? forward_kernel<std::uint32_t>(layout, pack_bytes)
                            : forward_kernel<std::uint16_t>(layout, pack_bytes);
}

UpsampleKernel upsample_backward_kernel(DType type, UpsampleBackwardRegime regime, Alignment alignment,
                                        std::uint32_t copies) {
  return of_float_type(type, alignment,
                       [=]<class T, Alignment kAlignment>() { return of_regime<T, kAlignment>(regime, copies); });
}

}  // namespace cgrt::kernels
