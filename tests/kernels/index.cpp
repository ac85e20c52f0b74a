// index_select, index_add and scatter_add, each regime from both sides of its ends, and what sorting does
// with few, many and far too many equal indices.
#include "cgrt_kernels/index/index.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/index/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::IndexArgs;
using kernels::IndexDesc;
using kernels::IndexOp;
using kernels::IndexPlan;
using kernels::size_of;
using kernels::SumOrder;

// Which rows the indices name.
enum class Skew { kUniform, kHalfOnOne, kOne, kZipf, kOutside };
const char* to_string(Skew skew) {
  switch (skew) {
    case Skew::kUniform: return " uniform";
    case Skew::kHalfOnOne: return " half on one";
    case Skew::kOne: return " one";
    case Skew::kZipf: return " zipf";
    case Skew::kOutside: return " some outside";
  }
  return "";
}

std::vector<std::int64_t> make_indices(std::uint64_t count, std::uint64_t rows, Skew skew) {
  std::mt19937 engine(5);
  std::uniform_real_distribution<double> unit(0, 1);
  const auto most = static_cast<double>(rows);
  std::vector<std::int64_t> indices(count);
  for (std::int64_t& index : indices) {
    const double at = unit(engine);
    index = static_cast<std::int64_t>(at * most);
    if (skew == Skew::kOne || (skew == Skew::kHalfOnOne && unit(engine) < 0.5)) {
      index = static_cast<std::int64_t>(rows / 2);
    } else if (skew == Skew::kZipf) {
      index = static_cast<std::int64_t>(std::pow(most, at)) - 1;
    } else if (skew == Skew::kOutside && at < 0.6) {
      index = at < 0.2 ? -1 : at < 0.4 ? static_cast<std::int64_t>(rows) : -(std::int64_t{1} << 31);
    }
  }
  return indices;
}

struct Setup {
  Skew skew = Skew::kUniform;
  std::size_t shift = 0;  // elements
  float alpha = 1;
  int launches = 1;
  bool has_nans = false;  // all elements to which nothing is added, with bits that a conversion does not give
};

// `is_exact`: multiples of 1 / 128, most of them positive, so that each order of their sum gives the same bits in
// float, and other ones where a 16-bit type rounds in between.
Bytes elements(DType type, std::uint64_t count, bool is_exact, std::uint32_t seed) {
  if (!is_exact) return random_elements(type, count, 0, 1, seed);
  std::mt19937 engine(seed);
  std::vector<double> values(count);
  for (double& value : values) value = (static_cast<double>(engine() % 256) - 64) / 128;
  return to_elements(type, values);
}

double rounded(DType type, double value) {
  unsigned char bytes[8];
  write_element(type, bytes, value);
  return read_element(type, bytes);
}

