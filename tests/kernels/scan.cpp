// Scans: each regime from both sides of its ends, three launches on one workspace with the same bits.
#include "cgrt_kernels/scan/scan.h"

#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/scan/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::ScanArgs;
using kernels::ScanDesc;
using kernels::ScanKind;
using kernels::ScanPlan;
using kernels::size_of;
using kernels::Workspace;

enum class Variant { kPlain, kInPlace, kMisaligned, kMisalignedApart };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kMisalignedApart: return " misaligned differently";
  }
  return "";
}

bool is_integer(DType type) { return type == DType::kInt32 || type == DType::kInt64; }

// A few random elements again and again; integers so large that sums wrap around.
Bytes elements(DType type, std::uint64_t count, std::uint32_t seed) {
  const Bytes some = random_elements(type, std::min<std::uint64_t>(count, 32771), 0, is_integer(type) ? 3e8 : 1, seed);
  Bytes bytes(count * size_of(type));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = some[i % some.size()];
  return bytes;
}

std::uint64_t integer(DType type, const Bytes& bytes, std::uint64_t i) {
  const auto value =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(read_element(type, &bytes[i * size_of(type)])));
  return type == DType::kInt32 ? value & 0xffffffff : value;
}

absl::Status differs(std::uint64_t row, std::uint64_t i, double expected, double found) {
  return absl::InternalError(absl::StrCat("row ", row, " column ", i, ": expected ", expected, ", found ", found));
}

absl::Status compare(const ScanDesc& desc, const Bytes& x, const Bytes& y) {
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    const std::uint64_t first = row * desc.columns;
    absl::Status status;
    if (is_integer(desc.type)) {
      const std::uint64_t mask = desc.type == DType::kInt32 ? 0xffffffff : ~std::uint64_t{0};
      kernels::scan_reference<std::uint64_t>(
          desc.kind, desc.columns, [&](std::uint64_t i) { return integer(desc.type, x, first + i); },
          [&](std::uint64_t i, std::uint64_t sum) {
            const std::uint64_t found = integer(desc.type, y, first + i);
            if ((sum & mask) != found)
              status.Update(differs(row, i, static_cast<double>(sum), static_cast<double>(found)));
          });
    } else {
      // Rounding of the result, and of a tree of at most 50 additions: 8 elements of a thread, 5 levels
      // of a warp, 8 packs, 4 levels of a block, and while looking back 4 + 5 + 2 and 1 for each group.
      const double of_sum = desc.type == DType::kFloat64 ? 50 * std::exp2(-53) : 50 * std::exp2(-24);
      const double of_result = desc.type == DType::kFloat16    ? std::exp2(-11)
                               : desc.type == DType::kBFloat16 ? std::exp2(-8)
                                                               : 0;
      double magnitude = 0;
      kernels::scan_reference<double>(
          desc.kind, desc.columns,
          [&](std::uint64_t i) {
            const double value = read_element(desc.type, &x[(first + i) * size_of(desc.type)]);
            magnitude += std::abs(value);
            return value;
          },
          [&](std::uint64_t i, double sum) {
            const double found = read_element(desc.type, &y[(first + i) * size_of(desc.type)]);
            const double allowed = of_sum * magnitude + of_result * std::abs(sum) * 1.001 + 3e-8;
            constexpr double kInfiniteFrom = 65520;  // as fp16
            const bool is_close = std::isinf(found)
                                      ? desc.type == DType::kFloat16 && std::abs(sum) + allowed >= kInfiniteFrom
                                      : std::abs(found - sum) <= allowed;
            if (!is_close) status.Update(differs(row, i, sum, found));
          });
    }
    CGRT_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// x, other data, and x again, on a workspace that held something else before it was initialized.
absl::Status check(const ScanDesc& desc, Variant variant) {
  const std::size_t size = size_of(desc.type), bytes = desc.rows * desc.columns * size;
  const std::size_t shift = variant == Variant::kMisaligned || variant == Variant::kMisalignedApart ? size : 0;
  const std::size_t out_shift = variant == Variant::kMisalignedApart ? 0 : shift;
  const Bytes x = elements(desc.type, desc.rows * desc.columns, 1),
              other = elements(desc.type, desc.rows * desc.columns, 2);
  CGRT_ASSIGN_OR_RETURN(const ScanPlan plan, kernels::plan_scan(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  ScanArgs launches[3];
  for (int i = 0; i < 3; ++i) {
    const Bytes& data = i == 1 ? other : x;
    if (variant == Variant::kInPlace) {
      CGRT_ASSIGN_OR_RETURN(launches[i].out, trial.output(data));
      launches[i].in = launches[i].out;
    } else {
      CGRT_ASSIGN_OR_RETURN(launches[i].out, trial.output(bytes, out_shift));
      if (i < 2) {
        CGRT_ASSIGN_OR_RETURN(launches[i].in, trial.input(data, shift));
      } else {
        launches[i].in = launches[0].in;
      }
    }
  }
  CGRT_ASSIGN_OR_RETURN(const Workspace workspace, trial.workspace(plan.workspace_bytes));
  for (ScanArgs& args : launches) args.workspace = workspace;
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) {
    absl::Status status = initialize_workspace(target, workspace);
    for (const ScanArgs& args : launches) {
      if (status.ok()) status = kernels::launch_scan(target, plan, args);
    }
    return status;
  }));
  CGRT_RETURN_IF_ERROR(compare(desc, x, trial.found(launches[0].out)));
  CGRT_RETURN_IF_ERROR(compare(desc, other, trial.found(launches[1].out)));
  if (trial.found(launches[0].out) != trial.found(launches[2].out)) {
    return absl::InternalError("equal input, other bits");
  }
  return absl::OkStatus();
}

