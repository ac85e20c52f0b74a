// The scan of short rows: a warp, or some of its lanes, for each row, and several rows at once, so that as many bytes
// are in flight as for longer ones.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/scan/tile.cuh"

namespace cgrt::kernels {

// A lane has kOfRow packs of each of its rows. 2^lane_bits lanes share a row: all where they have several packs.
template <class T, int kOfRow>
__global__ void __launch_bounds__(kScanRowsThreads, kScanRowsBlocks) scan_rows(const __grid_constant__ ScanParams p) {
  using Sum = typename ElementOf<T>::Sum;
  using Pack = typename ElementOf<T>::Pack;
  constexpr int kPack = kPackSize<T>, kRows = kScanThreadBytes / 16 / kOfRow;
  const std::uint32_t lanes = 1u << p.lane_bits, lane = threadIdx.x & (lanes - 1), thread_rows = 32 >> p.lane_bits;
  const std::uint32_t warp = blockIdx.x * (kScanRowsThreads / 32) + threadIdx.x / 32;
  const std::uint32_t first = warp * kRows * thread_rows + (threadIdx.x % 32 >> p.lane_bits);
  const T* const x = static_cast<const T*>(p.in);
  T* const y = static_cast<T*>(p.out);
  wait_for_predecessors();

  Tile tiles[kRows];
  Pack packs[kRows][kOfRow];
  const auto slot_of = [&](int k) { return (k * 32 + lane) * kPack; };
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::uint32_t row = first + r * thread_rows;
    tiles[r] = make_tile(x, row < p.rows ? p.columns : 0, row < p.rows ? row : 0, 0, lanes * kOfRow * kPack);
#pragma unroll
    for (int k = 0; k < kOfRow; ++k) {
      packs[r][k] = Pack{};
      if (is_inside<T>(slot_of(k), tiles[r].low, tiles[r].high)) {
        packs[r][k] = *reinterpret_cast<const Pack*>(x + tiles[r].at + slot_of(k));
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (tiles[r].low == 0 && tiles[r].high % kPack == 0) continue;
#pragma unroll
    for (int k = 0; k < kOfRow; ++k) {
      if (is_inside<T>(slot_of(k), tiles[r].low, tiles[r].high)) continue;
      load_edge(&packs[r][k], x + tiles[r].at + slot_of(k), slot_of(k), tiles[r].low, tiles[r].high);
    }
  }
  let_dependents_start();

  Sum before[kRows][kOfRow];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int k = 0; k < kOfRow; ++k) before[r][k] = sum_of<T>(packs[r][k]);
    scan_warp(before[r], lanes);
  }
  const bool is_packed = misaligned(y) == misaligned(x);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int k = 0; k < kOfRow; ++k) {
      forget_origin(packs[r][k]);
      const Pack result = scan_pack<T>(packs[r][k], before[r][k], p.is_exclusive);
      T* const to = y + tiles[r].at + slot_of(k);
      if (is_packed && is_inside<T>(slot_of(k), tiles[r].low, tiles[r].high)) {
        *reinterpret_cast<Pack*>(to) = result;
      } else {
        store_edge(to, &result, slot_of(k), tiles[r].low, tiles[r].high);
      }
    }
  }
}

}  // namespace cgrt::kernels