absl::Status check(const IndexDesc& desc, const Setup& setup) {
  CGRT_ASSIGN_OR_RETURN(const IndexPlan plan, kernels::plan_index(kDevice, desc));
  // The order of atomics is not known.
  const bool exact = plan.has_atomics, is_select = desc.op == IndexOp::kSelect;
  const std::uint64_t index_count = desc.op == IndexOp::kScatterAdd ? desc.count * desc.columns : desc.count;
  const std::vector<std::int64_t> indices = make_indices(index_count, desc.rows, setup.skew);
  Bytes matrix = elements(desc.type, desc.rows * desc.columns, exact, 1);
  const Bytes named = elements(desc.type, desc.count * desc.columns, exact, 2);
  if (setup.has_nans) {
    std::vector<bool> is_named(desc.rows * desc.columns);
    visit_indexed(
        desc.op, desc.rows, desc.columns, desc.count, [&](std::uint64_t i) { return indices[i]; },
        [&](std::uint64_t to, std::uint64_t) { is_named[to] = true; });
    const std::size_t size = size_of(desc.type);
    for (std::size_t i = 0; i < is_named.size(); ++i) {
      if (!is_named[i]) matrix[i * size] = 1, matrix[(i + 1) * size - 2] |= 0xc1, matrix[(i + 1) * size - 1] = 0x7f;
    }
  }
  const Bytes index = to_elements(desc.index_type, std::vector<double>(indices.begin(), indices.end()));

  const std::size_t shift = setup.shift * size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  IndexArgs args{.alpha = setup.alpha};
  if (is_select) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(named.size(), shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(matrix, shift));
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(matrix, shift));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(named, shift));
  }
  CGRT_ASSIGN_OR_RETURN(args.index, trial.input(index));
  std::optional<DeviceBuffer> workspace;  // not restored between launches
  if (plan.workspace_bytes != 0) {
    CGRT_ASSIGN_OR_RETURN(workspace, DeviceBuffer::create(kDevice, plan.workspace_bytes));
    CGRT_RETURN_IF_ERROR(fill8(trial.stream(), workspace->data(), 0xee, workspace->size_bytes()));
    args.workspace = {workspace->data(), workspace->size_bytes()};
  }
  const auto step = [&](LaunchTarget target) -> absl::Status {
    for (int i = 0; i < setup.launches; ++i) CGRT_RETURN_IF_ERROR(kernels::launch_index(target, plan, args));
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(trial.run(step));

  const Bytes found_bytes = trial.found(args.out);
  if (is_select) {
    Bytes expected(found_bytes.size());
    const std::size_t size = size_of(desc.type);
    visit_indexed(
        desc.op, desc.rows, desc.columns, desc.count, [&](std::uint64_t i) { return indices[i]; },
        [&](std::uint64_t from, std::uint64_t to) { std::copy_n(&matrix[from * size], size, &expected[to * size]); });
    return found_bytes == expected ? absl::OkStatus() : absl::InternalError("not the rows of the matrix");
  }
  const std::vector<double> summands = to_doubles(desc.type, named), found = to_doubles(desc.type, found_bytes);
  std::vector<double> expected = to_doubles(desc.type, matrix), sizes(expected.size()), terms(expected.size()),
                      sums(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) sizes[i] = std::abs(expected[i]);
  visit_indexed(
      desc.op, desc.rows, desc.columns, desc.count, [&](std::uint64_t i) { return indices[i]; },
      [&](std::uint64_t to, std::uint64_t from) {
        const double summand = static_cast<double>(setup.alpha) * summands[from];
        sums[to] += summand, sizes[to] += setup.launches * std::abs(summand), ++terms[to];
      });
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (int launch = 0; launch < setup.launches; ++launch) {
      expected[i] = exact ? rounded(desc.type, expected[i] + sums[i]) : expected[i] + sums[i];
    }
  }
  // Rounded to the type once for each launch; the errors of a float sum grow with the root of its length.
  const double rounding = desc.type == DType::kFloat32 ? 0 : desc.type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (terms[i] == 0) {
      const std::size_t size = size_of(desc.type);
      if (std::equal(&matrix[i * size], &matrix[i * size] + size, &found_bytes[i * size])) continue;
      return absl::InternalError(absl::StrCat("row ", i / desc.columns, " column ", i % desc.columns,
                                              ": nothing is added, and its bits change"));
    }
    const double float_error = 1.2e-7 * (2 + std::sqrt(terms[i])) * sizes[i];
    const double allowed = exact ? 0 : 1.01 * rounding * setup.launches * sizes[i] + float_error;
    if (std::abs(found[i] - expected[i]) <= allowed || found[i] == rounded(desc.type, expected[i])) continue;
    return absl::InternalError(absl::StrCat("row ", i / desc.columns, " column ", i % desc.columns, ": expected ",
                                            expected[i], ", found ", found[i], " (", terms[i], " summands)"));
  }
  return absl::OkStatus();
}

// So many equal summands that each next one is less than half of what a 16-bit type can add: 0.0098 of 32. All sums of
// them are exact in float.
absl::Status check_many(const IndexDesc& desc, std::size_t shift) {
  constexpr double kSummand = 5.0 / 512;
  const std::uint64_t index_count = desc.op == IndexOp::kScatterAdd ? desc.count * desc.columns : desc.count;
  std::vector<double> indices(index_count), terms(desc.rows * desc.columns);
  for (std::uint64_t i = 0; i < index_count; ++i) {
    const std::uint64_t line = desc.op == IndexOp::kScatterAdd ? i / desc.columns : i;
    indices[i] = static_cast<double>(line % desc.rows);
  }
  for (std::uint64_t i = 0; i < desc.count; ++i) {
    for (std::uint64_t j = 0; j < desc.columns; ++j) ++terms[i % desc.rows * desc.columns + j];
  }
  CGRT_ASSIGN_OR_RETURN(const IndexPlan plan, kernels::plan_index(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  IndexArgs args;
  const std::size_t bytes = shift * size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(to_elements(desc.type, std::vector<double>(terms.size(), 0.0)), bytes));
  CGRT_ASSIGN_OR_RETURN(
      args.in, trial.input(to_elements(desc.type, std::vector<double>(desc.count * desc.columns, kSummand)), bytes));
  CGRT_ASSIGN_OR_RETURN(args.index, trial.input(to_elements(desc.index_type, indices)));
  std::optional<DeviceBuffer> workspace;
  if (plan.workspace_bytes != 0) {
    CGRT_ASSIGN_OR_RETURN(workspace, DeviceBuffer::create(kDevice, plan.workspace_bytes));
    args.workspace = {workspace->data(), workspace->size_bytes()};
  }
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_index(target, plan, args); }));
  const std::vector<double> found = to_doubles(desc.type, trial.found(args.out));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = rounded(desc.type, terms[i] * kSummand);
    if (found[i] == expected) continue;
    return absl::InternalError(absl::StrCat("row ", i / desc.columns, " column ", i % desc.columns, ": expected ",
                                            expected, ", found ", found[i], " (", terms[i], " summands)"));
  }
  return absl::OkStatus();
}

