// Group normalization: packs that lie in one group and in several, slices of unequal size, pixels that blocks share,
// lines that some threads lack, and means far from zero.
#include "cgrt_kernels/group_norm/group_norm.h"

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/group_norm/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::GroupNormActivation;
using kernels::GroupNormArgs;
using kernels::GroupNormDesc;
using kernels::GroupNormPlan;
using kernels::size_of;

struct Setup {
  std::size_t shift = 0;  // elements that arrays are behind an aligned address
  bool in_place = false, has_weights = true;
  double mean = 0.5;
};

absl::Status compare(const GroupNormDesc& desc, const Setup& setup, const Bytes& in, const Bytes& out,
                     const std::vector<double>& weight, const std::vector<double>& bias) {
  const std::vector<double> x = to_doubles(desc.type, in), y = to_doubles(desc.type, out);
  const std::uint64_t size = desc.channels / desc.groups;
  const double rounding = desc.type == DType::kFloat32 ? 3e-6 : desc.type == DType::kFloat16 ? 1.0 / 2000 : 1.0 / 250;
  for (std::uint64_t image = 0; image < desc.batch; ++image) {
    for (std::uint64_t group = 0; group < desc.groups; ++group) {
      const auto index = [&](std::uint64_t i) {
        return (image * desc.plane + i / size) * desc.channels + group * size + i % size;
      };
      const kernels::GroupMoments moments =
          kernels::group_moments(desc.plane * size, [&](std::uint64_t i) { return x[index(i)]; });
      const double scale = 1 / std::sqrt(moments.variance + static_cast<double>(desc.epsilon));
      for (std::uint64_t i = 0; i < desc.plane * size; ++i) {
        const std::uint64_t channel = group * size + i % size;
        const double w = setup.has_weights ? weight[channel] : 1, b = setup.has_weights ? bias[channel] : 0;
        const double expected = kernels::group_norm_reference(desc.activation, x[index(i)], moments.mean, scale, w, b);
        // A mean of floats is off by some of its last bits, which the scale makes larger.
        const double slack =
            rounding * std::abs(expected) + 2e-6 * (1 + std::abs(b)) +
            std::abs(w) * (4e-7 * scale * std::abs(moments.mean) + 4e-6 * scale * std::abs(x[index(i)] - moments.mean));
        const double found = y[index(i)];
        if (std::isnan(expected) ? std::isnan(found) : std::abs(found - expected) <= slack) continue;
        return absl::InternalError(absl::StrCat("image ", image, ", pixel ", i / size, ", channel ", channel,
                                                ": expected ", expected, ", found ", found));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status check(const GroupNormDesc& desc, const Setup& setup) {
  CGRT_ASSIGN_OR_RETURN(const GroupNormPlan plan, kernels::plan_group_norm(kDevice, desc));
  const Bytes in = random_elements(desc.type, desc.batch * desc.plane * desc.channels, setup.mean, 2, 1);
  const Bytes weight = random_elements(desc.type, desc.channels, 1, 1, 2);
  const Bytes bias = random_elements(desc.type, desc.channels, 0, 1, 3);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  const std::size_t bytes = setup.shift * size_of(desc.type);
  GroupNormArgs args;
  if (setup.in_place) {
    CGRT_ASSIGN_OR_RETURN(args.y, trial.output(in, bytes));
    args.x = args.y;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.y, trial.output(in.size(), bytes));
    CGRT_ASSIGN_OR_RETURN(args.x, trial.input(in, bytes));
  }
  if (setup.has_weights) {
    CGRT_ASSIGN_OR_RETURN(args.weight, trial.input(weight, bytes));
    CGRT_ASSIGN_OR_RETURN(args.bias, trial.input(bias, bytes));
  }
  // Read once, images need no workspace.
  const bool is_read_once = setup.shift == 0 && !plan.aligned.elements;
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(is_read_once ? 0 : plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(
      trial.run(args.workspace, [&](LaunchTarget target) { return kernels::launch_group_norm(target, plan, args); }));
  return compare(desc, setup, in, trial.found(args.y), to_doubles(desc.type, weight), to_doubles(desc.type, bias));
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const GroupNormDesc& desc) {
    report.check(absl::StrCat("group_norm refuses: ", text),
                 refused(kernels::plan_group_norm(kDevice, desc).status(), text));
  };
  refuses("group_norm: batch is 0; it can be 1 to 2147483647", {.plane = 4, .channels = 64});
  refuses("plane is 0", {.batch = 1, .channels = 64});
  refuses("channels is 4128; it can be 1 to 4096", {.batch = 1, .plane = 4, .channels = 4128});
  refuses("groups is 0; it can be 1 to 64", {.batch = 1, .plane = 4, .channels = 64, .groups = 0});
  refuses("channels is 65, no multiple of the 32 groups", {.batch = 1, .plane = 4, .channels = 65});
  refuses("65536 images of 65536 pixels are more than 2147483647", {.batch = 65536, .plane = 65536, .channels = 64});
  refuses("int32", {.type = DType::kInt32, .batch = 1, .plane = 4, .channels = 64});
  refuses("epsilon is -1", {.batch = 1, .plane = 4, .channels = 64, .epsilon = -1});

  const absl::StatusOr<GroupNormPlan> plan =
      kernels::plan_group_norm(kDevice, {.batch = 1, .plane = 4, .channels = 64});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("group_norm plans", absl::InternalError("no plan or no stream"));
  alignas(256) static unsigned char memory[256];
  const auto refuses_args = [&](const char* text, const GroupNormArgs& args) {
    report.check(absl::StrCat("group_norm refuses: ", text),
                 refused(kernels::launch_group_norm(trial->stream(), *plan, args), text));
  };
  refuses_args("y is null", {nullptr, memory});
  refuses_args("x (0x", {memory, memory + 1});
  refuses_args("weight (0x", {memory, memory, memory + 1});
  refuses_args("bias (0x", {memory, memory, memory, memory + 1});
  refuses_args("workspace", {memory + 4, memory, memory, memory, {memory, 256}});
}

struct Shape {
  std::uint64_t batch, plane, channels, groups;
};
constexpr Shape kShapes[] = {
    {1, 1, 1, 1},     {1, 1, 32, 32},    {2, 1, 64, 32},  {3, 7, 10, 5},   {1, 33, 8, 1},    {2, 64, 16, 2},
    {1, 100, 24, 3},  {5, 13, 80, 8},    {1, 9, 320, 32}, {1, 40, 32, 32}, {1, 2, 600, 200}, {1, 3, 257, 257},
    {40, 1, 33, 11},  {1, 300, 4, 4},    {3, 64, 120, 5}, {1, 255, 92, 2},  // first lanes without elements
    {5, 256, 64, 32}, {3, 700, 96, 32},  {1, 16, 96, 32}, {2, 90, 64, 64},  // groups narrower than a pack
    {1100, 1, 64, 8}, {1200, 3, 64, 32},  // so many small images that blocks have more groups of one
};
// Of Stable Diffusion and its decoder, and at the limits.
constexpr Shape kReal[] = {
    {2, 4096, 320, 32},  {2, 1024, 640, 32},    {2, 256, 1280, 32}, {2, 64, 2560, 32},
    {1, 65536, 128, 32}, {8, 4096, 960, 32},    {1, 257, 4096, 32}, {1000, 12, 48, 16},
    {1, 1000003, 3, 1},  {3, 5000, 4000, 4000}, {1, 5001, 120, 5},  {16, 1024, 640, 32},
    {1, 16384, 512, 32}, {1, 16384, 1024, 32},  {2, 4096, 128, 32}, {16, 16384, 64, 32},
};

void check_shape(Report& report, const Shape& shape) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const std::string name = absl::StrCat("group_norm ", to_string(type), " ", shape.batch, " x ", shape.plane, " x ",
                                          shape.channels, " in ", shape.groups, " groups");
    const GroupNormDesc desc{type, shape.batch, shape.plane, shape.channels, shape.groups};
    GroupNormDesc with_silu = desc;
    with_silu.activation = GroupNormActivation::kSilu;
    report.check(name, check(desc, {.has_weights = false, .mean = 100}));
    report.check(name + ", silu", check(with_silu, {}));
    report.check(name + ", silu, in place", check(with_silu, {.in_place = true}));
    report.check(name + ", unaligned", check(with_silu, {.shift = 1}));
  }
}

}  // namespace

