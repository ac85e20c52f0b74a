// What sampling's plan and device code have in common. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/workspace_desc.h"
#include "cgrt_kernels/sampling/sampling_desc.h"

namespace cgrt::kernels {

inline constexpr int kSamplingBlock = 256;                         // threads
inline constexpr int kSamplingFilteredBlock = 1024;                // of kFiltered, at most
inline constexpr std::uint32_t kSamplingMinSlice = 4096;           // logits, or blocks cost more than they save
inline constexpr std::uint32_t kSamplingMaxCluster = 8;            // blocks
inline constexpr std::uint32_t kSamplingFilterShared = 48 * 1024;  // bytes beside the slice

// What a block has found in its slice of a row, in the workspace.
struct alignas(16) SamplingPart {
  std::uint64_t best;
  float max, sum;
};

struct SamplingParams {
  SamplingArgs args;
  SamplingOp op;
  DType token_type;
  std::uint32_t rows, vocabulary;
  std::uint32_t slice;        // logits of a block, a multiple of 16 bytes
  Divisor slices;             // of a row
  std::uint32_t blocks;       // of the device, which share rows; not of kFiltered
  std::uint32_t is_resident;  // a slice is kept in shared memory; of kFiltered
  std::uint32_t* counters;    // one for each row, and a part for each slice of each, in the workspace
  SamplingPart* parts;
};

// How blocks share rows as long as there are too few rows for the device; not of kFiltered.
struct SamplingShares {
  std::uint32_t slices, slice;  // of a row, and logits of each
};
__host__ __device__ constexpr SamplingShares sampling_shares(std::uint32_t rows, std::uint32_t vocabulary,
                                                             std::uint32_t pack, std::uint32_t blocks) {
  const std::uint32_t packs = (vocabulary - 1) / pack + 1, max_slices = (vocabulary - 1) / kSamplingMinSlice + 1;
  std::uint32_t slices = rows > WorkspaceHeader::kCounters ? 1 : blocks / (rows > 0 ? rows : 1);
  slices = slices < 1 ? 1 : slices > max_slices ? max_slices : slices;
  const std::uint32_t slice = ((packs - 1) / slices + 1) * pack;
  return {(vocabulary - 1) / slice + 1, slice};
}

Kernel<SamplingParams> sampling_kernel(SamplingOp op, DType type, Alignment alignment);

// What a row takes of the state, and what a launch adds to its offset.
__host__ __device__ constexpr std::uint64_t sampling_draws_of_row(std::uint64_t vocabulary) {
  return (vocabulary + 3) / 4;
}
__host__ __device__ constexpr std::uint64_t sampling_draws(std::uint64_t rows, std::uint64_t vocabulary) {
  return rows * sampling_draws_of_row(vocabulary);
}

}  // namespace cgrt::kernels