// By atomics, merged and sorted; few rows and many, aligned and not.
void check_many(Report& report) {
  struct Case {
    IndexOp op;
    std::uint64_t rows, columns, count;
  };
  for (const Case& one :
       {Case{IndexOp::kAdd, 1, 1, 60000}, Case{IndexOp::kAdd, 17, 1, 4097}, Case{IndexOp::kAdd, 17, 3, 4097},
        Case{IndexOp::kAdd, 17, 8, 4097}, Case{IndexOp::kAdd, 1, 64, 60000}, Case{IndexOp::kAdd, 1, 64, 66000},
        Case{IndexOp::kAdd, 1, 8, 32}, Case{IndexOp::kAdd, 1 << 16, 32, 1 << 17}, Case{IndexOp::kAdd, 1 << 20, 2, 1100},
        Case{IndexOp::kAdd, 1, 64, 1000}, Case{IndexOp::kAdd, 17, 3, 1000}, Case{IndexOp::kScatterAdd, 1, 1, 60000},
        Case{IndexOp::kScatterAdd, 17, 8, 4097}, Case{IndexOp::kScatterAdd, 3, 5, 20000},
        Case{IndexOp::kScatterAdd, 1 << 20, 2, 100}}) {
    if (report.is_simulated() && std::max(one.rows, one.count) * one.columns > 1 << 20) continue;
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const SumOrder order : {SumOrder::kAny, SumOrder::kFixed}) {
        for (const std::size_t shift : {0, 1}) {
          report.check(absl::StrCat(to_string(one.op), " ", to_string(type), " many: ", one.count, " onto ", one.rows,
                                    "x", one.columns, order == SumOrder::kFixed ? " fixed" : "", " shifted by ", shift),
                       check_many({one.op, type, DType::kInt64, one.rows, one.columns, one.count, order}, shift));
        }
      }
    }
  }
}

void try_one(Report& report, const IndexDesc& desc, const Setup& setup) {
  report.check(absl::StrCat(to_string(desc.op), " ", to_string(desc.type), " ", to_string(desc.index_type), " ",
                            desc.count, " into ", desc.rows, "x", desc.columns,
                            desc.order == SumOrder::kFixed ? " fixed" : "", to_string(setup.skew), " shifted by ",
                            setup.shift, " alpha ", setup.alpha, " launched ", setup.launches),
               check(desc, setup));
}

struct Shape {
  std::uint64_t rows, columns, count;
};
constexpr Shape kShapes[] = {{1, 1, 1},     {3, 1, 40},    {5, 7, 31},    {5, 8, 33},   {70, 4, 32},    {70, 4, 500},
                             {255, 16, 90}, {257, 32, 70}, {40, 48, 333}, {9, 520, 64}, {60, 129, 300}, {2, 264, 1025}};
// Of 16-bit types: from both sides of where rows have owners, and of where threads add several indices at once.
constexpr Shape kOwned[] = {{100000, 1, 1040}, {9000, 8, 1033},   {3000, 24, 1100},   {70000, 3, 20000},
                            {4000, 64, 2000},  {4001, 64, 2000},  {8192, 8, 1064},    {8193, 8, 1064},
                            {65537, 2, 32768}, {65540, 2, 32769}, {65600, 16, 32768}, {65600, 17, 32768},
                            {66000, 18, 32765}};
