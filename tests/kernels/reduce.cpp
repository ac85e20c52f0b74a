// Reductions of arrays, rows and columns, and dot products, each regime from both sides of its ends.
#include "cgrt_kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/reduce/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::ReduceArgs;
using kernels::ReduceDesc;
using kernels::ReduceOp;
using kernels::ReduceOver;
using kernels::ReducePlan;
using kernels::result_type;
using kernels::size_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_integer(DType type) { return type == DType::kInt32 || type == DType::kInt64; }

const char* to_string(ReduceOver over) {
  return over == ReduceOver::kAll ? " all of " : over == ReduceOver::kRow ? " rows of " : " columns of ";
}
std::string name_of(const ReduceDesc& desc) {
  return absl::StrCat(to_string(desc.op), " ", to_string(desc.type), to_string(desc.over), desc.rows, "x",
                      desc.columns);
}

// Random numbers, the same again after 65,537 of them: large arrays are made in no time. Sums of the
// integers need more than 32 bits.
Bytes elements(DType type, std::uint64_t count, std::uint32_t seed) {
  static std::map<std::pair<DType, std::uint32_t>, Bytes>* const made =
      new std::map<std::pair<DType, std::uint32_t>, Bytes>;
  Bytes& period = (*made)[{type, seed}];
  const double scale = type == DType::kInt32 ? 1e8 : type == DType::kInt64 ? 1e15 : 1;
  if (period.empty()) period = random_elements(type, 65537, 0.5 * scale, 3 * scale, seed);
  Bytes bytes(count * size_of(type));
  for (std::size_t at = 0; at < bytes.size(); at += period.size()) {
    std::copy_n(period.begin(), std::min(period.size(), bytes.size() - at),
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

std::int64_t integer(DType type, const Bytes& bytes, std::uint64_t i) {
  std::int32_t narrow;
  std::int64_t wide;
  if (type == DType::kInt64) return std::memcpy(&wide, &bytes[i * 8], 8), wide;
  return std::memcpy(&narrow, &bytes[i * 4], 4), narrow;
}

struct Data {
  Bytes x, y;
};

// The elements that result r is made of.
struct Elements {
  std::uint64_t count, first, stride;
};
Elements elements_of(const ReduceDesc& desc, std::uint64_t r) {
  switch (desc.over) {
    case ReduceOver::kAll: return {desc.rows * desc.columns, 0, 1};
    case ReduceOver::kRow: return {desc.columns, r * desc.columns, 1};
    case ReduceOver::kColumn: break;
  }
  return {desc.rows, r, desc.columns};
}

// Sums are off by the rounding of the float additions that a result has gone through one after the
// other, some tens of them and of random sign, relative to the sum of magnitudes; of float64 what counts is the
// rounding of the reference, which adds all up one after the other. All else is exact.
absl::Status compare(const ReduceDesc& desc, const Data& data, const Bytes& found, std::uint64_t r) {
  const auto [count, first, stride] = elements_of(desc, r);
  const DType result = result_type(desc.op, desc.type);
  const auto wrong = [&](auto expected, auto is) {
    return absl::InternalError(absl::StrCat("result ", r, ": expected ", expected, ", found ", is));
  };
  const std::uint64_t from = first, step = stride;
  if (is_integer(desc.type)) {
    const std::int64_t expected = kernels::reduce_reference(
        desc.op, count, [&](std::uint64_t i) { return integer(desc.type, data.x, from + i * step); });
    const std::int64_t is = integer(result, found, r);
    return is == expected ? absl::OkStatus() : wrong(expected, is);
  }
  const std::size_t size = size_of(desc.type);
  double magnitude = 0;
  const double expected = kernels::reduce_reference(desc.op, count, [&](std::uint64_t i) {
    double value = read_element(desc.type, &data.x[(from + i * step) * size]);
    if (desc.op == ReduceOp::kDot) value *= read_element(desc.type, &data.y[(from + i * step) * size]);
    magnitude += desc.op == ReduceOp::kSumOfSquares ? value * value : std::abs(value);
    return value;
  });
  const double is = read_element(result, &found[r * size_of(result)]);
  if (expected == is || (std::isnan(expected) && std::isnan(is))) return absl::OkStatus();
  const bool is_exact = desc.op == ReduceOp::kMin || desc.op == ReduceOp::kMax || desc.op == ReduceOp::kArgmax;
  const double rounding = is_exact                       ? 0
                          : desc.type == DType::kFloat64 ? 1e-14 + 1.2e-16 * static_cast<double>(count)
                                                         : 4e-6;
  if (desc.op == ReduceOp::kMean) magnitude /= static_cast<double>(count);
  if (std::isfinite(is) && std::abs(is - expected) <= rounding * magnitude) return absl::OkStatus();
  return wrong(expected, is);
}

// `shift`: elements that the inputs are misaligned by. Launched twice on one workspace, the second
// time programmatically behind the first. Of `sample` results, or of all, the values are compared.
absl::Status check(const ReduceDesc& desc, const Data& data, std::size_t shift, std::size_t other_shift,
                   std::uint64_t sample) {
  const std::uint64_t results = desc.over == ReduceOver::kAll   ? 1
                                : desc.over == ReduceOver::kRow ? desc.rows
                                                                : desc.columns;
  const DType result = result_type(desc.op, desc.type);
  CGRT_ASSIGN_OR_RETURN(const ReducePlan plan, kernels::plan_reduce(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  ReduceArgs args;
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(results * size_of(result), size_of(result)));
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(data.x, shift * size_of(desc.type)));
  if (desc.op == ReduceOp::kDot) {
    CGRT_ASSIGN_OR_RETURN(args.other, trial.input(data.y, other_shift * size_of(desc.type)));
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(initialize_workspace(target, args.workspace));
    CGRT_RETURN_IF_ERROR(launch_reduce(target, plan, args));
    return launch_reduce(target.programmatic(), plan, args);
  };
  CGRT_RETURN_IF_ERROR(trial.run(step));
  const Bytes found = trial.found(args.out);
  for (std::uint64_t r = 0; r < results; r += std::max<std::uint64_t>(results / sample, 1)) {
    CGRT_RETURN_IF_ERROR(compare(desc, data, found, r));
  }
  if (plan.workspace_bytes == 0) return absl::OkStatus();
  const Bytes workspace = trial.found(args.workspace.data);
  for (std::uint64_t i = 0; i < kernels::kWorkspaceHeaderBytes / 4; ++i) {
    if (integer(DType::kInt32, workspace, i) != 0) return absl::InternalError(absl::StrCat("word ", i, " is not 0"));
  }
  return absl::OkStatus();
}

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                            DType::kFloat64, DType::kInt32,   DType::kInt64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean,   ReduceOp::kSumOfSquares, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kArgmax, ReduceOp::kDot};

bool has_kernel(ReduceOp op, DType type, ReduceOver over) {
  if (op == ReduceOp::kDot && over != ReduceOver::kAll) return false;
  return !is_integer(type) || op == ReduceOp::kSum || op == ReduceOp::kMin || op == ReduceOp::kMax;
}

struct Matrix {
  std::uint64_t rows, columns;
};
// One thread, one block, several blocks; odd sizes that leave something behind each of them.
constexpr Matrix kArrays[] = {{1, 1},    {1, 7},     {1, 31},    {1, 33},     {1, 127},     {1, 1000},
                              {3, 2731}, {1, 16384}, {1, 16387}, {257, 1021}, {1, 1 << 20}, {1, (1 << 20) + 3}};
// Rows that go through shared memory, of one block and of many, with several for a thread; then some threads of a warp,
// a warp, a block, several blocks for a row.
constexpr Matrix kRows[] = {{60000, 1},  {100003, 1},  {20001, 3},  {4097, 15},  {8000, 8},    {4000, 16},
                            {500001, 2}, {1, 1},       {5, 3},      {70, 4},     {33, 16},     {9, 32},
                            {130, 33},   {7, 111},     {19, 128},   {5, 500},    {9, 1000},    {6, 1024},
                            {3, 1025},   {5, 2048},    {3, 2056},   {2, 4097},   {140, 1999},  {3, 8192},
                            {2, 50257},  {133, 16384}, {1, 131072}, {600, 2500}, {500, 16500}, {8500, 301}};
// Some threads across, several tiles, few and many rows for each block; so few rows that a thread has whole columns, of
// elements, of packs and of spread elements, and a few more of long rows; and so many tiles that each has all rows.
constexpr Matrix kColumns[] = {
    {1, 1},      {2, 3},       {31, 8},    {64, 16},     {500, 5},    {1000, 24},  {3, 128},    {17, 256},
    {129, 264},  {70, 1000},   {33, 1025}, {4096, 8},    {4097, 7},   {2, 65536},  {300, 520},  {20000, 32},
    {100000, 3}, {2048, 1024}, {16, 999},  {8, 135184},  {9, 135169}, {16, 8192},  {17, 8192},  {2049, 1024},
    {3000, 192}, {200, 7168},  {1000, 1},  {300000, 1},  {17, 53857}, {17, 53856}, {3, 270339}, {18, 270336},
    {2, 540672}, {700, 20001}, {90000, 2}, {1024, 1001}, {8192, 511}};

void check_shapes(Report& report, ReduceOver over, const Matrix* begin, const Matrix* end) {
  for (const ReduceOp op : kOps) {
    for (const DType type : kTypes) {
      if (!has_kernel(op, type, over)) continue;
      for (const Matrix* matrix = begin; matrix != end; ++matrix) {
        const std::uint64_t count = matrix->rows * matrix->columns;
        if (report.is_simulated() && count > 1 << 16) continue;  // one host body serves all shapes
        const ReduceDesc desc{op, type, over, matrix->rows, matrix->columns};
        const Data data{elements(type, count, 1), op == ReduceOp::kDot ? elements(type, count, 2) : Bytes()};
        const std::uint64_t sample = count > 1 << 17 ? 50 : count;
        report.check(name_of(desc), check(desc, data, 0, 0, sample));
        report.check(name_of(desc) + " misaligned", check(desc, data, 1, 1, sample));
        if (op == ReduceOp::kDot) report.check(name_of(desc) + " misaligned apart", check(desc, data, 1, 0, sample));
      }
    }
  }
}

// What the extremes do with NaN, infinities and equal elements, and sums with infinities.
void check_values(Report& report) {
  struct Values {
    const char* name;
    std::vector<std::pair<std::uint64_t, double>> at;  // all others are `otherwise`
    double otherwise;
  };
  constexpr Matrix kShapes[] = {{7, 300}, {40, 77}, {3, 5000}, {64, 64}, {2, 40000}, {3000, 16}};
  for (const auto& [rows, columns] : kShapes) {
    const std::uint64_t count = rows * columns;
    if (report.is_simulated() && count > 1 << 14) continue;
    const Values all[] = {{"equal", {}, 2.5},
                          {"the least", {}, -kInfinity},
                          {"the greatest", {}, kInfinity},
                          {"one NaN", {{count / 2, kNan}}, 1},
                          {"a NaN at each end", {{0, kNan}, {count - 1, kNan}}, -kInfinity},
                          {"NaN behind infinity", {{count / 3, kInfinity}, {count / 3 + 1, kNan}}, 0},
                          {"both infinities", {{count / 5, kInfinity}, {count / 4, -kInfinity}}, 0},
                          {"two greatest", {{count / 2, 3}, {count / 2 + 1, 3}, {count - 1, 3}}, -1},
                          {"NaN only", {}, kNan}};
    for (const Values& values : all) {
      std::vector<double> doubles(count, values.otherwise);
      for (const auto& [at, value] : values.at) doubles[at] = value;
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
        const Data data{to_elements(type, doubles), {}};
        for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kArgmax, ReduceOp::kMean}) {
          for (const ReduceOver over : {ReduceOver::kAll, ReduceOver::kRow, ReduceOver::kColumn}) {
            const ReduceDesc desc{op, type, over, rows, columns};
            report.check(absl::StrCat(name_of(desc), " ", values.name), check(desc, data, 0, 0, count));
            if (rows == 40)
              report.check(absl::StrCat(name_of(desc), " ", values.name, " misaligned"),
                           check(desc, data, 3, 3, count));
          }
        }
      }
    }
  }
}