void check_group_norm(Report& report) {
  check_refusals(report);
  for (const Shape& shape : kShapes) check_shape(report, shape);
  std::mt19937 random(5);
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t groups = 1 + random() % 9, batch = 1 + random() % 3;
    check_shape(report, {batch, 1 + random() % 50, groups * (1 + random() % 20), groups});
  }
  if (report.is_simulated()) return;
  for (const Shape& shape : kReal) check_shape(report, shape);
}

void draw_group_norm(Draw& draw, Report& report) {
  GroupNormDesc desc{.type = draw.float_type(), .groups = draw.size(64)};
  desc.channels = desc.groups * draw.size(4096 / desc.groups);
  std::tie(desc.batch, desc.plane) = draw.matrix(std::max<std::uint64_t>(draw.max_elements(4) / desc.channels, 1));
  desc.activation = draw.of({GroupNormActivation::kNone, GroupNormActivation::kSilu});
  desc.epsilon = draw.of({1e-5f, 1e-6f, 1e-2f});
  const Setup setup{draw.shift(), draw.one_in(4), draw.one_in(2), draw.of({0.5, 100.0})};
  report.check(
      absl::StrCat("group_norm ", to_string(desc.type), " ", desc.batch, " x ", desc.plane, " x ", desc.channels,
                   " in ", desc.groups, " groups, mean ", setup.mean, ", shifted by ", setup.shift),
      check(desc, setup));
}

}  // namespace cgrt::testing
