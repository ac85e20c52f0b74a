// Products of few rows: tiles that are full and not, shared by blocks and not, integers with large and small groups,
// every activation, and numbers of rows that the device knows.
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/skinny_gemm/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::size_of;
using kernels::SkinnyActivation;
using kernels::SkinnyGemmArgs;
using kernels::SkinnyGemmDesc;
using kernels::SkinnyGemmPlan;
using kernels::SkinnyWeights;
using kernels::Workspace;

constexpr std::int32_t kNoCount = -1000;

std::string name_of(const SkinnyGemmDesc& desc) {
  std::string name = absl::StrCat("skinny_gemm ", to_string(desc.type), " ", desc.rows, "x", desc.n, "x", desc.k);
  if (desc.weights != SkinnyWeights::kFloat) {
    absl::StrAppend(&name, ", ", to_string(desc.weights), " in groups of ", desc.group);
  }
  if (desc.activation != SkinnyActivation::kNone) absl::StrAppend(&name, ", ", to_string(desc.activation));
  if (desc.has_bias) name += ", bias";
  if (desc.has_residual) name += ", residual";
  if (desc.x_stride + desc.y_stride > 0) absl::StrAppend(&name, ", strides ", desc.x_stride, " ", desc.y_stride);
  return name;
}

struct Arrays {
  Bytes x, y, weights, scales, bias;  // y: as it is before, which is the residual
  std::uint64_t weight_rows;
};

Arrays arrays_of(const SkinnyGemmDesc& desc) {
  const std::uint64_t rows = desc.activation == SkinnyActivation::kSiluGate ? 2 * desc.n : desc.n;
  Arrays arrays{random_elements(desc.type, (desc.rows - 1) * desc.x_stride + desc.k, 0, 1, 1),
                random_elements(desc.type, (desc.rows - 1) * desc.y_stride + desc.n, 0, 1, 2),
                {},
                {},
                random_elements(desc.type, rows, 0, 1, 3),
                rows};
  if (desc.weights == SkinnyWeights::kFloat) {
    arrays.weights = random_elements(desc.type, rows * desc.k, 0, 1 / std::sqrt(static_cast<double>(desc.k)), 4);
    return arrays;
  }
  arrays.weights.resize(rows * desc.k * bits_of(desc.weights) / 8);
  std::minstd_rand draw(5);
  for (unsigned char& byte : arrays.weights) byte = static_cast<unsigned char>(draw() >> 8);
  arrays.scales = random_elements(desc.type, rows * (desc.k / desc.group), 0.01, 0.003, 6);
  return arrays;
}

// Elements of y, and how far from them others may be.
class Reference {
 public:
  Reference(const SkinnyGemmDesc& desc, const Arrays& arrays) : desc_(desc), arrays_(arrays) {}

  double value(std::uint64_t row, std::uint64_t column) const {
    const double value = kernels::skinny_gemm_reference(
        desc_.activation, desc_.n, desc_.k, row, column, [this](auto i, auto k) { return x(i, k); },
        [this](auto j, auto k) { return weight(j, k); }, [this](auto j) { return bias(j); });
    return value + (desc_.has_residual ? at(arrays_.y, row * desc_.y_stride + column) : 0);
  }
  // One rounding of the result; sums are float; with groups smaller than what lanes hold, weights are rounded.
  double tolerance(std::uint64_t row, std::uint64_t column, double value) const {
    const double rounding = desc_.type == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
    const double of_sum = 0x1p-22 * (4 + static_cast<double>(desc_.k) / 64) +
                          (desc_.group % (512 / bits_of(desc_.weights)) == 0 ? 0 : rounding / 2);
    const auto size = [&](std::uint64_t of_column) {
      return kernels::skinny_gemm_reference(
          SkinnyActivation::kNone, desc_.n, desc_.k, row, of_column,
          [this](auto i, auto k) { return std::abs(x(i, k)); },
          [this](auto j, auto k) { return std::abs(weight(j, k)); }, [this](auto j) { return std::abs(bias(j)); });
    };
    const double other = desc_.activation == SkinnyActivation::kSiluGate ? size(desc_.n + column) : 0;
    return rounding * std::abs(value) + of_sum * 1.2 * size(column) * (1 + 2 * other) + 1e-5;
  }