// Shapes from use, one operation each: a result's place does not depend on what is computed.
void check_large(Report& report) {
  constexpr ReduceDesc kLarge[] = {
      {ReduceOp::kSum, DType::kFloat32, ReduceOver::kAll, 1, 1 << 25},
      {ReduceOp::kArgmax, DType::kFloat16, ReduceOver::kAll, 1, (1 << 25) + 5},
      {ReduceOp::kSum, DType::kFloat16, ReduceOver::kRow, 49152, 1024},
      {ReduceOp::kMax, DType::kFloat16, ReduceOver::kRow, 8192, 4096},
      {ReduceOp::kSum, DType::kFloat16, ReduceOver::kRow, 512, 131072},
      {ReduceOp::kSum, DType::kFloat32, ReduceOver::kColumn, 32768, 1024},
      {ReduceOp::kArgmax, DType::kFloat16, ReduceOver::kColumn, 4096, 4096},
      {ReduceOp::kDot, DType::kFloat16, ReduceOver::kAll, 1, 1 << 25},
  };
  for (const ReduceDesc& desc : kLarge) {
    const std::uint64_t count = desc.rows * desc.columns;
    const Data data{elements(desc.type, count, 1), desc.op == ReduceOp::kDot ? elements(desc.type, count, 2) : Bytes()};
    report.check(name_of(desc), check(desc, data, 0, 0, 20));
  }
}

