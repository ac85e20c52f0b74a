// What the families' tests share: elements as doubles, and a launch tried on every target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/cgrt.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace.h"

namespace cgrt::testing {

inline constexpr DeviceRef kDevice(0);

using Bytes = std::vector<unsigned char>;

void write_element(kernels::DType type, unsigned char* to, double value);
double read_element(kernels::DType type, const unsigned char* from);

// Normally distributed, rounded to the type; some thousand different ones. They depend on `set_seed`, too.
void set_seed(std::uint32_t seed);
Bytes random_elements(kernels::DType type, std::uint64_t count, double mean, double deviation, std::uint32_t seed);
Bytes to_elements(kernels::DType type, const std::vector<double>& values);
std::vector<double> to_doubles(kernels::DType type, const Bytes& bytes);
std::vector<double> to_doubles(kernels::DType type, const Bytes& bytes, std::uint64_t first, std::uint64_t count);

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* const data = reinterpret_cast<const unsigned char*>(values.data());
  return {data, data + values.size() * sizeof(T)};
}

// Fails unless `status` is a refusal with `text` in its sentence.
absl::Status refused(const absl::Status& status, const char* text);

// From now on a Trial fails where a kernel was not loaded by a plan of its case: its first launch would load it,
// perhaps inside a capture, or wait for a kernel that waits for what follows.
void watch_loading();

// Arrays in device memory, each between guards, and a launch that is tried on them eagerly, captured
// and explicitly. Arrays have their first bytes again before each try.
class Trial {
 public:
  static absl::StatusOr<Trial> create();

  // A case with a larger array is cancelled, so left out: for tools under which large ones take minutes. Arrays then
  // end where their allocations do.
  static void set_max_bytes(std::size_t bytes);
  static bool has_room_for(std::size_t bytes);

  // `shift` bytes behind an address that is aligned to 256. What is not for writing must stay as it is.
  absl::StatusOr<void*> input(const Bytes& bytes, std::size_t shift = 0) { return add(bytes, shift, false); }
  absl::StatusOr<void*> output(const Bytes& bytes, std::size_t shift = 0) { return add(bytes, shift, true); }
  // Poison before each try.
  absl::StatusOr<void*> output(std::size_t bytes, std::size_t shift = 0);

  // Poison before each try, so for steps that initialize it. {} when there are no bytes.
  absl::StatusOr<kernels::Workspace> workspace(std::size_t bytes);

  // Fails when a launch fails, when targets give different bits, and when bytes outside of outputs change.
  absl::Status run(absl::FunctionRef<absl::Status(LaunchTarget)> step);

  // The same; each try initializes the workspace first.
  absl::Status run(const kernels::Workspace& workspace, absl::FunctionRef<absl::Status(LaunchTarget)> step);

  // After run.
  Bytes found(const void* data) const;

  StreamRef stream() const { return stream_.ref(); }

 private:
  struct Array {
    DeviceBuffer buffer;
    std::size_t begin, size;  // of the array in the buffer
    bool is_output;
    Bytes before, after;  // of the whole buffer
  };

  explicit Trial(Stream stream) : stream_(std::move(stream)) {}
  absl::StatusOr<void*> add(const Bytes& bytes, std::size_t shift, bool is_output);
  absl::StatusOr<std::vector<Bytes>> attempt(absl::FunctionRef<absl::Status()> start);

  Stream stream_;
  std::vector<Array> arrays_;
};

// Counts, and prints what fails.
class Report {
 public:
  explicit Report(bool is_simulated) : is_simulated_(is_simulated) {}
  void check(const std::string& name, const absl::Status& status);
  // Cases drawn from this seed follow. A plan may refuse what is drawn: that is counted, and its sentence kept.
  void begin_draw(std::uint32_t seed) { drawn_from_ = seed; }
  bool is_simulated() const { return is_simulated_; }  // big shapes may then be left out
  int passed() const { return passed_; }
  int failed() const { return failed_; }
  int left_out() const { return left_out_; }
  int refused() const { return refused_; }
  const std::map<std::string, int>& refusals() const { return refusals_; }  // sentences without their numbers

 private:
  bool is_simulated_;
  std::optional<std::uint32_t> drawn_from_;
  int passed_ = 0, failed_ = 0, left_out_ = 0, refused_ = 0;
  std::map<std::string, int> refusals_;
};

#define CGRT_KERNEL_FAMILY(name) void check_##name(Report& report);
#include "kernels/families.def"
#undef CGRT_KERNEL_FAMILY

}  // namespace cgrt::testing
