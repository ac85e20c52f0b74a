#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/cluster_barrier.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/matrix_load.cuh"
#include "cgrt_kernels/common/matrix_store.cuh"
#include "cgrt_kernels/common/mbarrier.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/tensor_copy.cuh"
#include "cgrt_kernels/common/wgmma.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/gemm/kernels.h"
#include "cgrt_kernels/gemm/reference.h"

namespace cgrt::kernels {
namespace {

#if __CUDA_ARCH__ >= 900

template <int kColumns, int kCluster, MatrixMajor kMajorOfB>
struct GemmShared {
  static constexpr int kStages = gemm_stages(kColumns);
  static constexpr std::uint32_t kBoxBytes = kGemmBox * kGemmBox * 2;
  static constexpr std::uint32_t kBytesOfA = kGemmRows * kGemmDepth * 2, kBytesOfB = kColumns * kGemmDepth * 2;

  alignas(1024) unsigned char a[kStages][kBytesOfA];
  alignas(1024) unsigned char b[kStages][kBytesOfB];
  alignas(1024) unsigned char d[2][2][kBoxBytes];  // two boxes of each warpgroup
  std::uint32_t biases[2][kColumns / 2];           // pairs, for each warpgroup
  BulkBarrier full[kStages];
  Mbarrier empty[kStages];
  BulkBarrier of_residual[2][2];  // of boxes in d

  // Asks for a stage: rows of a for this block, and of b the part that this block copies to all.
  __device__ __forceinline__ void copy(const GemmParams& p, int stage, std::uint32_t k, std::uint32_t row,
                                       std::uint32_t column, std::uint32_t rank) {
    full[stage].expect(kBytesOfA + kBytesOfB);
    copy_box(a[stage], p.maps[0], k, row, full[stage]);
    constexpr std::uint16_t kAll = (1 << kCluster) - 1;
    const auto copy_of_b = [&](unsigned char* to, std::uint32_t x, std::uint32_t y) {
      if constexpr (kCluster == 1) {
        copy_box(to, p.maps[1], x, y, full[stage]);
      } else {
        copy_box_to_blocks(to, p.maps[1], x, y, full[stage], kAll);
      }
    };
    // Boxes of b: the second half of the columns may be elsewhere.
    constexpr std::uint32_t kBoxColumns = kMajorOfB == MatrixMajor::kK ? kColumns / 2 : kGemmBox;
    constexpr std::uint32_t kBoxes = kColumns / kBoxColumns, kOwn = kBoxes / kCluster;
#pragma unroll
    for (std::uint32_t i = 0; i < kOwn; ++i) {
      const std::uint32_t box = rank * kOwn + i;
      const std::uint32_t at = column + box * kBoxColumns + (box < kBoxes / 2 ? 0 : p.second_half);
      unsigned char* const to = b[stage] + box * kBoxColumns * kGemmDepth * 2;
      if constexpr (kMajorOfB == MatrixMajor::kK) {
        copy_of_b(to, k, at);
      } else {
        copy_of_b(to, at, k);
      }
    }
  }
};

// Rows and columns of the tiles of a cluster, one after the other. Neighbours in time share rows and columns, which the
// L2 cache then has.
struct GemmTile {
  std::uint32_t row, column;
  __device__ __forceinline__ GemmTile(const GemmParams& p, std::uint32_t i) {
    const std::uint32_t of_group = p.group * p.column_tiles, first = i / of_group * p.group;
    const std::uint32_t rows = min(p.row_tiles - first, p.group), rest = i % of_group;
    row = first + rest % rows, column = rest / rows;
  }
};

__device__ __forceinline__ void meet_warpgroup(int number) {
  asm volatile("bar.sync %0, 128;" ::"r"(number + 1) : "memory");
}

template <class T>
__device__ __forceinline__ void add_pair(float* sums, std::uint32_t word) {
  float values[2];
  Word<T>::unpack(word, values);
  sums[0] += values[0], sums[1] += values[1];
}

__device__ __forceinline__ std::uint32_t load_pair(const void* array, std::uint64_t at) {
  return *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint16_t*>(array) + at);
}

// What the epilogue of a tile will read is asked for before its products: the residual into the L2 cache, and two
// elements of the bias, which it returns, for each thread.
template <int kColumns>
__device__ __forceinline__ std::uint32_t load_early(const GemmParams& p, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t thread = threadIdx.x % 128, own = column + 2 * thread;
  if (p.args.residual != nullptr && thread < 64 && row + thread < p.m) {
    prefetch_to_l2(static_cast<const std::uint16_t*>(p.args.residual) + std::uint64_t{row + thread} * p.n + column,
                   2 * min(static_cast<std::uint32_t>(kColumns), p.n - column));
  }
  return p.args.bias != nullptr && thread < kColumns / 2 && own < p.n ? load_pair(p.args.bias, own) : 0;
}

// Room for two boxes of a warpgroup, on their way to d. A residual's come first into the same places.
struct GemmBoxes {
  unsigned char (&places)[2][kGemmBox * kGemmBox * 2];
  BulkBarrier (&full)[2];
  std::uint32_t phase = 0;

