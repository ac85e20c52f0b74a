// LaunchAttributes: what a launch asks for beside its grid, block and shared memory.
//
//   LaunchConfig config{.grid = 64, .block = 256, .attributes = {.cluster = {4}}};
//
// The same on every target: eager, captured and explicit. What CUDA orders instead of configuring
// (programmatic launch, launch completion) is an edge: see EdgeKind. Plain data; costs nothing while
// all are at their defaults.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "cgrt/driver/kernel_identity.h"

namespace cgrt {

enum class MemSyncDomain : std::uint8_t { kDefault, kRemote };

enum class AccessProperty : std::uint8_t { kNormal, kStreaming, kPersisting };

// Bytes that the L2 cache should treat apart: `hit` for the share `hit_ratio` of them (0 to 1), `miss` for the
// rest.
struct AccessPolicyWindow {
  void* base = nullptr;
  std::size_t bytes = 0;  // 0: no window
  float hit_ratio = 1;
  AccessProperty hit = AccessProperty::kPersisting, miss = AccessProperty::kStreaming;
  bool operator==(const AccessPolicyWindow&) const = default;
};

// How blocks of clusters are given to multiprocessors. Without a cluster it says nothing. CUDA answers "spread" for a
// captured kernel that asked for nothing (driver 580), so that what is read back is kDefault for both.
enum class ClusterScheduling : std::uint8_t { kDefault, kSpread, kLoadBalancing };

struct LaunchAttributes {
  bool cooperative = false;  // all blocks run at once, and may wait for each other
  // Blocks per cluster; the grid must be a multiple of it; (1, 1, 1): none. More than 8 of them: see
  // allow_large_clusters (launch/occupancy.h).
  Dim3 cluster = {};
  Dim3 preferred_cluster = {};  // a multiple of `cluster`, taken where it fits; (1, 1, 1): none
  ClusterScheduling cluster_scheduling = ClusterScheduling::kDefault;
  int priority = 0;  // lower runs first; 0: the stream's
  MemSyncDomain mem_sync_domain = MemSyncDomain::kDefault;
  int shared_carveout_percent = 0;  // of the L1 cache, preferred for shared memory; 0: CUDA's choice
  AccessPolicyWindow access_policy = {};

  bool operator==(const LaunchAttributes&) const = default;
  constexpr bool is_default() const { return *this == LaunchAttributes{}; }
};

namespace internal {

// The attributes as two launches are compared by: a window of 0 bytes is none, and a launch that names no cluster
// has the one that its kernel was compiled with.
LaunchAttributes normal_form(LaunchAttributes attributes, const Dim3& compiled_cluster);

// Whether an executable that has `ours` can run a node that wants `theirs`: all but the priority, which counts only
// in executables that use the nodes' own, where the driver compares it.
bool are_interchangeable(const LaunchAttributes& ours, const LaunchAttributes& theirs);

// The driver's form of those that are not at their defaults; returns how many.
inline constexpr std::size_t kMaxLaunchAttributes = 8;
unsigned to_driver(const LaunchAttributes& attributes, CUlaunchAttribute (&out)[kMaxLaunchAttributes]);

}  // namespace internal
}  // namespace cgrt
