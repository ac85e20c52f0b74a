// kernel_tests simulator|gpu: every kernel family against its reference in double, over shapes and
// types, eager, captured and explicit with the same bits. Exit 0: all equal; 1: some are not; 77: no
// device.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/rows/op_reference.h"
#include "cgrt_kernels/rows/rows.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::RowOp;
using kernels::RowsArgs;
using kernels::RowsDesc;
using kernels::RowsPlan;
using kernels::size_of;

constexpr DeviceRef kDevice(0);
constexpr std::size_t kGuard = 64;  // bytes before and after each result that must stay as they are
constexpr unsigned char kPoison = 0xfb;

using Bytes = std::vector<unsigned char>;

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

void write_element(DType type, unsigned char* to, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case DType::kFloat32: return put(to, single);
    case DType::kFloat16: return put(to, __float2half_rn(single));
    case DType::kBFloat16: return put(to, __float2bfloat16_rn(single));
  }
}
double read_element(DType type, const unsigned char* from) {
  switch (type) {
    case DType::kFloat32: return static_cast<double>(get<float>(from));
    case DType::kFloat16: return static_cast<double>(__half2float(get<__half>(from)));
    case DType::kBFloat16: return static_cast<double>(__bfloat162float(get<__nv_bfloat16>(from)));
  }
  return 0;
}

Bytes random_elements(DType type, std::uint64_t count, double mean, double deviation, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> values(mean, deviation);
  Bytes bytes(count * size_of(type));
  for (std::uint64_t i = 0; i < count; ++i) write_element(type, &bytes[i * size_of(type)], values(engine));
  return bytes;
}

std::vector<double> to_doubles(DType type, const Bytes& bytes, std::uint64_t first, std::uint64_t count) {
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = read_element(type, &bytes[(first + i) * size_of(type)]);
  return values;
}

absl::StatusOr<DeviceBuffer> upload(StreamRef stream, const Bytes& bytes) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, bytes.size()));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), bytes.data(), bytes.size()));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

enum class Variant { kPlain, kInPlace, kMisaligned, kNoWeights };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kNoWeights: return " without weights";
  }
  return "";
}

// Rounding of the result, and of a sum of `columns` floats. A norm of values around 0.5 subtracts
// their mean, so what is left near 0 has the rounding of the values.
bool is_close(RowOp op, DType type, double expected, double found) {
  const double rounding = type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  const double smallest = op == RowOp::kLayerNorm ? 1e-6 : type == DType::kFloat16 ? 6e-8 : 1e-9;
  return std::isfinite(found) && std::abs(found - expected) <= rounding * (std::abs(expected) + 1e-3) + smallest;
}

absl::Status check_rows(const RowsDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), count = desc.rows * desc.columns;
  const std::size_t shift = variant == Variant::kMisaligned ? size : 0;
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(const RowsPlan plan, kernels::plan_rows(kDevice, desc));
  const Bytes x = random_elements(desc.type, count, 0.5, 3, 1),
              weight = random_elements(desc.type, desc.columns, 1, 1, 2),
              bias = random_elements(desc.type, desc.columns, 0, 1, 3);

  Bytes poisoned(kGuard + shift + count * size + kGuard, kPoison), with_x = poisoned;
  std::copy(x.begin(), x.end(), with_x.begin() + static_cast<std::ptrdiff_t>(kGuard + shift));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, upload(stream.ref(), with_x));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, upload(stream.ref(), poisoned));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer weights, upload(stream.ref(), weight));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer biases, upload(stream.ref(), bias));
  const bool in_place = variant == Variant::kInPlace, weighted = variant != Variant::kNoWeights;
  const DeviceBuffer& result = in_place ? in : out;
  const RowsArgs args{.out = result.as<unsigned char>() + kGuard + shift,
                      .in = in.as<unsigned char>() + kGuard + shift,
                      .weight = weighted ? weights.data() : nullptr,
                      .bias = weighted ? biases.data() : nullptr};
  const auto step = [&](LaunchTarget target) { return kernels::launch_rows(target, plan, args); };

  const Bytes& before = in_place ? with_x : poisoned;
  const auto run = [&](auto start) -> absl::StatusOr<Bytes> {
    CGRT_RETURN_IF_ERROR(copy(stream.ref(), result.data(), before.data(), before.size()));
    CGRT_RETURN_IF_ERROR(start());
    Bytes found(before.size());
    CGRT_RETURN_IF_ERROR(copy(stream.ref(), found.data(), result.data(), found.size()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return found;
  };
  CGRT_ASSIGN_OR_RETURN(const Bytes eager, run([&] { return step(stream.ref()); }));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    CGRT_ASSIGN_OR_RETURN(const Bytes found, run([&] { return exec.launch(stream.ref()); }));
    if (found != eager) {
      return absl::InternalError(graph == &captured ? "captured differs from eager" : "explicit differs from eager");
    }
  }

  for (std::size_t i = 0; i < eager.size(); ++i) {
    if (i >= kGuard + shift && i < kGuard + shift + count * size) continue;
    if (eager[i] != kPoison) return absl::InternalError(absl::StrCat("byte ", i, " outside the result was written"));
  }
  const Bytes y(eager.begin() + static_cast<std::ptrdiff_t>(kGuard + shift), eager.end());
  const std::vector<double> w = to_doubles(desc.type, weight, 0, desc.columns);
  const std::vector<double> b = to_doubles(desc.type, bias, 0, desc.columns);
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    std::vector<double> expected = to_doubles(desc.type, x, row * desc.columns, desc.columns);
    kernels::row_reference(desc.op, expected, weighted ? w.data() : nullptr, weighted ? b.data() : nullptr,
                           static_cast<double>(desc.epsilon));
    const std::vector<double> found = to_doubles(desc.type, y, row * desc.columns, desc.columns);
    for (std::uint64_t i = 0; i < desc.columns; ++i) {
      if (is_close(desc.op, desc.type, expected[i], found[i])) continue;
      return absl::InternalError(
          absl::StrCat("row ", row, " column ", i, ": expected ", expected[i], ", found ", found[i]));
    }
  }
  return absl::OkStatus();
}