  // One thread asks for a box of the residual.
  __device__ __forceinline__ void load_residual(const GemmParams& p, int box, std::uint32_t row, std::uint32_t column) {
    wait_for_reads_of_stores<0>();
    full[box % 2].expect(sizeof(places[0]));
    copy_box(places[box % 2], p.maps[3], column + box * kGemmBox, row, full[box % 2]);
  }
};

// 64 rows of sums, and of the residual of which two boxes are on their way, to d, box after box.
template <class T, int kColumns>
__device__ __forceinline__ void store_rows(const GemmParams& p, float (&sums)[kColumns / 2], GemmBoxes& boxes,
                                           std::uint32_t row, std::uint32_t column, int warpgroup) {
  constexpr int kBoxes = kColumns / static_cast<int>(kGemmBox);
  const std::uint32_t thread = threadIdx.x % 128, lane = thread % 32;
  const std::uint32_t own_row = thread / 32 * 16 + lane % 16;
  const bool has_residual = p.args.residual != nullptr;
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
    if (box * kGemmBox >= p.tile_columns) break;
    unsigned char* const to = boxes.places[box % 2];
    if (has_residual) {
      boxes.full[box % 2].wait(boxes.phase);
      if (box % 2 == 1) boxes.phase ^= 1;
    } else {
      if (thread == 0) {
        // The box before this one may still be read, unless it is in the same place: a tile of one box.
        if (p.tile_columns > kGemmBox) {
          wait_for_reads_of_stores<1>();
        } else {
          wait_for_reads_of_stores<0>();
        }
      }
      meet_warpgroup(warpgroup);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float* const own = sums + box * 32 + i * 8;  // of 16 columns
      unsigned char* const place = to + own_row * 128 + ((2 * i + lane / 16) ^ (own_row % 8)) * 16;
      std::uint32_t words[4];
      if (has_residual) {
        load_matrices(words, place);
#pragma unroll
        for (int j = 0; j < 4; ++j) add_pair<T>(own + 2 * j, words[j]);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) words[j] = Word<T>::pack({own[2 * j], own[2 * j + 1]});
      store_matrices(place, words);
    }
    fence_for_tensor_copies();
    meet_warpgroup(warpgroup);
    if (thread == 0) {
      store_box(p.maps[2], column + box * kGemmBox, row, to);
      end_store_group();
      if (has_residual && box + 2 < kBoxes) boxes.load_residual(p, box + 2, row, column);
    }
  }
}