absl::Status is_refused(const absl::Status& status, const std::string& sentence) {
  if (absl::IsInvalidArgument(status) && absl::StrContains(status.message(), sentence)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("expected a refusal with \"", sentence, "\", found ", status.ToString()));
}

absl::Status check_refused_arguments() {
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(const ReducePlan plan,
                        kernels::plan_reduce(kDevice, {ReduceOp::kDot, DType::kFloat32, ReduceOver::kAll, 1, 1 << 20}));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 1 << 20));
  const ReduceArgs good{buffer.data(), buffer.data(), buffer.data(), {buffer.data(), buffer.size_bytes()}};
  unsigned char* const odd = buffer.as<unsigned char>() + 2;
  const auto with = [&](auto ReduceArgs::*member, auto value, const std::string& sentence) {
    ReduceArgs args = good;
    args.*member = value;
    return is_refused(launch_reduce(trial.stream(), plan, args), sentence);
  };
  CGRT_RETURN_IF_ERROR(with(&ReduceArgs::out, nullptr, "dot: out is null"));
  CGRT_RETURN_IF_ERROR(with(&ReduceArgs::out, odd, "not aligned to 4 bytes, the size of float32"));
  CGRT_RETURN_IF_ERROR(with(&ReduceArgs::in, nullptr, "in is null"));
  CGRT_RETURN_IF_ERROR(with(&ReduceArgs::in, odd, "dot: in (0x"));
  CGRT_RETURN_IF_ERROR(with(&ReduceArgs::other, nullptr, "other is null"));
  using kernels::Workspace;
  CGRT_RETURN_IF_ERROR(with(&ReduceArgs::workspace, Workspace{}, "workspace is null"));
  CGRT_RETURN_IF_ERROR(
      with(&ReduceArgs::workspace, Workspace{odd + 30, plan.workspace_bytes}, "not aligned to 256 bytes"));
  CGRT_RETURN_IF_ERROR(
      with(&ReduceArgs::workspace, Workspace{buffer.data(), plan.workspace_bytes - 1}, "the plan needs"));
  CGRT_ASSIGN_OR_RETURN(const ReducePlan argmax,
                        kernels::plan_reduce(kDevice, {ReduceOp::kArgmax, DType::kFloat16, ReduceOver::kRow, 4, 8}));
  return is_refused(launch_reduce(trial.stream(), argmax, {.out = odd, .in = odd}), "size of int64");
}