// Up to as many as blocks group: rows that warps and blocks add up, and of several slices.
constexpr Shape kGrouped[] = {{100000, 1, 40},   {415, 25, 149},  {2015, 282, 132}, {9000, 8, 1024},
                              {128256, 64, 500}, {300, 72, 1023}, {33, 300, 1024},  {20, 4100, 257}};
// Rows that blocks merge: windows of 256, 512 and 1,024 indices (132 multiprocessors), the last one short; packs of
// each size, and rows of several slices.
constexpr Shape kMerged[] = {{50, 33, 70001}, {3000, 64, 40001}, {700, 66, 140000},
                             {60, 68, 33000}, {90, 1056, 2100},  {20000, 32, 262144}};
// The published sizes: few and 1024 indices into long rows.
constexpr Shape kReal[] = {
    {1 << 25, 1, 15}, {32768, 1024, 15}, {32, 1 << 20, 15}, {1 << 25, 1, 1024}, {32768, 1024, 1024}};

void check_refusals(Report& report) {
  const IndexDesc good{.op = IndexOp::kAdd, .rows = 100, .columns = 8, .count = 2000, .order = SumOrder::kFixed};
  const auto plan_of = [&](auto change) {
    IndexDesc desc = good;
    change(desc);
    return kernels::plan_index(kDevice, desc).status();
  };
  report.check("index_add refuses no indices", refused(plan_of([](IndexDesc& d) { d.count = 0; }), "0 indices into"));
  report.check("index_add refuses too many rows",
               refused(plan_of([](IndexDesc& d) { d.rows = std::uint64_t{1} << 31; }), "2147483647"));
  report.check("index_add refuses too many elements",
               refused(plan_of([](IndexDesc& d) { d.columns = d.count = 1 << 16; }), "indices times columns"));
  report.check("index_add refuses double", refused(plan_of([](IndexDesc& d) { d.type = DType::kFloat64; }), "float64"));
  report.check("index_add refuses indices in float",
               refused(plan_of([](IndexDesc& d) { d.index_type = DType::kFloat32; }), "int32 or int64"));
  report.check("scatter_add in a fixed order refuses more elements than keys",
               refused(plan_of([](IndexDesc& d) { d.op = IndexOp::kScatterAdd, d.rows = std::uint64_t{1} << 30; }),
                       "4294967296 elements"));
  const absl::StatusOr<IndexPlan> plan = kernels::plan_index(kDevice, good);
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("index_add plans", absl::InternalError("no plan or no stream"));
  alignas(256) static char memory[512];
  const IndexArgs all{.out = memory, .in = memory, .index = memory, .workspace = {memory, plan->workspace_bytes}};
  const auto launch_of = [&](auto change) {
    IndexArgs args = all;
    change(args);
    return launch_index(trial->stream(), *plan, args);
  };
  report.check("index_add refuses a null index",
               refused(launch_of([](IndexArgs& a) { a.index = nullptr; }), "index is null"));
  report.check("index_add refuses a misaligned out",
               refused(launch_of([](IndexArgs& a) { a.out = memory + 2; }), "out (0x"));
  report.check("index_add refuses a misaligned index",
               refused(launch_of([](IndexArgs& a) { a.index = memory + 4; }), "aligned to 8 bytes"));
  report.check("index_add refuses no workspace",
               refused(launch_of([](IndexArgs& a) { a.workspace.data = nullptr; }), "workspace is null"));
  report.check("index_add refuses a misaligned workspace",
               refused(launch_of([](IndexArgs& a) { a.workspace.data = memory + 16; }), "aligned to 256 bytes"));
  report.check("index_add refuses a workspace that is too small",
               refused(launch_of([](IndexArgs& a) { --a.workspace.bytes; }), "the plan needs"));
}

}  // namespace