 private:
  double at(const Bytes& bytes, std::uint64_t i) const {
    return read_element(desc_.type, &bytes[i * size_of(desc_.type)]);
  }
  double x(std::uint64_t row, std::uint64_t k) const { return at(arrays_.x, row * desc_.x_stride + k); }
  double weight(std::uint64_t row, std::uint64_t k) const {
    if (desc_.weights == SkinnyWeights::kFloat) return at(arrays_.weights, row * desc_.k + k);
    const unsigned char* const bytes = &arrays_.weights[row * desc_.k * bits_of(desc_.weights) / 8];
    return kernels::skinny_integer(desc_.weights, bytes, k) *
           at(arrays_.scales, row * (desc_.k / desc_.group) + k / desc_.group);
  }
  double bias(std::uint64_t row) const { return desc_.has_bias ? at(arrays_.bias, row) : 0; }

  const SkinnyGemmDesc& desc_;
  const Arrays& arrays_;
};

absl::Status check(const SkinnyGemmDesc& asked, std::int32_t row_count = kNoCount, std::size_t shift = 0) {
  CGRT_ASSIGN_OR_RETURN(const SkinnyGemmPlan plan, kernels::plan_skinny_gemm(kDevice, asked));
  const SkinnyGemmDesc& desc = plan.desc;
  const std::uint64_t weight_rows = desc.activation == SkinnyActivation::kSiluGate ? 2 * desc.n : desc.n;
  if (!Trial::has_room_for(weight_rows * desc.k * bits_of(desc.weights) / 8)) {
    return absl::CancelledError("larger than this run's arrays");  // before they are made
  }
  Arrays arrays = arrays_of(desc);
  // What no product may take: x behind k, and rows behind those that there are.
  for (std::uint64_t i = 0; i < arrays.x.size() / size_of(desc.type); ++i) {
    const bool is_behind = row_count != kNoCount && static_cast<std::int64_t>(i / desc.x_stride) >= row_count;
    if (i % desc.x_stride >= desc.k || is_behind) {
      write_element(desc.type, &arrays.x[i * size_of(desc.type)], std::nan(""));
    }
  }
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  SkinnyGemmArgs args;
  CGRT_ASSIGN_OR_RETURN(args.y, trial.output(arrays.y, shift));
  CGRT_ASSIGN_OR_RETURN(args.x, trial.input(arrays.x, shift * 8));
  CGRT_ASSIGN_OR_RETURN(args.weights, trial.input(arrays.weights, shift * 8));
  if (desc.weights != SkinnyWeights::kFloat) {
    CGRT_ASSIGN_OR_RETURN(args.scales, trial.input(arrays.scales, shift));
  }
  if (desc.has_bias) {
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(arrays.bias, shift));
  }
  if (desc.has_residual) args.residual = args.y;
  if (row_count != kNoCount) {
    Bytes bytes(sizeof(row_count));
    std::memcpy(bytes.data(), &row_count, sizeof(row_count));
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes));
    args.row_count = static_cast<const std::int32_t*>(data);
  }
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  // Twice, so that the second finds the workspace as the first leaves it.
  const bool is_repeated = plan.workspace_bytes > 0 && !desc.has_residual;
  CGRT_RETURN_IF_ERROR(trial.run(args.workspace, [&](LaunchTarget target) -> absl::Status {
    if (is_repeated) CGRT_RETURN_IF_ERROR(kernels::launch_skinny_gemm(target, plan, args));
    return kernels::launch_skinny_gemm(target, plan, args);
  }));

  const Bytes found = trial.found(args.y);
  const Reference reference(desc, arrays);
  const std::size_t size = size_of(desc.type);
  const std::uint64_t step = desc.rows * desc.n * desc.k > 50'000'000 ? 1 + std::min<std::uint64_t>(desc.n / 61, 62)
                                                                      : 1;  // of columns: some of each tile
  for (std::uint64_t i = 0; i < found.size() / size; ++i) {
    const std::uint64_t row = i / desc.y_stride, column = i % desc.y_stride;
    const bool is_there = column < desc.n && (row_count == kNoCount || static_cast<std::int64_t>(row) < row_count);
    if (!is_there) {
      if (std::equal(&found[i * size], &found[i * size] + size, &arrays.y[i * size])) continue;
      return absl::InternalError(absl::StrCat("row ", row, ", column ", column, " was written"));
    }
    if (column % step != 0) continue;
    const double value = read_element(desc.type, &found[i * size]), expected = reference.value(row, column);
    if (std::abs(value - expected) <= reference.tolerance(row, column, expected)) continue;
    return absl::InternalError(
        absl::StrCat("row ", row, ", column ", column, ": expected ", expected, ", found ", value));
  }
  return absl::OkStatus();
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const SkinnyGemmDesc& desc) {
    report.check(absl::StrCat("skinny_gemm refuses: ", text),
                 refused(kernels::plan_skinny_gemm(kDevice, desc).status(), text));
  };
  refuses("rows is 0; it can be 1 to 64", {.n = 8, .k = 8});
  refuses("rows is 65; it can be 1 to 64. For more rows use cublaslt/matmul.h.", {.rows = 65, .n = 8, .k = 8});
  refuses("n is 0; it can be 1 to 2147483647", {.rows = 1, .k = 8});
  refuses("n is 1073741824; it can be 1 to 1073741823",
          {.rows = 1, .n = 1 << 30, .k = 8, .activation = SkinnyActivation::kSiluGate});
  refuses("k is 0", {.rows = 1, .n = 8});
  refuses("k is 12, not a multiple of 8. Pad the rows", {.rows = 1, .n = 8, .k = 12});
  refuses("x_stride is 8; it can be 16, which is k", {.rows = 1, .n = 8, .k = 16, .x_stride = 8});
  refuses("x_stride is 17, not a multiple of 8", {.rows = 1, .n = 8, .k = 16, .x_stride = 17});
  refuses("y_stride is 7; it can be 8, which is n", {.rows = 1, .n = 8, .k = 16, .y_stride = 7});
  refuses("float32", {.type = DType::kFloat32, .rows = 1, .n = 8, .k = 8});
  refuses("group is 128 and k is 64; group can be a multiple of 32 that divides k",
          {.rows = 1, .n = 8, .k = 64, .weights = SkinnyWeights::kInt4});
  refuses("group is 16", {.rows = 1, .n = 8, .k = 64, .weights = SkinnyWeights::kInt8, .group = 16});
  refuses("group is 0", {.rows = 1, .n = 8, .k = 64, .weights = SkinnyWeights::kInt8, .group = 0});

  const absl::StatusOr<SkinnyGemmPlan> plan = kernels::plan_skinny_gemm(
      kDevice, {.rows = 1, .n = 8, .k = 128, .weights = SkinnyWeights::kInt8, .has_bias = true, .has_residual = true});
  const absl::StatusOr<SkinnyGemmPlan> shared = kernels::plan_skinny_gemm(kDevice, {.rows = 1, .n = 8, .k = 65536});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !shared.ok() || !trial.ok()) {
    return report.check("skinny_gemm plans", absl::InternalError("no plan or no stream"));
  }
  alignas(16) static unsigned char memory[32];
  void* const a = memory;
  void* const odd = memory + 1;
  void* const half = memory + 8;
  auto* const number = static_cast<std::int32_t*>(a);
  const auto refuses_args = [&](const char* text, const SkinnyGemmPlan& of, const SkinnyGemmArgs& args) {
    report.check(absl::StrCat("skinny_gemm refuses: ", text),
                 refused(kernels::launch_skinny_gemm(trial->stream(), of, args), text));
  };
  refuses_args("y is null", *plan, {nullptr, a, a, a, a, a});
  refuses_args("x (0x", *plan, {a, half, a, a, a, a});
  refuses_args("weights (0x", *plan, {a, a, half, a, a, a});
  refuses_args("scales is null", *plan, {a, a, a, nullptr, a, a});
  refuses_args("bias (0x", *plan, {a, a, a, a, odd, a});
  refuses_args("residual is null", *plan, {a, a, a, a, a, nullptr});
  refuses_args("row_count (0x", *plan, {a, a, a, a, a, a, reinterpret_cast<std::int32_t*>(memory + 2)});
  refuses_args("workspace", *shared, {a, a, a, a, a, a, number});
}

