// Memory that a launch needs beside its arrays. Plain: no Abseil. What callers promise is in workspace.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cgrt::kernels {

// Device memory, aligned to 256 bytes; of which `bytes` may be used.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

inline constexpr std::size_t kWorkspaceAlignment = 256;

// For kernels: how a workspace is divided. All families share its header: each launch finds there what the rules below
// say, whatever ran before, and restores it. Behind the header is scratch memory with undefined contents.
//
//   launches   a counter of tickets (published.cuh), whose upper half counts the launches that drew some
//   tagged     published words: 4 bytes of data and a tag of 4 bytes each. The tag is the number of the launch; a
//              launch that writes a word again uses a second tag in turn with it: that number with its top bit flipped
//              (2^30 where that gives 0). A launch that draws tickets reads only words that it writes itself, the first
//              ones. Numbers repeat after 2^32 launches. So that no old word can match then, each such launch also
//              zeroes one word that it does not use, a different one each time.
//   counters   of 4 bytes; zero between launches
//   parts      published words; zero between launches
struct WorkspaceHeader {
  static constexpr std::uint32_t kTaggedWords = 12288, kCounters = 960, kPartWords = 3584;

  alignas(kWorkspaceAlignment) std::uint64_t launches;
  alignas(kWorkspaceAlignment) std::uint64_t tagged[kTaggedWords];
  std::uint32_t counters[kCounters];
  std::uint64_t parts[kPartWords];
};
inline constexpr std::size_t kWorkspaceHeaderBytes = sizeof(WorkspaceHeader);
static_assert(kWorkspaceHeaderBytes == 128 * 1024);

inline WorkspaceHeader* header_of(const Workspace& workspace) { return static_cast<WorkspaceHeader*>(workspace.data); }
inline unsigned char* scratch_of(const Workspace& workspace) {
  return static_cast<unsigned char*>(workspace.data) + kWorkspaceHeaderBytes;
}

// Of a plan that needs the header, and so much behind it.
constexpr std::size_t workspace_with(std::size_t scratch_bytes) { return kWorkspaceHeaderBytes + scratch_bytes; }

}  // namespace cgrt::kernels
