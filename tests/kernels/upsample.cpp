// Nearest upsampling and its gradient, each regime from both sides of its ends.
#include "cgrt_kernels/upsample/upsample.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/upsample/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::ImageLayout;
using kernels::size_of;
using kernels::UpsampleArgs;
using kernels::UpsampleDesc;
using kernels::UpsampleOp;
using kernels::UpsamplePlan;
using kernels::UpsampleShape;

// Copies keep their bits, whatever the bits mean.
absl::Status check_copies(const UpsampleDesc& desc, const UpsampleShape& shape, const Bytes& x, const Bytes& y) {
  const std::size_t size = size_of(desc.type);
  std::size_t wrong = 0, at = 0;
  visit_upsampled(shape, [&](std::size_t to, std::size_t from) {
    if (std::equal(&y[to * size], &y[to * size] + size, &x[from * size])) return;
    if (wrong++ == 0) at = to;
  });
  if (wrong == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(wrong, " elements are not those of the image, the first is ", at));
}

// Float sums of a few numbers, rounded to the type: sums may cancel, so the error is one of the
// numbers' own size.
absl::Status check_sums(const UpsampleDesc& desc, const UpsampleShape& shape, const Bytes& x, const Bytes& y) {
  std::vector<double> numbers = to_doubles(desc.type, x);
  const std::vector<double> expected = upsample_backward_reference(shape, numbers);
  for (double& number : numbers) number = std::abs(number);
  const std::vector<double> sizes = upsample_backward_reference(shape, numbers);
  const std::vector<double> found = to_doubles(desc.type, y);
  const double max = desc.type == DType::kFloat16 ? 65504 : std::numeric_limits<float>::max();
  const double rounding = desc.type == DType::kFloat32 ? 0 : desc.type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double allowed = rounding * std::abs(expected[i]) + 2e-6 * sizes[i] + 6e-8;
    const bool is_beyond = std::abs(expected[i]) > max;
    if (found[i] == (is_beyond ? std::copysign(INFINITY, expected[i]) : expected[i])) continue;
    if (std::abs(found[i] - expected[i]) <= allowed) continue;
    return absl::InternalError(absl::StrCat("element ", i, ": expected ", expected[i], ", found ", found[i]));
  }
  return absl::OkStatus();
}

absl::Status check(const UpsampleDesc& desc, std::size_t shift, double mean = 0.5, double deviation = 1) {
  CGRT_ASSIGN_OR_RETURN(const UpsamplePlan plan, kernels::plan_upsample(kDevice, desc));
  const UpsampleShape& shape = plan.by_alignment[0].shape;
  const std::size_t small = upsample_pixels(shape);
  const std::size_t large = desc.batch * desc.channels * desc.out_height * desc.out_width;
  const bool is_forward = desc.op == UpsampleOp::kForward;
  const Bytes x = random_elements(desc.type, is_forward ? small : large, mean, deviation, 1);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  UpsampleArgs args;
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output((is_forward ? large : small) * size_of(desc.type), shift));
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(x, shift));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_upsample(target, plan, args); }));
  const Bytes y = trial.found(args.out);
  return is_forward ? check_copies(desc, shape, x, y) : check_sums(desc, shape, x, y);
}

struct Images {
  std::uint64_t batch, channels, height, width, out_height, out_width;
  double factor_height = 0, factor_width = 0;
};
constexpr Images kImages[] = {
    {1, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 5, 7},
    {2, 3, 4, 8, 8, 16},
    {2, 3, 5, 7, 10, 14},
    {1, 2, 3, 4, 6, 8},
    {1, 2, 3, 2, 6, 4},
    {2, 2, 9, 16, 18, 16},
    {2, 2, 9, 16, 9, 32},
    {1, 8, 6, 10, 18, 30},
    {1, 3, 6, 11, 18, 33},
    {2, 16, 8, 8, 12, 12},
    {2, 5, 6, 10, 9, 15},
    {2, 3, 10, 32, 15, 48},
    {1, 4, 16, 16, 8, 8},
    {1, 7, 17, 31, 5, 11},
    {1, 16, 13, 29, 37, 101},
    {1, 2, 3, 3, 24, 15},
    {1, 24, 10, 10, 13, 13, 1.3, 1.3},
    {2, 8, 10, 10, 21, 21, 2.1, 2.1},
    {1, 256, 5, 31, 6, 40, 1.3, 1.3},  // the last row has no copies
    {3, 50, 7, 16, 8, 16, 1.2, 1},
    {1, 1, 30, 49, 61, 147, 2.05, 3},
    {1, 2, 3, 16, 24, 400},
    {3, 3, 10, 16, 21, 40, 2.1, 2.3},
    {1, 2, 7, 704, 10, 2112},
    {1, 1, 2, 1, 3, 8192},
};
// As large as those that are measured, or a part of them.
constexpr Images kReal[] = {{8, 32, 80, 80, 160, 160},      {1, 64, 256, 256, 384, 384}, {1, 512, 64, 64, 128, 128},
                            {1, 1, 1080, 1920, 3240, 5760}, {2, 1, 128, 128, 384, 384},  {1, 3, 152, 152, 456, 456}};