// All but the residual. `bias` is what load_early() gave, `biases` room for that of all threads of the warpgroup.
template <class T, int kColumns>
__device__ __forceinline__ void apply_epilogue(const GemmParams& p, float (&sums)[kColumns / 2], std::uint32_t bias,
                                               std::uint32_t (&biases)[kColumns / 2], int warpgroup) {
  if (p.epilogue == MatmulEpilogue::kSiluGate) {
#pragma unroll
    for (int i = 0; i < kColumns / 4; ++i) sums[i] = silu_of(sums[i]) * sums[kColumns / 4 + i];
    return;
  }
  if (p.args.bias != nullptr) {
    const std::uint32_t thread = threadIdx.x % 128;
    if (thread < kColumns / 2) biases[thread] = bias;
    meet_warpgroup(warpgroup);
#pragma unroll
    for (int i = 0; i < kColumns / 4; ++i) {
      add_pair<T>(sums + 2 * i, biases[i / 2 * 4 + thread % 4]);
    }
  }
  if (p.epilogue == MatmulEpilogue::kGelu || p.epilogue == MatmulEpilogue::kGeluBias) {
#pragma unroll
    for (float& sum : sums) sum = gelu_tanh_of(sum);
  }
}

#endif

template <class T, int kColumns, int kCluster, MatrixMajor kMajorOfB>
__global__ void __launch_bounds__(kGemmThreads, 1) gemm(const __grid_constant__ GemmParams p) {
#if __CUDA_ARCH__ >= 900
  using Shared = GemmShared<kColumns, kCluster, kMajorOfB>;
  constexpr int kStages = Shared::kStages;
  static_assert(sizeof(Shared) + 1023 <= gemm_shared_bytes(kColumns));
  extern __shared__ unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared*>(memory + (0 - shared_address(memory)) % 1024);
  const std::uint32_t rank = blockIdx.x % kCluster, warpgroup = threadIdx.x / 128;
  const std::uint32_t tiles = p.row_tiles * p.column_tiles, step = gridDim.x / kCluster;

  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      shared.full[i].initialize();
      shared.empty[i].initialize(2 * kCluster);
    }
    for (auto& barriers : shared.of_residual) barriers[0].initialize(), barriers[1].initialize();
    make_barriers_visible_to_cluster();
    for (int i = 0; i < (p.args.residual != nullptr ? 4 : 3); ++i) prefetch_tensor_map(p.maps[i]);
  }
  if constexpr (kCluster > 1) {
    cooperative_groups::this_cluster().sync();
  } else {
    make_barriers_visible();
    __syncthreads();
  }
  wait_for_predecessors();

  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) {
      int stage = 0;
      std::uint32_t phase = 0;
      for (std::uint32_t i = blockIdx.x / kCluster; i < tiles; i += step) {
        const GemmTile tile(p, i);
        const std::uint32_t row = (tile.row * kCluster + rank) * kGemmRows, column = tile.column * p.tile_columns;
        for (std::uint32_t k = 0; k < p.stages; ++k) {
          shared.empty[stage].wait(phase ^ 1);
          shared.copy(p, stage, k * kGemmDepth, row, column, rank);
          if (++stage == kStages) stage = 0, phase ^= 1;
        }
      }
    }
    __syncwarp();
    let_dependents_start();
  } else {
    take_registers<232>();
    const int consumer = static_cast<int>(warpgroup) - 1;
    const auto release = [&](int stage) {
      const std::uint32_t thread = threadIdx.x % 128;
      if constexpr (kCluster == 1) {
        if (thread == 0) shared.empty[stage].arrive();
      } else {
        if (thread < kCluster) arrive_in_block(shared.empty[stage], thread);
      }
    };
    GemmBoxes boxes{shared.d[consumer], shared.of_residual[consumer]};
    int stage = 0;
    std::uint32_t phase = 0;
    for (std::uint32_t i = blockIdx.x / kCluster; i < tiles; i += step) {
      const GemmTile tile(p, i);
      const std::uint32_t row = (tile.row * kCluster + rank) * kGemmRows + consumer * 64;
      const std::uint32_t column = tile.column * p.tile_columns;
      const std::uint32_t bias = load_early<kColumns>(p, row, column);
      float sums[kColumns / 2];
      int before = 0;
      for (std::uint32_t k = 0; k < p.stages; ++k) {
        shared.full[stage].wait(phase);
        const std::uint64_t a = matrix_descriptor<MatrixMajor::kK>(shared.a[stage] + consumer * 64 * 128);
        const std::uint64_t b = matrix_descriptor<kMajorOfB>(shared.b[stage], Shared::kBoxBytes);
        fence_registers(sums);
        fence_products();
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          constexpr std::uint64_t kStepOfB = kMajorOfB == MatrixMajor::kK ? 2 : 128;
          multiply_add_shared<T, kColumns, kMajorOfB>(sums, a + 2 * j, b + kStepOfB * j, k > 0 || j > 0);
        }
        commit_products();
        fence_registers(sums);
        if (k > 0) {
          wait_for_products<1>();
          release(before);
        }
        before = stage;
        if (++stage == kStages) stage = 0, phase ^= 1;
      }
      if (p.args.residual != nullptr && threadIdx.x % 128 == 0) {
        boxes.load_residual(p, 0, row, column);
        boxes.load_residual(p, 1, row, column);
      }
      wait_for_products<0>();
      fence_registers(sums);
      release(before);
      if (i + step >= tiles) let_dependents_start();
      apply_epilogue<T, kColumns>(p, sums, bias, shared.biases[consumer], consumer);
      store_rows<T, kColumns>(p, sums, boxes, row, column, consumer);
    }
    if (threadIdx.x % 128 == 0) wait_for_reads_of_stores<0>();
  }
  // No block leaves before others have arrived at its barriers.
  if constexpr (kCluster > 1) cooperative_groups::this_cluster().sync();
