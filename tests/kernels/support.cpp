#include "kernels/support.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "support/idle_sink.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::size_of;

constexpr std::size_t kGuard = 256;  // bytes before and after each array
std::size_t guard_behind = kGuard;
constexpr unsigned char kPoison = 0xfb;
std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
std::uint32_t seed_of_all = 0;

// The functions that the plans of a case loaded.
bool is_watched = false;
PFN_cuFuncLoad_v12040 load = nullptr;
std::set<CUfunction> loaded;

CUresult load_and_note(CUfunction function) {
  const CUresult result = load(function);
  if (result == CUDA_SUCCESS) loaded.insert(function);
  return result;
}

// Sees which kernels a launch asks for.
class LoadedKernels final : public IdleSink {
 public:
  absl::Status add_kernel(const KernelLaunch& launch, EdgeKind) override {
    CGRT_ASSIGN_OR_RETURN(const CUcontext in, context());
    const driver::ResolvedFunction* found = nullptr;
    const CUresult result = driver::resolve_function(*launch.kernel, in, &found);
    if (result != CUDA_SUCCESS) return driver::to_status(result, "cuKernelGetFunction");
    if (loaded.contains(found->function)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("its plan has not loaded kernel \"", launch.kernel->name, "\""));
  }
};

template <class T>
void put(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}
template <class T>
T get(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

void write_element(DType type, unsigned char* to, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case DType::kFloat32: return put(to, single);
    case DType::kFloat16: return put(to, __float2half_rn(single));
    case DType::kBFloat16: return put(to, __float2bfloat16_rn(single));
    case DType::kFloat64: return put(to, value);
    case DType::kInt32: return put(to, static_cast<std::int32_t>(value));
    case DType::kInt64: return put(to, static_cast<std::int64_t>(value));
  }
}

double read_element(DType type, const unsigned char* from) {
  switch (type) {
    case DType::kFloat32: return static_cast<double>(get<float>(from));
    case DType::kFloat16: return static_cast<double>(__half2float(get<__half>(from)));
    case DType::kBFloat16: return static_cast<double>(__bfloat162float(get<__nv_bfloat16>(from)));
    case DType::kFloat64: return get<double>(from);
    case DType::kInt32: return get<std::int32_t>(from);
    case DType::kInt64: return static_cast<double>(get<std::int64_t>(from));
  }
  return 0;
}

void set_seed(std::uint32_t seed) { seed_of_all = seed; }

Bytes random_elements(DType type, std::uint64_t count, double mean, double deviation, std::uint32_t seed) {
  seed += 64 * seed_of_all;
  // Drawn from so many: normal numbers cost more than all else that a test does on the host.
  constexpr std::size_t kDifferent = 1 << 14;
  const std::size_t size = size_of(type);
  std::mt19937 engine(seed);
  std::normal_distribution<double> values(mean, deviation);
  Bytes different(kDifferent * size), bytes(count * size);
  for (std::size_t i = 0; i < kDifferent; ++i) write_element(type, &different[i * size], values(engine));
  std::minstd_rand draw(seed + 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(&bytes[i * size], &different[(draw() >> 8) % kDifferent * size], size);
  }
  return bytes;
}

Bytes to_elements(DType type, const std::vector<double>& values) {
  Bytes bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) write_element(type, &bytes[i * size_of(type)], values[i]);
  return bytes;
}

std::vector<double> to_doubles(DType type, const Bytes& bytes, std::uint64_t first, std::uint64_t count) {
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = read_element(type, &bytes[(first + i) * size_of(type)]);
  return values;
}

std::vector<double> to_doubles(DType type, const Bytes& bytes) {
  return to_doubles(type, bytes, 0, bytes.size() / size_of(type));
}

absl::Status refused(const absl::Status& status, const char* text) {
  if (absl::IsInvalidArgument(status) && absl::StrContains(status.message(), text)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("expected a refusal with \"", text, "\", found: ", status.ToString()));
}

void watch_loading() {
  static driver::Api table = driver::api();
  load = table.FuncLoad;
  table.FuncLoad = load_and_note;
  driver::install(table);
  is_watched = true;
}

absl::StatusOr<Trial> Trial::create() {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  return Trial(std::move(stream));
}

void Trial::set_max_bytes(std::size_t bytes) {
  max_bytes = bytes;
  // Tools like memcheck then see what is read or written behind an array.
  guard_behind = bytes == std::numeric_limits<std::size_t>::max() ? kGuard : 0;
}
bool Trial::has_room_for(std::size_t bytes) { return bytes <= max_bytes; }