// So many tiles that there are many groups of them. Ones, in place: the results are 1, 2, 3, ...
absl::Status check_long() {
  const ScanDesc desc{.type = DType::kInt32, .columns = (std::uint64_t{1} << 26) + 99999};
  CGRT_ASSIGN_OR_RETURN(const ScanPlan plan, kernels::plan_scan(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, DeviceBuffer::create(kDevice, desc.columns * 4));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer memory, DeviceBuffer::create(kDevice, plan.workspace_bytes));
  const Workspace workspace{memory.data(), memory.size_bytes()};
  CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));
  std::vector<std::uint32_t> y(desc.columns);
  for (int i = 0; i < 3; ++i) {
    CGRT_RETURN_IF_ERROR(fill32(stream.ref(), x.data(), 1, desc.columns));
    CGRT_RETURN_IF_ERROR(kernels::launch_scan(stream.ref(), plan, {x.data(), x.data(), workspace}));
  }
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), y.data(), x.data(), desc.columns * 4));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  for (std::uint64_t i = 0; i < y.size(); ++i) {
    if (y[i] != i + 1) return differs(0, i, static_cast<double>(i + 1), y[i]);
  }
  return absl::OkStatus();
}

// What is infinite, or too large for the type, stays so until the end of its row and no longer.
absl::Status check_extremes(DType type) {
  const std::uint64_t columns = 20000;
  std::vector<double> values(3 * columns, 0.0);
  values[columns + 5] = INFINITY;
  for (std::uint64_t i = 0; i < 100; ++i) values[2 * columns + 7000 + i] = 3e38;
  const Bytes x = to_elements(type, values);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(const ScanPlan plan,
                        kernels::plan_scan(kDevice, {.type = type, .rows = 3, .columns = columns}));
  ScanArgs args;
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(x.size()));
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(x));
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) {
    const absl::Status status = initialize_workspace(target, args.workspace);
    return status.ok() ? kernels::launch_scan(target, plan, args) : status;
  }));
  const std::vector<double> y = to_doubles(type, trial.found(args.out));
  for (std::uint64_t i = 0; i < columns; ++i) {
    if (y[i] != 0) return differs(0, i, 0, y[i]);
    if (y[columns + i] != (i < 5 ? 0.0 : INFINITY)) return differs(1, i, i < 5 ? 0.0 : INFINITY, y[columns + i]);
    if (std::isinf(y[2 * columns + i]) != (i >= 7001)) {
      // The first of them is finite where the type has it.
      if (i == 7000 && type == DType::kFloat16) continue;
      return differs(2, i, i < 7001 ? 0.0 : INFINITY, y[2 * columns + i]);
    }
  }
  return absl::OkStatus();
}

absl::Status check_refusals() {
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_scan(kDevice, {.columns = 0}).status(), "1 rows of 0 columns"));
  CGRT_RETURN_IF_ERROR(refused(kernels::plan_scan(kDevice, {.rows = 0, .columns = 1}).status(), "0 rows of 1 columns"));
  CGRT_RETURN_IF_ERROR(
      refused(kernels::plan_scan(kDevice, {.columns = std::uint64_t{1} << 60}).status(), "columns from 1 to"));
  CGRT_RETURN_IF_ERROR(
      refused(kernels::plan_scan(kDevice, {.columns = std::uint64_t{1} << 47}).status(), "tiles a row"));
  CGRT_RETURN_IF_ERROR(
      refused(kernels::plan_scan(kDevice, {.rows = std::uint64_t{1} << 30, .columns = std::uint64_t{1} << 20}).status(),
              "in all"));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 1 << 20));
  CGRT_ASSIGN_OR_RETURN(const ScanPlan plan, kernels::plan_scan(kDevice, {.columns = 1 << 16}));
  unsigned char* const data = buffer.as<unsigned char>();
  const auto launch = [&](void* out, const void* in, void* workspace) {
    return kernels::launch_scan(stream.ref(), plan, {out, in, {workspace, plan.workspace_bytes}});
  };
  CGRT_RETURN_IF_ERROR(refused(launch(nullptr, data, data), "inclusive scan: out is null"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, nullptr, data), "in is null"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data + 2, data), "is not aligned to 4 bytes"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data, nullptr), "workspace is null"));
  CGRT_RETURN_IF_ERROR(refused(launch(data, data, data + 16), "is not aligned to 256 bytes"));
  const Workspace small{data, plan.workspace_bytes - 1};
  CGRT_RETURN_IF_ERROR(refused(kernels::launch_scan(stream.ref(), plan, {data, data, small}), "the plan needs"));
  CGRT_RETURN_IF_ERROR(refused(kernels::initialize_workspace(stream.ref(), {nullptr, 1}), "workspace is null"));
  return refused(kernels::initialize_workspace(stream.ref(), {data + 16, 1}), "is not aligned to 256 bytes");
}

