// The two launches of a plan on rows, for arrays that are aligned and for others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/topology.h"

namespace cgrt::kernels {

template <class Params>
struct RowLaunch {
  Kernel<Params> kernel;
  LaunchConfig config = {};
  RowShares shares = {};
  RowSlices slices = {};
  std::size_t workspace_bytes = 0;  // of rows in slices
};

template <class Params>
struct RowLaunches {
  RowLaunch<Params> aligned, unaligned;

  const RowLaunch<Params>& of(Alignment alignment) const {
    return alignment == Alignment::kAligned ? aligned : unaligned;
  }
  std::size_t workspace_bytes() const { return std::max(aligned.workspace_bytes, unaligned.workspace_bytes); }
  std::uint64_t topology_id(std::size_t alignment) const {
    return topology_of_kernels({(alignment % 16 == 0 ? aligned : unaligned).config.attributes});
  }
};

}  // namespace cgrt::kernels