// Few rows have the kernel for more where there is one and weights are many floats.
absl::Status check_choice() {
  CGRT_ASSIGN_OR_RETURN(const int sms, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const auto is_wide = [](const SkinnyGemmDesc& desc) -> absl::StatusOr<bool> {
    CGRT_ASSIGN_OR_RETURN(const SkinnyGemmPlan plan, kernels::plan_skinny_gemm(kDevice, desc));
    return plan.is_wide;
  };
  CGRT_ASSIGN_OR_RETURN(const bool has_wide, is_wide({.rows = 9, .n = 128, .k = 64}));
  const std::uint64_t tile_each = 16 * static_cast<std::uint64_t>(sms);  // rows of W: a tile for each multiprocessor
  const std::uint64_t idle = 128 * ((static_cast<std::uint64_t>(sms) - 1) / 24);  // clusters leave more than two thirds
  const std::uint64_t some = tile_each / 2 * 3 - 15;
  const auto many = [](std::uint64_t n) { return ((7 << 20) / (2 * n) / 8 + 1) * 8; };  // k, for many bytes
  const std::pair<SkinnyGemmDesc, bool> choices[] = {
      {{.n = some, .k = many(some)}, true},
      {{.n = some, .k = many(some) - 8}, false},
      {{.n = 3 * tile_each, .k = 64}, true},  // many tiles
      {{.n = tile_each, .k = many(tile_each)}, false},
      {{.n = 2 * tile_each, .k = many(tile_each)}, true},
      {{.n = 5 * tile_each, .k = many(tile_each)}, true},
      {{.n = idle, .k = many(idle + 1)}, false},
      {{.n = idle + 128, .k = many(idle + 128)}, true},
      {{.n = some, .k = 2560, .weights = SkinnyWeights::kInt8}, false},
  };
  for (const std::uint64_t rows : {1, 8}) {
    for (auto [desc, is_faster_wide] : choices) {
      if (desc.n == 0) continue;  // so few multiprocessors
      desc.rows = rows;
      CGRT_ASSIGN_OR_RETURN(const bool chosen, is_wide(desc));
      if (chosen == (is_faster_wide && has_wide)) continue;
      return absl::InternalError(absl::StrCat(name_of(desc), ": is_wide is ", chosen, "; of 9 rows it is ", has_wide));
    }
  }
  return absl::OkStatus();
}

// More tiles of 128 rows of W than multiprocessors, and fewer. There are more stages than a block holds at once: beside
// 16-bit weights threads load x of the later ones, but for few rows in clusters of three blocks or more.
void check_many_tiles(Report& report) {
  const absl::StatusOr<int> count = kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (!count.ok()) return report.check("skinny_gemm with many tiles", count.status());
  const auto sms = static_cast<std::uint64_t>(*count);
  struct Size {
    std::uint64_t tiles, rows;
  };
  for (const Size& size : {Size{sms + 5, 1}, Size{sms + 5, 64}, Size{sms * 52 / 100 + 1, 9}, Size{sms * 2 / 5, 16},
                           Size{sms * 2 / 5, 64}, Size{sms / 5, 33}}) {
    SkinnyGemmDesc desc{
        .rows = size.rows, .n = size.tiles * 128 - 20, .k = 1024 * (sms / size.tiles + 1) - 24, .has_residual = true};
    report.check(name_of(desc), check(desc));
    if (size.rows == 64) {
      for (const std::int32_t of_launch : {2, 20}) {
        report.check(absl::StrCat(name_of(desc), ", ", of_launch, " on the device"), check(desc, of_launch));
      }
    }
    desc.type = DType::kBFloat16, desc.activation = SkinnyActivation::kSiluGate, desc.n /= 2;
    desc.x_stride = desc.k + 8, desc.y_stride = desc.n + 3, desc.weights_are_constant = false;
    report.check(name_of(desc), check(desc));
  }
  for (const SkinnyWeights weights : {SkinnyWeights::kInt8, SkinnyWeights::kInt4}) {
    for (const std::uint64_t group : {128, 32}) {  // scales of sums, and of weights with a last stage that is short
      const std::uint64_t k = 16 * 1024 / bits_of(weights) - (group == 32 ? 32 : 0);
      const SkinnyGemmDesc desc{
          .rows = 64, .n = (sms + 5) * 128 - 20, .k = k, .weights = weights, .group = group, .has_bias = true};
      report.check(name_of(desc), check(desc));
    }
  }
}

// A few of everything, with odd sizes.
SkinnyGemmDesc random_desc(std::mt19937& draw) {
  const auto below = [&](std::uint32_t limit) { return draw() % limit; };
  SkinnyGemmDesc desc{.type = below(2) == 0 ? DType::kFloat16 : DType::kBFloat16};
  desc.rows = 1 + below(below(2) == 0 ? 8 : 64);
  desc.n = 1 + below(below(2) == 0 ? 20 : 200);
  desc.weights = static_cast<SkinnyWeights>(below(3));
  desc.k = 8 * (1 + below(below(2) == 0 ? 20 : 150));
  if (desc.weights != SkinnyWeights::kFloat) {
    desc.group = 32 * (1 + below(8));
    desc.k = desc.group * (1 + below(6));
  }
  desc.activation = static_cast<SkinnyActivation>(below(4));
  desc.has_bias = below(2) == 0, desc.has_residual = below(2) == 0;
  if (below(3) == 0) desc.x_stride = desc.k + 8 * below(5);
  if (below(3) == 0) desc.y_stride = desc.n + below(9);
  desc.weights_are_constant = below(4) != 0;
  return desc;
}

}  // namespace