struct Matrix {
  std::uint64_t rows, columns;
};
// A thread has 8, 16 or 32 elements, so a warp 256, 512 or 1024, a block 16 times that, a tile 2048 to 8192. Below a
// quarter of a warp's elements some lanes share a row. Few rows are shared out otherwise, the more of them the shorter
// they are: so each length from both sides of that, too.
constexpr Matrix kMatrices[] = {
    {1, 1},     {3, 2},      {7, 31},    {70, 5},     {131, 16},   {67, 33},   {37, 64},   {35, 127},  {66, 128},
    {19, 129},  {18, 256},   {9, 257},   {5, 511},    {6, 512},    {5, 513},   {33, 1000}, {4, 1024},  {3, 1025},
    {3, 4095},  {2, 4096},   {2, 4097},  {3, 8191},   {2, 8192},   {2, 8193},  {3, 16384}, {2, 16385}, {1, 65536},
    {2, 70001}, {3, 128256}, {1, 99991}, {1, 262144}, {1, 262145}, {2, 767},   {3, 768},   {2, 769},   {3, 1536},
    {2, 1537},  {528, 7},    {529, 7},   {1300, 2},   {601, 16},   {530, 33},  {535, 64},  {533, 127}, {600, 128},
    {300, 129}, {270, 256},  {300, 257}, {300, 511},  {150, 512},  {150, 513}, {133, 700}, {300, 1025}};
constexpr Matrix kLargeMatrices[] = {{1, 1 << 20}, {1, (1 << 21) + 3}, {300, 8200}, {133, 20000}, {300, 70000}};
// Rows of so many bytes are more tiles of 64 KB than the device has multiprocessors: blocks take one after the
// other.
constexpr std::uint64_t kLongBytes = 12 << 20;
constexpr Matrix kRealMatrices[] = {{8192, 4096}, {256, 128256}, {1, (1 << 24) + 5}};

}  // namespace

void check_scan(Report& report) {
  const auto try_one = [&](DType type, const Matrix& matrix, ScanKind kind, Variant variant) {
    report.check(
        absl::StrCat(to_string(kind), " ", to_string(type), " ", matrix.rows, "x", matrix.columns, to_string(variant)),
        check({.type = type, .rows = matrix.rows, .columns = matrix.columns, .kind = kind}, variant));
  };
  for (const DType type :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    for (const Matrix& matrix : kMatrices) {
      if (report.is_simulated() && matrix.rows * matrix.columns > 1 << 16) continue;  // one host body serves all
      for (const Variant variant :
           {Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kMisalignedApart}) {
        try_one(type, matrix, ScanKind::kInclusive, variant);
      }
      try_one(type, matrix, ScanKind::kExclusive, Variant::kPlain);
      try_one(type, matrix, ScanKind::kExclusive, Variant::kMisaligned);
    }
    if (report.is_simulated()) continue;
    for (const Matrix& matrix : kLargeMatrices) {
      try_one(type, matrix, ScanKind::kInclusive, Variant::kPlain);
      try_one(type, matrix, ScanKind::kExclusive, Variant::kMisaligned);
    }
    const std::uint64_t columns = kLongBytes / size_of(type);
    try_one(type, {1, 2 * columns}, ScanKind::kInclusive, Variant::kPlain);
    try_one(type, {1, columns + 5}, ScanKind::kInclusive, Variant::kInPlace);
    try_one(type, {2, columns + 3}, ScanKind::kExclusive, Variant::kMisalignedApart);
  }
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    report.check(absl::StrCat("scan of extremes ", to_string(type)), check_extremes(type));
  }
  report.check("scan refuses", check_refusals());
  if (report.is_simulated()) return;
  for (const Matrix& matrix : kRealMatrices) try_one(DType::kFloat16, matrix, ScanKind::kInclusive, Variant::kPlain);
  report.check("scan of 2^26 ones", check_long());
}

void draw_scan(Draw& draw, Report& report) {
  ScanDesc desc{.type = draw.of({DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32,
                                 DType::kInt64})};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(8));
  desc.kind = draw.of({ScanKind::kInclusive, ScanKind::kExclusive});
  const Variant variant =
      draw.of({Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kMisalignedApart});
  report.check(absl::StrCat(to_string(desc.kind), " ", to_string(desc.type), " ", desc.rows, "x", desc.columns,
                            to_string(variant)),
               check(desc, variant));
}

}  // namespace cgrt::testing