void check_refusals(Report& report) {
  const auto refused = [&](const ReduceDesc& desc, const std::string& sentence) {
    report.check("refusal of " + name_of(desc), is_refused(kernels::plan_reduce(kDevice, desc).status(), sentence));
  };
  refused({ReduceOp::kSum, DType::kFloat32, ReduceOver::kAll, 1, 0}, "each must be 1 or more");
  refused({ReduceOp::kSum, DType::kFloat32, ReduceOver::kRow, 0, 5}, "0 rows of 5 columns");
  refused({ReduceOp::kMax, DType::kFloat32, ReduceOver::kAll, 1ull << 32, 1ull << 32}, "2^63");
  refused({ReduceOp::kMin, DType::kFloat32, ReduceOver::kRow, 1ull << 31, 5}, "2147483647");
  refused({ReduceOp::kMin, DType::kFloat32, ReduceOver::kColumn, 5, 1ull << 31}, "2147483647");
  refused({ReduceOp::kArgmax, DType::kInt32, ReduceOver::kAll, 1, 5}, "no kernel for int32");
  refused({ReduceOp::kDot, DType::kFloat32, ReduceOver::kRow, 5, 5}, "whole arrays");
  report.check("refusal of pointers", check_refused_arguments());
}

}  // namespace

void check_reduce(Report& report) {
  check_shapes(report, ReduceOver::kAll, std::begin(kArrays), std::end(kArrays));
  check_shapes(report, ReduceOver::kRow, std::begin(kRows), std::end(kRows));
  check_shapes(report, ReduceOver::kColumn, std::begin(kColumns), std::end(kColumns));
  check_values(report);
  check_refusals(report);
  if (!report.is_simulated()) check_large(report);
}

void draw_reduce(Draw& draw, Report& report) {
  ReduceDesc desc{.op = kOps[draw.from(0, std::size(kOps) - 1)],
                  .type = kTypes[draw.from(0, std::size(kTypes) - 1)],
                  .over = draw.of({ReduceOver::kAll, ReduceOver::kRow, ReduceOver::kColumn})};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(8));
  const std::uint64_t count = desc.rows * desc.columns;
  const Data data{elements(desc.type, count, 1), desc.op == ReduceOp::kDot ? elements(desc.type, count, 2) : Bytes()};
  const std::size_t shift = draw.shift(), other_shift = draw.one_in(2) ? shift : draw.shift();
  report.check(absl::StrCat(name_of(desc), " shifted by ", shift, " and ", other_shift),
               check(desc, data, shift, other_shift, count));
}

}  // namespace cgrt::testing