void check_skinny_gemm(Report& report) {
  check_refusals(report);
  report.check("skinny_gemm chooses a kernel for few rows", check_choice());
  if (!report.is_simulated()) check_many_tiles(report);
  const auto checks = [&](const SkinnyGemmDesc& desc) { report.check(name_of(desc), check(desc)); };
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32, 33, 63, 64}) {
      for (const std::uint64_t n : {1, 15, 17, 33, 129}) {
        for (const std::uint64_t k : {8, 64, 72, 520}) checks({.type = type, .rows = rows, .n = n, .k = k});
      }
      const bool is_deep = rows == 1 || rows == 5 || rows == 16 || rows == 64;  // with many stages
      if (is_deep) checks({.type = type, .rows = rows, .n = 3, .k = 4104});
      for (const SkinnyWeights weights : {SkinnyWeights::kInt8, SkinnyWeights::kInt4}) {
        for (const std::uint64_t group : {32, 64, 96, 128, 512}) {
          checks({.type = type, .rows = rows, .n = 19, .k = 2 * group, .weights = weights, .group = group});
        }
        if (!is_deep) continue;
        checks({.type = type, .rows = rows, .n = 3, .k = 4096, .weights = weights, .group = 4096});
        checks({.type = type, .rows = rows, .n = 5, .k = 3 * 1088, .weights = weights, .group = 32});
      }
    }
    for (const SkinnyActivation activation :
         {SkinnyActivation::kNone, SkinnyActivation::kGelu, SkinnyActivation::kGeluTanh, SkinnyActivation::kSiluGate}) {
      for (const std::uint64_t rows : {1, 4, 20}) {
        for (const std::uint64_t n : {1, 7, 9, 65}) {
          for (const bool has : {false, true}) {
            SkinnyGemmDesc desc{.type = type, .rows = rows, .n = n, .k = 136, .activation = activation};
            desc.has_bias = has, desc.has_residual = has;
            checks(desc);
            desc.x_stride = 160, desc.y_stride = n + 3;
            checks(desc);
            report.check(name_of(desc) + ", unaligned", check(desc, kNoCount, 2));
          }
        }
      }
    }
  }
  for (const std::uint64_t rows : {1, 6, 64}) {
    for (const std::int32_t count : {-1, 0, 1, 5, 8, 9, 33, 64, 65}) {
      for (const SkinnyWeights weights : {SkinnyWeights::kFloat, SkinnyWeights::kInt4}) {
        const SkinnyGemmDesc desc{.rows = rows, .n = 20, .k = 1024, .weights = weights, .has_residual = true};
        report.check(absl::StrCat(name_of(desc), ", ", count, " on the device"), check(desc, count));
      }
    }
  }
  std::mt19937 draw(7);
  for (int i = 0; i < 200; ++i) {
    const SkinnyGemmDesc desc = random_desc(draw);
    const std::int32_t count = i % 3 == 0 ? static_cast<std::int32_t>(draw() % 70) : kNoCount;
    report.check(absl::StrCat(name_of(desc), ", random ", i), check(desc, count, i % 2 * 2));
  }
  if (report.is_simulated()) return;
  for (const SkinnyWeights weights : {SkinnyWeights::kFloat, SkinnyWeights::kInt8, SkinnyWeights::kInt4}) {
    // More tiles of 128 rows of W than multiprocessors, of one stage or two and of several.
    for (const std::uint64_t k : {128, 640}) {
      for (const std::uint64_t rows : {16, 40}) checks({.rows = rows, .n = 17000, .k = k, .weights = weights});
    }
    for (const std::uint64_t rows : {1, 4, 5, 16, 64}) {
      for (const auto& [n, k] : {std::pair<std::uint64_t, std::uint64_t>{4096, 4096},
                                 {6144, 4096},
                                 {5120, 5120},
                                 {4096, 14336},
                                 {28672, 4096},
                                 {1031, 8192}}) {
        checks({.type = DType::kBFloat16, .rows = rows, .n = n, .k = k, .weights = weights});
      }
    }
    // Few rows of many weights.
    for (const std::uint64_t rows : {1, 3, 8}) {
      for (const SkinnyActivation activation : {SkinnyActivation::kNone, SkinnyActivation::kSiluGate}) {
        SkinnyGemmDesc desc{.rows = rows, .n = 3001, .k = 1280, .weights = weights, .activation = activation};
        desc.has_bias = desc.has_residual = true;
        checks(desc);
      }
    }
    // Of few rows, whole tiles (more of them than groups of blocks, and fewer), and tiles that groups share.
    for (const auto& [n, k] : {std::pair<std::uint64_t, std::uint64_t>{6144, 4096}, {1000, 4096}, {2048, 14336}}) {
      const SkinnyGemmDesc desc{.type = DType::kBFloat16, .rows = 64, .n = n, .k = k, .weights = weights};
      for (const std::int32_t count : {1, 5, 12, 40}) {
        report.check(absl::StrCat(name_of(desc), ", ", count, " on the device"), check(desc, count));
      }
    }
    if (weights == SkinnyWeights::kFloat) continue;
    // A block of an H200 keeps 8 rows of x, none, none; in the kernel for more rows 8, 6 and none.
    for (const std::uint64_t k : {5120, 14336, 131072}) {
      SkinnyGemmDesc desc{.type = DType::kBFloat16, .n = k > 100'000 ? 36u : 260u, .k = k, .weights = weights};
      for (desc.rows = 6; desc.rows <= 8; ++desc.rows) checks(desc);
      desc.rows = 64;
      for (std::int32_t count = 5; count <= 8; ++count) {
        report.check(absl::StrCat(name_of(desc), ", ", count, " on the device"), check(desc, count));
      }
    }
    // Whole stages and tiles, and others, with long groups and a gate.
    for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
      SkinnyGemmDesc desc{.type = type, .rows = 5, .n = 45, .k = 8448, .weights = weights};
      desc.activation = SkinnyActivation::kSiluGate, desc.x_stride = desc.k + 8, desc.weights_are_constant = false;
      desc.group = bits_of(weights) == 4 ? 384 : 192;
      checks(desc);
      desc.rows = 64;
      report.check(absl::StrCat(name_of(desc), ", 3 on the device"), check(desc, 3));
    }
  }
}