void check_index(Report& report) {
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const auto& [rows, columns, count] : kShapes) {
      for (const IndexOp op : {IndexOp::kSelect, IndexOp::kAdd, IndexOp::kScatterAdd}) {
        for (const SumOrder order : {SumOrder::kAny, SumOrder::kFixed}) {
          if (op == IndexOp::kSelect && order == SumOrder::kFixed) continue;
          const IndexDesc desc{op, type, DType::kInt64, rows, columns, count, order};
          for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kOutside}) try_one(report, desc, {skew});
          if (op == IndexOp::kSelect) continue;
          try_one(report, desc, {.skew = Skew::kOne});
          try_one(report, desc, {.shift = 1, .alpha = 0.5f});
          try_one(report, desc, {.skew = Skew::kZipf, .alpha = -2, .launches = 2});
        }
        try_one(report, {op, type, DType::kInt32, rows, columns, count}, {.skew = Skew::kOutside});
        try_one(report, {op, type, DType::kInt32, rows, columns, count, SumOrder::kFixed}, {.skew = Skew::kOutside});
        for (const std::size_t shift : {1, 2, 4})
          try_one(report, {op, type, DType::kInt32, rows, columns, count}, {.shift = shift});
      }
    }
    // Several tiles and chunks, and one, two, three and four passes.
    for (const Shape& shape :
         {Shape{100, 8, 5000}, {1 << 16, 4, 9000}, {100000, 1, 12289}, {1 << 25, 1, 4096}, {3, 8, 20000}}) {
      if (report.is_simulated() && shape.rows > 1 << 20) continue;
      for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kOne, Skew::kZipf, Skew::kOutside}) {
        if (shape.rows > 1 << 20 && (skew != Skew::kUniform || type != DType::kFloat32)) continue;
        try_one(report, {IndexOp::kAdd, type, DType::kInt64, shape.rows, shape.columns, shape.count, SumOrder::kFixed},
                {.skew = skew, .launches = 2});
      }
    }
  }
  // 16-bit types into so many rows that they are sorted, or have owners.
  for (const IndexOp op : {IndexOp::kAdd, IndexOp::kScatterAdd}) {
    try_one(report, {op, DType::kFloat16, DType::kInt32, 1 << 15, 33, 1100}, {.skew = Skew::kZipf, .launches = 2});
  }
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const std::size_t shift : {0, 1}) {
      for (const IndexOp op : {IndexOp::kAdd, IndexOp::kScatterAdd}) {
        for (const std::uint64_t count : {500, 1500}) {
          try_one(report, {op, type, DType::kInt32, 1 << 10, 20, count}, {.shift = shift, .has_nans = true});
        }
      }
    }
    for (const auto& [rows, columns, count] : kOwned) {
      for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kOne, Skew::kZipf, Skew::kOutside}) {
        if (report.is_simulated() && columns * count > 1 << 18 && skew != Skew::kHalfOnOne) continue;
        for (const DType index_type : {DType::kInt32, DType::kInt64}) {
          try_one(report, {IndexOp::kAdd, type, index_type, rows, columns, count},
                  {.skew = skew, .alpha = 0.5f, .launches = 2});
        }
        try_one(report, {IndexOp::kAdd, type, DType::kInt64, rows, columns, count}, {.skew = skew, .shift = 1});
      }
    }
    if (!report.is_simulated()) {
      try_one(report, {IndexOp::kAdd, type, DType::kInt64, (1 << 24) + 1, 1, 4000}, {.skew = Skew::kZipf});
    }
  }
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const auto& [rows, columns, count] : kGrouped) {
      for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kOne, Skew::kZipf, Skew::kOutside}) {
        if (report.is_simulated() && rows * columns > 1 << 20 && skew != Skew::kHalfOnOne) continue;
        const IndexDesc desc{IndexOp::kAdd, type, DType::kInt64, rows, columns, count, SumOrder::kFixed};
        for (const std::size_t shift : {0, 1, 2, 4}) try_one(report, desc, {.skew = skew, .shift = shift});
        try_one(report, desc, {.skew = skew, .alpha = 0.5f, .launches = 2});
      }
    }
    for (const auto& [rows, columns, count] : kMerged) {
      for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kOne, Skew::kZipf, Skew::kOutside}) {
        if (report.is_simulated() && (skew != Skew::kHalfOnOne || columns * count > 3u << 20)) continue;
        // A float holds each sum of so many.
        const bool is_long = count > 66000;
        try_one(report, {IndexOp::kAdd, type, DType::kInt64, rows, columns, count},
                {.skew = skew, .alpha = is_long ? 0.5f : 1.0f});
        for (const std::size_t shift : {1, 2, 4}) {
          if (shift > 1 && (report.is_simulated() || skew != Skew::kHalfOnOne)) continue;
          try_one(report, {IndexOp::kAdd, type, DType::kInt32, rows, columns, count},
                  {.skew = skew, .shift = shift, .alpha = is_long ? 0.5f : -2.0f, .launches = is_long ? 1 : 2});
        }
      }
    }
    // So many that it sorts them.
    if (!report.is_simulated()) {
      try_one(report, {IndexOp::kAdd, type, DType::kInt64, 1000, 64, std::uint64_t{163840} * size_of(type)},
              {Skew::kZipf});
    }
  }
  // What one cluster sorts, and one more: blocks, rounds and passes of it.
  for (const auto& [rows, columns, count] : {Shape{2, 4096, 1024},
                                             {1024, 2, 1025},
                                             {1025, 1, 8192},
                                             {1 << 20, 1, 8193},
                                             {(1 << 20) + 1, 1, 20801},
                                             {700, 1, 65535},
                                             {700, 2, 65536},
                                             {700, 1, 65537},
                                             {70000, 1, 70000}}) {
    for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kZipf, Skew::kOutside}) {
      const DType index_type = skew == Skew::kZipf ? DType::kInt32 : DType::kInt64;
      try_one(report, {IndexOp::kAdd, DType::kFloat32, index_type, rows, columns, count, SumOrder::kFixed}, {skew});
    }
  }
  // Tiles of the sort on both sides of where they become longer.
  for (const std::uint64_t count : {(1u << 21) - 1, (1u << 21) + 3}) {
    if (report.is_simulated()) break;
    for (const Skew skew : {Skew::kUniform, Skew::kZipf, Skew::kOutside}) {
      try_one(report, {IndexOp::kAdd, DType::kFloat32, DType::kInt32, 70000, 2, count, SumOrder::kFixed}, {skew});
    }
  }
  // Few indices of so many elements that they sort or merge.
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const SumOrder order : {SumOrder::kAny, SumOrder::kFixed}) {
      if (report.is_simulated()) break;
      for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne}) {
        try_one(report, {IndexOp::kAdd, type, DType::kInt64, 900, 4100, 1024, order}, {.skew = skew, .alpha = 0.5f});
        try_one(report, {IndexOp::kAdd, type, DType::kInt64, 5000, 4096, 1024, order}, {.skew = skew});
      }
    }
  }
  // Sorted rows of whole 4 bytes, and of others.
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint64_t columns : {2, 6, 33, 63, 64, 65, 66, 129, 300}) {
      for (const std::size_t shift : {0, 1, 2}) {
        try_one(report, {IndexOp::kAdd, type, DType::kInt64, 50, columns, 1500, SumOrder::kFixed},
                {.skew = Skew::kHalfOnOne, .shift = shift, .alpha = -2});
      }
    }
  }
  check_many(report);
  check_refusals(report);
  if (report.is_simulated()) return;

  for (const auto& [rows, columns, count] : kReal) {
    try_one(report, {IndexOp::kAdd, DType::kFloat32, DType::kInt64, rows, columns, count}, {});
  }
  for (const Skew skew : {Skew::kUniform, Skew::kHalfOnOne, Skew::kOne, Skew::kZipf}) {
    try_one(report, {IndexOp::kAdd, DType::kFloat16, DType::kInt64, 1 << 16, 128, 1 << 18}, {.skew = skew});
    try_one(report, {IndexOp::kAdd, DType::kFloat32, DType::kInt32, 1000, 256, 1 << 16}, {.skew = skew});
    try_one(report, {IndexOp::kScatterAdd, DType::kFloat32, DType::kInt64, 1000, 64, 10000, SumOrder::kFixed},
            {.skew = skew});
  }
}

void draw_index(Draw& draw, Report& report) {
  IndexDesc desc{.op = draw.of({IndexOp::kSelect, IndexOp::kAdd, IndexOp::kScatterAdd}),
                 .type = draw.float_type(),
                 .index_type = draw.of({DType::kInt32, DType::kInt64})};
  std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(8));
  desc.count = draw.size(std::max<std::uint64_t>(draw.max_elements(16) / desc.columns, 1));
  desc.order = draw.of({SumOrder::kAny, SumOrder::kFixed});
  const Skew skew = draw.of({Skew::kUniform, Skew::kHalfOnOne, Skew::kOne, Skew::kZipf, Skew::kOutside});
  // So few summands in a row that a float holds each sum of them: 24 bits of 1 / 128.
  const std::uint64_t rows = skew == Skew::kUniform || skew == Skew::kOutside ? desc.rows : 1;
  if (desc.order == SumOrder::kAny) desc.count = std::min(desc.count, rows * 10'000);
  try_one(
      report, desc,
      {.skew = skew, .shift = draw.shift(), .alpha = draw.of({1.0f, 0.5f, -2.0f}), .launches = draw.one_in(3) ? 2 : 1});
}

}  // namespace cgrt::testing
