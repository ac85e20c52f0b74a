// What kernelbench asks of a family of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/cgrt.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace.h"

namespace cgrt::bench {

inline constexpr DeviceRef kDevice(0);

// One line of the table: a kernel, its element type and its sizes by name.
struct Case {
  std::string kernel;
  kernels::DType type = kernels::DType::kFloat32;
  std::map<std::string, std::uint64_t> sizes;
  bool is_chain = false;  // in place: each launch reads what the one before has written

  // kInvalidArgument when the size is not there and has no default.
  absl::StatusOr<std::uint64_t> size(const std::string& name) const;
  std::uint64_t size_or(const std::string& name, std::uint64_t otherwise) const;
};

// One launch on buffers of its own, into any target.
using Launch = std::function<absl::Status(LaunchTarget)>;

struct Work {
  std::size_t bytes = 0;  // that one launch touches: says how many sets of buffers keep the cache cold
  std::function<absl::StatusOr<Launch>(StreamRef, std::uint32_t seed)> make;
  std::function<absl::Status(StreamRef)> reset = {};  // before each sample, not timed; may be empty
};

// Of whichever family has the kernel.
absl::StatusOr<Work> make_work(const Case& test);

// kNotFound for a kernel that is not of this family.
absl::StatusOr<Work> make_softmax(const Case& test);
absl::StatusOr<Work> make_norm(const Case& test);
absl::StatusOr<Work> make_reduce(const Case& test);
absl::StatusOr<Work> make_reduce_ladder(const Case& test);
absl::StatusOr<Work> make_atomics(const Case& test);
absl::StatusOr<Work> make_cub_reduce(const Case& test);
absl::StatusOr<Work> make_scan(const Case& test);
absl::StatusOr<Work> make_elementwise(const Case& test);
absl::StatusOr<Work> make_batch_norm(const Case& test);
absl::StatusOr<Work> make_upsample(const Case& test);
absl::StatusOr<Work> make_index(const Case& test);
absl::StatusOr<Work> make_ceiling(const Case& test);

// A buffer of numbers up to two; they repeat after a million.
absl::StatusOr<DeviceBuffer> make_numbers(StreamRef stream, kernels::DType type, std::uint64_t count,
                                          std::uint32_t seed);

inline void* at(const DeviceBuffer& buffer, std::size_t offset) {
  return static_cast<unsigned char*>(buffer.data()) + offset;
}

// Memory of an initialized workspace of so many bytes at least.
absl::StatusOr<DeviceBuffer> make_workspace(StreamRef stream, std::size_t bytes);
inline kernels::Workspace workspace_in(const DeviceBuffer& buffer) { return {buffer.data(), buffer.size_bytes()}; }

}  // namespace cgrt::bench