int failures = 0, passed = 0;

void report(const std::string& name, const absl::Status& status) {
  if (status.ok()) {
    ++passed;
    return;
  }
  ++failures;
  std::printf("  FAILED %s: %s\n", name.c_str(), std::string(status.message()).c_str());
}

struct Matrix {
  std::uint64_t rows, columns;
};
// Each regime from both sides of its ends: warps, blocks, spread blocks, clusters, any.
constexpr Matrix kMatrices[] = {{1, 1},      {3, 7},      {5, 111},      {7, 8},       {9, 128},    {4, 256},
                                {33, 264},   {6, 512},    {2, 520},      {6, 1000},    {201, 1024}, {5, 1032},
                                {150, 1032}, {1, 4096},   {300, 4096},   {3, 4097},    {2, 5120},   {140, 5120},
                                {3, 8192},   {133, 8192}, {1, 16384},    {133, 16384}, {2, 32768},  {133, 32768},
                                {1, 128256}, {2, 131072}, {133, 131072}, {1, 151936},  {1, 262144}, {2, 50257}};

void check_all_rows(bool simulated) {
  for (const RowOp op : {RowOp::kSoftmax, RowOp::kLogSoftmax, RowOp::kLayerNorm, RowOp::kRmsNorm}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const auto& [rows, columns] : kMatrices) {
        if (simulated && rows * columns > 1 << 18) continue;  // one host body serves all shapes
        for (const Variant variant : {Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kNoWeights}) {
          if (variant != Variant::kPlain && rows * columns > 1 << 21) continue;
          const RowsDesc desc{op, type, rows, columns};
          report(absl::StrCat(to_string(op), " ", to_string(type), " ", rows, "x", columns, to_string(variant)),
                 check_rows(desc, variant));
        }
      }
    }
  }
}

}  // namespace
}  // namespace cgrt::testing

int main(int argc, char** argv) {
  using namespace cgrt::testing;
  const std::string backend = argc == 2 ? argv[1] : "";
  if (backend != "simulator" && backend != "gpu") {
    std::fputs("usage: kernel_tests simulator|gpu\n", stderr);
    return 2;
  }
  std::unique_ptr<cgrt::Simulator> simulator;
  if (backend == "simulator") simulator = std::make_unique<cgrt::Simulator>();
  const absl::StatusOr<int> devices = cgrt::device_count();
  if (!devices.ok() || *devices == 0) {
    std::printf("skipped: no CUDA device (%s)\n", std::string(devices.status().message()).c_str());
    return std::getenv("CGRT_REQUIRE_GPU") != nullptr ? 1 : 77;
  }
  check_all_rows(backend == "simulator");
  std::printf("kernels on %s: %d passed, %d failed\n", kDevice.name().value_or("?").c_str(), passed, failures);
  return failures == 0 ? 0 : 1;
}