void check_images(Report& report, const Images& images, bool is_thorough) {
  for (const UpsampleOp op : {UpsampleOp::kForward, UpsampleOp::kBackward}) {
    for (const ImageLayout layout : {ImageLayout::kNchw, ImageLayout::kNhwc}) {
      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        if (!is_thorough && type == DType::kBFloat16) continue;
        for (const std::size_t shift : {0, 1, 2, 4}) {  // elements
          if (!is_thorough && shift > 1) continue;
          const UpsampleDesc desc{op,
                                  type,
                                  layout,
                                  images.batch,
                                  images.channels,
                                  images.height,
                                  images.width,
                                  images.out_height,
                                  images.out_width,
                                  images.factor_height,
                                  images.factor_width};
          report.check(absl::StrCat(to_string(op), " ", to_string(type), layout == ImageLayout::kNchw ? " " : " nhwc ",
                                    images.batch, "x", images.channels, "x", images.height, "x", images.width, " to ",
                                    images.out_height, "x", images.out_width, " shifted by ", shift),
                       check(desc, shift * size_of(type)));
        }
      }
    }
  }
}

}  // namespace

void check_upsample(Report& report) {
  for (const Images& images : kImages) check_images(report, images, true);
  if (!report.is_simulated()) {
    for (const Images& images : kReal) check_images(report, images, false);
  }

  // Of so many summands, added one after the other, the last would be lost.
  for (const ImageLayout layout : {ImageLayout::kNchw, ImageLayout::kNhwc}) {
    for (const std::uint64_t width : {512, 1 << 12, 1 << 20}) {
      const UpsampleDesc many{UpsampleOp::kBackward, DType::kFloat32, layout, 1, 4, 1, 1, (1 << 20) / width, width};
      for (const double number : {0.7, 3e38, static_cast<double>(INFINITY)}) {
        report.check(absl::StrCat("upsample_backward of 2^20 copies of ", number, ", rows of ", width,
                                  layout == ImageLayout::kNchw ? "" : ", nhwc"),
                     check(many, 0, number, 0));
      }
    }
  }

  const UpsampleDesc good{.batch = 2, .channels = 3, .height = 4, .width = 4, .out_height = 8, .out_width = 8};
  // Which kernels serve it depends on that.
  report.check("upsample sees where all pixels have as many copies", [&]() -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const UpsamplePlan plan, kernels::plan_upsample(kDevice, good));
    const UpsampleShape& shape = plan.by_alignment[0].shape;
    if (shape.rows.factor == 2 && shape.columns.factor == 2) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("expected 2 and 2, found ", shape.rows.factor, " and ", shape.columns.factor));
  }());
  const auto plan_of = [&](auto change) {
    UpsampleDesc desc = good;
    change(desc);
    return kernels::plan_upsample(kDevice, desc).status();
  };
  report.check("upsample refuses no channels",
               refused(plan_of([](UpsampleDesc& d) { d.channels = 0; }), "2 images of 0"));
  report.check("upsample refuses no rows of the output",
               refused(plan_of([](UpsampleDesc& d) { d.out_height = 0; }), "3 x 0 x 8"));
  report.check("upsample refuses too many elements",
               refused(plan_of([](UpsampleDesc& d) { d.batch = std::uint64_t{1} << 60; }), "2147483647 elements"));
  report.check("upsample refuses more columns than a float counts",
               refused(plan_of([](UpsampleDesc& d) { d.out_width = (1u << 24) + 1; }), "16777216 rows and columns"));
  report.check("upsample refuses integers", refused(plan_of([](UpsampleDesc& d) { d.type = DType::kInt32; }), "int32"));
  report.check("upsample refuses a negative factor",
               refused(plan_of([](UpsampleDesc& d) { d.factor_width = -2; }), "factors"));
  report.check("upsample refuses a factor that is far from the sizes",
               refused(plan_of([](UpsampleDesc& d) { d.factor_height = 1e-30; }), "factors"));
  const absl::StatusOr<UpsamplePlan> plan = kernels::plan_upsample(kDevice, good);
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("upsample plans", absl::InternalError("no plan or no stream"));
  alignas(16) static char memory[16];
  report.check("upsample refuses a null out",
               refused(launch_upsample(trial->stream(), *plan, {.in = memory}), "out is null"));
  report.check("upsample refuses a misaligned in",
               refused(launch_upsample(trial->stream(), *plan, {.out = memory, .in = memory + 2}), "in (0x"));
}

void draw_upsample(Draw& draw, Report& report) {
  UpsampleDesc desc{.op = draw.of({UpsampleOp::kForward, UpsampleOp::kBackward}),
                    .type = draw.float_type(),
                    .layout = draw.of({ImageLayout::kNchw, ImageLayout::kNhwc}),
                    .batch = draw.size(16),
                    .channels = draw.size(600)};
  std::tie(desc.height, desc.width) = draw.matrix(draw.max_elements(8));
  const auto out_of = [&](std::uint64_t size, double& factor) -> std::uint64_t {
    if (draw.one_in(4)) return draw.size(4 * size + 3);
    if (draw.one_in(2)) return size * draw.of<std::uint64_t>({1, 2, 2, 3, 4, 7});
    if (draw.one_in(2)) return (3 * size + 1) / 2;
    factor = draw.of({1.3, 2.1, 0.7, 1.5, 2.0});
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(size) * factor), 1);
  };
  desc.out_height = out_of(desc.height, desc.factor_height);
  desc.out_width = out_of(desc.width, desc.factor_width);
  const std::uint64_t pixels = std::max(desc.height * desc.width, desc.out_height * desc.out_width);
  Draw::shrink(std::max<std::uint64_t>(draw.max_elements(8) / pixels, 1), {&desc.batch, &desc.channels});
  const std::size_t shift = draw.shift();
  report.check(
      absl::StrCat(to_string(desc.op), " ", to_string(desc.type), desc.layout == ImageLayout::kNchw ? " " : " nhwc ",
                   desc.batch, "x", desc.channels, "x", desc.height, "x", desc.width, " to ", desc.out_height, "x",
                   desc.out_width, " by ", desc.factor_height, " and ", desc.factor_width, " shifted by ", shift),
      check(desc, shift * size_of(desc.type)));
}

}  // namespace cgrt::testing
