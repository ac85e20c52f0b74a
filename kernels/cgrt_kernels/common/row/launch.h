// The two launches of a plan on rows, for arrays that are aligned and for others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/topology.h"

namespace cgrt::kernels {

// A kernel that comes after the first of a launch, has the same parameters, and waits for it by such an edge.
template <class Params>
struct SecondLaunch {
  Kernel<Params> kernel;
  LaunchConfig config;
  EdgeKind edge;
};

template <class Params>
struct RowLaunch {
  Kernel<Params> kernel;
  LaunchConfig config = {};
  RowShares shares = {};
  RowSlices slices = {};
  std::optional<SecondLaunch<Params>> second = {};  // of rows in chunks
  std::size_t workspace_bytes = 0;                  // of rows in slices or in chunks

  std::vector<LaunchAttributes> attributes() const {
    std::vector<LaunchAttributes> all = {config.attributes};
    if (second) all.push_back(second->config.attributes);
    return all;
  }
  EdgeKind edge() const { return second ? second->edge : EdgeKind::kFull; }
};
template <class Params>
struct RowLaunches {
  RowLaunch<Params> aligned, unaligned;

  const RowLaunch<Params>& of(Alignment alignment) const {
    return alignment == Alignment::kAligned ? aligned : unaligned;
  }
  std::size_t workspace_bytes() const { return std::max(aligned.workspace_bytes, unaligned.workspace_bytes); }
  std::uint64_t topology_id(std::size_t alignment) const {
    const RowLaunch<Params>& chosen = alignment % 16 == 0 ? aligned : unaligned;
    return topology_of_kernels(chosen.attributes(), chosen.edge());
  }
};

}  // namespace cgrt::kernels
