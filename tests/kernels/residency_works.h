// A launch of each kernel of which blocks wait for others, and some of each family, for tests of when they end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/cgrt.h"
#include "kernels/support.h"

namespace cgrt::testing {

// Memory on the device that lives as long as the works do.
class Arena {
 public:
  // `scale` divides the rows of all shapes.
  static absl::StatusOr<Arena> create(std::uint64_t scale);

  StreamRef stream() const { return stream_.ref(); }
  std::uint64_t rows(std::uint64_t count) const { return count / scale_ != 0 ? count / scale_ : 1; }
  // Random numbers of any type: of 4 bytes, so many that a work finds as many bytes as it likes.
  absl::StatusOr<void*> input(std::size_t bytes);
  absl::StatusOr<void*> numbers(kernels::DType type, std::uint64_t count);
  // Zeros.
  absl::StatusOr<void*> output(std::size_t bytes) { return filled(bytes, 0); }
  absl::StatusOr<void*> filled(std::size_t bytes, std::uint32_t word);
  absl::StatusOr<kernels::Workspace> workspace(std::size_t bytes);  // initialized
  absl::StatusOr<std::int64_t*> indices(std::uint64_t count, std::uint64_t below);

 private:
  Arena(Stream stream, std::uint64_t scale) : stream_(std::move(stream)), scale_(scale) {}
  Stream stream_;
  std::uint64_t scale_;
  std::deque<DeviceBuffer> buffers_;
  void* input_ = nullptr;
  std::size_t input_bytes_ = 0;
};

struct Work {
  std::function<absl::Status(LaunchTarget)> launch;
  void* out = nullptr;
  std::size_t out_bytes = 0;
  unsigned char before = 0xCB;  // each byte of `out` before a launch
};

struct NamedWork {
  std::string name;
  std::function<absl::StatusOr<Work>(Arena&)> make;  // each time with memory of its own
};
std::vector<NamedWork> residency_works();

}  // namespace cgrt::testing
