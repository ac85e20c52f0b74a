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
  // The size `shift`: so many elements behind an aligned address each array begins (make_array, make_output).
  std::uint64_t shift() const { return size_or("shift", 0); }
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
absl::StatusOr<Work> make_bias_activation(const Case& test);
absl::StatusOr<Work> make_bias_norm(const Case& test);
absl::StatusOr<Work> make_transpose_heads(const Case& test);
absl::StatusOr<Work> make_reduce(const Case& test);
absl::StatusOr<Work> make_reduce_ladder(const Case& test);
absl::StatusOr<Work> make_atomics(const Case& test);
absl::StatusOr<Work> make_cub_reduce(const Case& test);
absl::StatusOr<Work> make_rope(const Case& test);
absl::StatusOr<Work> make_skinny_gemm(const Case& test);
absl::StatusOr<Work> make_sampling(const Case& test);
absl::StatusOr<Work> make_scan(const Case& test);
absl::StatusOr<Work> make_cub(const Case& test);
absl::StatusOr<Work> make_attention(const Case& test);
absl::StatusOr<Work> make_decode_attention(const Case& test);
absl::StatusOr<Work> make_dropout(const Case& test);
absl::StatusOr<Work> make_elementwise(const Case& test);
absl::StatusOr<Work> make_gemm(const Case& test);  // and matmul, where there is cuBLASLt
absl::StatusOr<Work> make_gemm_ladder(const Case& test);
absl::StatusOr<Work> make_group_norm(const Case& test);
absl::StatusOr<Work> make_batch_norm(const Case& test);
absl::StatusOr<Work> make_topk(const Case& test);
absl::StatusOr<Work> make_upsample(const Case& test);
absl::StatusOr<Work> make_index(const Case& test);
absl::StatusOr<Work> make_bandwidth(const Case& test);
absl::StatusOr<Work> make_decode_step(const Case& test);  // of another kernel

// A buffer of numbers up to two; they repeat after a million.
absl::StatusOr<DeviceBuffer> make_numbers(StreamRef stream, kernels::DType type, std::uint64_t count,
                                          std::uint32_t seed);

// Memory of an initialized workspace of so many bytes at least.
absl::StatusOr<DeviceBuffer> make_workspace(StreamRef stream, std::size_t bytes);
inline kernels::Workspace workspace_in(const DeviceBuffer& buffer) { return {buffer.data(), buffer.size_bytes()}; }

// A buffer whose array begins behind its first bytes. Owns it: keep it where the launches are.
struct Array {
  DeviceBuffer buffer;
  std::size_t skipped_bytes = 0;

  void* data() const { return buffer.as<unsigned char>() + skipped_bytes; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
};

// Arrays of `count` elements that begin test.shift() elements behind an aligned address: of numbers as
// make_numbers has them, and one that a kernel writes first.
absl::StatusOr<Array> make_array(const Case& test, StreamRef stream, kernels::DType type, std::uint64_t count,
                                 std::uint32_t seed);
absl::StatusOr<Array> make_output(const Case& test, kernels::DType type, std::uint64_t count);

}  // namespace cgrt::bench
