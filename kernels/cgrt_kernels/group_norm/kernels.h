// What group_norm's plan and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/group_norm/group_norm_desc.h"
#include "cgrt_kernels/group_norm/shape.h"

namespace cgrt::kernels {

inline constexpr std::uint32_t kGroupNormBlock = 256;  // threads
// Threads of a resident block, at most. Two of the larger ones fill the registers of a multiprocessor, or four of
// kGroupNormBlock; narrow groups are narrower than a pack and take more registers.
constexpr std::uint32_t resident_block(bool are_narrow) { return are_narrow ? kGroupNormBlock : 512; }

// Of elements: how many, their mean, and their squared deviations from it.
struct alignas(16) GroupNormPart {
  float count, mean, squares;
};
// Of a group of an image.
struct GroupNormStatistics {
  float mean, scale;
};

struct GroupNormParams {
  GroupNormArgs args;
  std::uint32_t batch, plane, channels, groups;
  GroupNormActivation activation;
  float epsilon;
  Divisor group_channels;
  GroupNormShape shape;
  std::uint32_t* counters;          // one for each image
  GroupNormPart* parts;             // [batch, splits, groups]
  GroupNormStatistics* statistics;  // [batch, groups]
};

// Where the dynamic shared memory of a resident block has what, in bytes: first the packs that are held.
struct ResidentLayout {
  std::uint32_t of_threads;  // mean and squared deviations: of all threads the first sums, then the second
  std::uint32_t parts;       // of each group, of all blocks
  std::uint32_t statistics;  // of each group
  std::uint32_t bytes;
};
__host__ __device__ inline ResidentLayout resident_layout(const GroupNormShape& shape, std::uint32_t threads) {
  const std::uint32_t height = shape.width.quotient(threads), active = height * shape.width.value();
  const std::uint32_t of_thread = (shape.split_pixels + height - 1) / height;  // packs
  ResidentLayout layout{};
  layout.of_threads = of_thread * active * 16;
  layout.parts = layout.of_threads + active * shape.sums * 8;
  layout.statistics = layout.parts + shape.slice_groups * shape.parts.value() * shape.splits.value() * 16;
  layout.bytes = layout.statistics + shape.slice_groups * 8;
  return layout;
}

Kernel<GroupNormParams> group_norm_statistics_kernel(DType type, Alignment alignment);
Kernel<GroupNormParams> group_norm_apply_kernel(DType type, Alignment alignment);

Kernel<GroupNormParams> group_norm_resident_kernel(DType type, bool are_narrow);

}  // namespace cgrt::kernels