absl::StatusOr<void*> Trial::add(const Bytes& bytes, std::size_t shift, bool is_output) {
  if (!has_room_for(bytes.size())) return absl::CancelledError("larger than this run's arrays");
  const std::size_t begin = kGuard + shift;
  Bytes before(begin + bytes.size() + guard_behind, kPoison);
  std::copy(bytes.begin(), bytes.end(), before.begin() + static_cast<std::ptrdiff_t>(begin));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, before.size()));
  arrays_.push_back({std::move(buffer), begin, bytes.size(), is_output, std::move(before), {}});
  return arrays_.back().buffer.as<unsigned char>() + arrays_.back().begin;
}

absl::StatusOr<kernels::Workspace> Trial::workspace(std::size_t bytes) {
  if (bytes == 0) return kernels::Workspace{};
  const std::size_t max =
      std::exchange(max_bytes, std::numeric_limits<std::size_t>::max());  // not what a case is about
  const absl::StatusOr<void*> data = output(bytes);
  max_bytes = max;
  CGRT_RETURN_IF_ERROR(data.status());
  return kernels::Workspace{*data, bytes};
}

absl::StatusOr<void*> Trial::output(std::size_t bytes, std::size_t shift) {
  return add(Bytes(bytes, kPoison), shift, true);
}

absl::StatusOr<std::vector<Bytes>> Trial::attempt(absl::FunctionRef<absl::Status()> start) {
  std::vector<Bytes> found;
  for (const Array& array : arrays_) {
    CGRT_RETURN_IF_ERROR(copy(stream(), array.buffer.data(), array.before.data(), array.before.size()));
  }
  CGRT_RETURN_IF_ERROR(start());
  for (const Array& array : arrays_) {
    found.emplace_back(array.before.size());
    CGRT_RETURN_IF_ERROR(copy(stream(), found.back().data(), array.buffer.data(), found.back().size()));
  }
  CGRT_RETURN_IF_ERROR(stream().synchronize());
  return found;
}

absl::Status Trial::run(absl::FunctionRef<absl::Status(LaunchTarget)> step) {
  LoadedKernels kernels;
  if (is_watched) CGRT_RETURN_IF_ERROR(step(LaunchTarget::into(kernels)));
  CGRT_ASSIGN_OR_RETURN(const std::vector<Bytes> eager, attempt([&] { return step(stream()); }));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    CGRT_ASSIGN_OR_RETURN(const std::vector<Bytes> found, attempt([&] { return exec.launch(stream()); }));
    if (found != eager) {
      return absl::InternalError(graph == &captured ? "captured differs from eager" : "explicit differs from eager");
    }
  }
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    Array& array = arrays_[a];
    array.after = eager[a];
    for (std::size_t i = 0; i < array.before.size(); ++i) {
      const bool may_change = array.is_output && i >= array.begin && i < array.begin + array.size;
      if (may_change || array.after[i] == array.before[i]) continue;
      return absl::InternalError(absl::StrCat("array ", a, ": byte ", static_cast<std::int64_t>(i - array.begin),
                                              " of ", array.size, " was written"));
    }
  }
  return absl::OkStatus();
}

absl::Status Trial::run(const kernels::Workspace& workspace, absl::FunctionRef<absl::Status(LaunchTarget)> step) {
  return run([&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(initialize_workspace(target, workspace));
    return step(target);
  });
}

Bytes Trial::found(const void* data) const {
  for (const Array& array : arrays_) {
    if (array.buffer.as<unsigned char>() + array.begin != data || array.after.empty()) continue;
    const auto begin = array.after.begin() + static_cast<std::ptrdiff_t>(array.begin);
    return {begin, begin + static_cast<std::ptrdiff_t>(array.size)};
  }
  return {};
}

void Report::check(const std::string& name, const absl::Status& status) {
  loaded.clear();
  // A plan's or a launch's own answer, and none of the driver's.
  const bool is_refusal = absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
  if (drawn_from_ && is_refusal && !driver::cuda_result(status)) {
    ++refused_;
    std::string sentence;
    for (const char letter : std::string(status.message())) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(letter))) {
        sentence += letter;
      } else if (!absl::EndsWith(sentence, "#")) {
        sentence += '#';
      }
    }
    ++refusals_[sentence];
    return;
  }
  ++(status.ok() ? passed_ : absl::IsCancelled(status) ? left_out_ : failed_);
  if (status.ok() || absl::IsCancelled(status)) return;
  const std::string drawn = drawn_from_ ? absl::StrCat("draw ", *drawn_from_, ": ") : "";
  std::printf("  FAILED %s%s: %s\n", drawn.c_str(), name.c_str(), std::string(status.message()).c_str());
  std::fflush(stdout);
}

}  // namespace cgrt::testing