#endif
}

template <class T>
void gemm_on_host(HostGrid, GemmParams p) {
  const MatmulDesc desc{.m = p.m, .n = p.n, .k = p.k, .b_layout = p.b_layout, .epilogue = p.epilogue};
  const auto element_of = [](const void* array) {
    return [array](std::uint64_t i) { return static_cast<double>(to_float(static_cast<const T*>(array)[i])); };
  };
  for (std::uint64_t row = 0; row < p.m; ++row) {
    for (std::uint64_t column = 0; column < p.n; ++column) {
      static_cast<T*>(p.args.d)[row * p.n + column] = from_float<T>(
          static_cast<float>(matmul_reference(desc, row, column, element_of(p.args.a), element_of(p.args.b),
                                              element_of(p.args.bias), element_of(p.args.residual))));
    }
  }
}

template <class T, int kColumns, int kCluster, MatrixMajor kMajorOfB>
Kernel<GemmParams> kernel_of() {
  return make_kernel<gemm<T, kColumns, kCluster, kMajorOfB>, gemm_on_host<T>,
                     KernelResources{.registers = 168, .max_threads = kGemmThreads}>();
}

template <class T, MatrixMajor kMajorOfB>
Kernel<GemmParams> kernel_of(GemmShape shape) {
  if (shape.columns == 256) {
    return shape.cluster == 2 ? kernel_of<T, 256, 2, kMajorOfB>() : kernel_of<T, 256, 1, kMajorOfB>();
  }
  return shape.cluster == 2 ? kernel_of<T, 128, 2, kMajorOfB>() : kernel_of<T, 128, 1, kMajorOfB>();
}

template <class T>
Kernel<GemmParams> kernel_of(MatmulLayout b_layout, GemmShape shape) {
  return b_layout == MatmulLayout::kTransposed ? kernel_of<T, MatrixMajor::kK>(shape)
                                               : kernel_of<T, MatrixMajor::kMn>(shape);
}

}  // namespace

Kernel<GemmParams> gemm_kernel(DType type, MatmulLayout b_layout, GemmShape shape) {
  return type == DType::kFloat16 ? kernel_of<__half>(b_layout, shape) : kernel_of<__nv_bfloat16>(b_layout, shape);
}

}  // namespace cgrt::kernels