void draw_skinny_gemm(Draw& draw, Report& report) {
  SkinnyGemmDesc desc{.type = draw.half_type(), .rows = draw.size(64), .n = draw.size(30000)};
  desc.weights = draw.of({SkinnyWeights::kFloat, SkinnyWeights::kInt8, SkinnyWeights::kInt4});
  const bool is_float = desc.weights == SkinnyWeights::kFloat;
  if (!is_float) desc.group = 32 * draw.size(20);
  std::uint64_t unit = is_float ? 8 : desc.group, units = draw.size(20000 / unit + 1);
  Draw::shrink(draw.max_elements(4) / unit, {&desc.n, &units});
  Draw::shrink((report.is_simulated() ? 1 << 18 : 1 << 25) / unit, {&desc.n, &units, &desc.rows});
  desc.k = unit * units;
  desc.activation = draw.of(
      {SkinnyActivation::kNone, SkinnyActivation::kGelu, SkinnyActivation::kGeluTanh, SkinnyActivation::kSiluGate});
  desc.has_bias = draw.one_in(2), desc.has_residual = draw.one_in(2);
  if (draw.one_in(3)) desc.x_stride = desc.k + 8 * draw.from(0, 5);
  if (draw.one_in(3)) desc.y_stride = desc.n + draw.from(0, 9);
  desc.weights_are_constant = !draw.one_in(4);
  const std::int32_t count = draw.one_in(3) ? draw.count_of(desc.rows) : kNoCount;
  report.check(absl::StrCat(name_of(desc), ", count ", count), check(desc, count, draw.of({0, 0, 2, 4, 6, 8})));
}

}  // namespace cgrt::testing
