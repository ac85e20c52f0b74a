// Batch normalization: planes and packs that fit and that do not, channels that stay in shared memory
// and that are read twice, and values far from zero.
#include "cgrt_kernels/batch_norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/batch_norm/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::BatchNormDesc;
using kernels::BatchNormOp;
using kernels::BatchNormPlan;
using kernels::ChannelCoefficients;
using kernels::ChannelOrder;
using kernels::DType;
using kernels::size_of;

enum class Variant { kPlain, kInPlace, kMisaligned, kBare };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kMisaligned: return " misaligned";
    case Variant::kBare: return " without parameters";
  }
  return "";
}

struct Values {
  double mean = 0.5, deviation = 3;
  double of_first = 0;  // deviations that the first element of every third channel is from the mean
};

// Where an element of a channel lies.
std::uint64_t index_of(const BatchNormDesc& desc, std::uint64_t channel, std::uint64_t i) {
  if (desc.order == ChannelOrder::kNhwc) return i * desc.channels + channel;
  return (i / desc.plane * desc.channels + channel) * desc.plane + i % desc.plane;
}

absl::Status compare(const char* what, std::uint64_t channel, std::uint64_t i, double expected, double found,
                     double tolerance) {
  if (std::isfinite(found) && std::abs(found - expected) <= tolerance) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, " of channel ", channel, " at ", i, ": expected ", expected, ", found ",
                                          found, ", tolerance ", tolerance));
}

std::vector<double> floats(const Bytes& bytes) { return to_doubles(DType::kFloat32, bytes); }

// Rounding of the result.
double rounding(DType type, double value) {
  const double relative = type == DType::kFloat32 ? 1e-6 : type == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  return relative * std::abs(value) + (type == DType::kFloat16 ? 6e-8 : 1e-9);
}
// Sums of floats, each thread's in order and then merged: a few tens of roundings of one term each.
constexpr double kSums = 1e-5;
// Means are saved as floats, and subtracted as such.
constexpr double kFloat = 1.2e-7;

class Check {
 public:
  Check(const BatchNormDesc& desc, Variant variant, Values values)
      : desc_(desc), is_bare_(variant == Variant::kBare), is_in_place_(variant == Variant::kInPlace) {
    if (variant == Variant::kMisaligned) shift_ = size_of(desc.type);
    if (shift_ != 0) desc_.alignment = static_cast<std::uint32_t>(shift_);
    count_ = desc.batch * desc.plane, of_first_ = std::abs(values.of_first * values.deviation);
    x_bytes_ = random_elements(desc.type, count_ * desc.channels, values.mean, values.deviation, 1);
    for (std::uint64_t channel = 1; values.of_first != 0 && channel < desc.channels; channel += 3) {
      write_element(desc.type, &x_bytes_[index_of(desc, channel, 0) * size_of(desc.type)],
                    values.mean + values.of_first * values.deviation);
    }
    x_ = to_doubles(desc.type, x_bytes_);
    weight_bytes_ = random_elements(DType::kFloat32, desc.channels, 1, 1, 2);
    bias_bytes_ = random_elements(DType::kFloat32, desc.channels, 0, 1, 3);
    weight_ = floats(weight_bytes_), bias_ = floats(bias_bytes_);
    if (is_bare_) weight_.assign(weight_.size(), 1), bias_.assign(bias_.size(), 0);
  }

  absl::Status run() {
    CGRT_ASSIGN_OR_RETURN(const BatchNormPlan plan, plan_batch_norm(kDevice, desc_));
    CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
    CGRT_ASSIGN_OR_RETURN(void* const out,
                          is_in_place_ ? trial.output(x_bytes_, shift_) : trial.output(x_bytes_.size(), 3 * shift_));
    const void* in = out;
    if (!is_in_place_) {
      CGRT_ASSIGN_OR_RETURN(in, trial.input(x_bytes_, shift_));
    }
    float *weight = nullptr, *bias = nullptr;
    if (!is_bare_) {
      CGRT_ASSIGN_OR_RETURN(weight, input(trial, weight_bytes_));
      CGRT_ASSIGN_OR_RETURN(bias, input(trial, bias_bytes_));
    }
    // Not initialized: what is in the header does not matter here.
    CGRT_ASSIGN_OR_RETURN(const kernels::Workspace workspace, trial.workspace(plan.workspace_bytes));
    switch (desc_.op) {
      case BatchNormOp::kTrain: return train(plan, trial, out, in, weight, bias, workspace);
      case BatchNormOp::kInfer: return infer(plan, trial, out, in, weight, bias);
      case BatchNormOp::kBackward: break;
    }
    return backward(plan, trial, out, in, weight, workspace);
  }

 private:
  static absl::StatusOr<float*> input(Trial& trial, const Bytes& bytes) {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes));
    return static_cast<float*>(data);
  }
  static absl::StatusOr<float*> output(Trial& trial, const Bytes& bytes) {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.output(bytes));
    return static_cast<float*>(data);
  }
  // Twice where nothing is updated: a workspace serves again.
  absl::Status run(Trial& trial, absl::FunctionRef<absl::Status(LaunchTarget)> step) const {
    return trial.run([&](LaunchTarget target) {
      const absl::Status first = is_bare_ ? step(target) : absl::OkStatus();
      return first.ok() ? step(target) : first;
    });
  }
  double x(std::uint64_t channel, std::uint64_t i) const { return x_[index_of(desc_, channel, i)]; }
  kernels::ChannelMoments moments(std::uint64_t channel) const {
    return kernels::channel_moments(count_, [&](std::uint64_t i) { return x(channel, i); });
  }
  double invstd(double variance) const { return 1 / std::sqrt(variance + static_cast<double>(desc_.epsilon)); }

  absl::Status compare_forward(std::uint64_t channel, double mean, double scale, const std::vector<double>& y) const {
    for (std::uint64_t i = 0; i < count_; ++i) {
      const double normalized = scale * weight_[channel] * (x(channel, i) - mean);
      const double expected = normalized + bias_[channel];
      const double tolerance =
          rounding(desc_.type, expected) + kSums * (std::abs(normalized) + std::abs(scale)) +
          kFloat * (std::abs(bias_[channel]) + std::abs(scale * weight_[channel]) * (std::abs(mean) + of_first_));
      const double found = y[index_of(desc_, channel, i)];
      const bool is_too_large = desc_.type == DType::kFloat16 && std::abs(expected) + tolerance >= 65520;
      if (is_too_large && std::isinf(found) && std::signbit(found) == std::signbit(expected)) continue;
      CGRT_RETURN_IF_ERROR(compare("y", channel, i, expected, found, tolerance));
    }
    return absl::OkStatus();
  }

  absl::Status train(const BatchNormPlan& plan, Trial& trial, void* out, const void* in, const float* weight,
                     const float* bias, const kernels::Workspace& workspace) {
    // With a momentum of 1 nothing is kept of it, however large it is.
    const double momentum = static_cast<double>(desc_.momentum), kept_variance = momentum == 1 ? 1e8 : 5;
    const Bytes running_mean = random_elements(DType::kFloat32, desc_.channels, 0, 1, 4),
                running_variance = random_elements(DType::kFloat32, desc_.channels, kept_variance, 1, 5);
    const Bytes poison(desc_.channels * sizeof(float), 0xfb);
    kernels::BatchNormTrainArgs args{.y = out, .x = in, .weight = weight, .bias = bias};
    CGRT_ASSIGN_OR_RETURN(args.save_mean, output(trial, poison));
    CGRT_ASSIGN_OR_RETURN(args.save_invstd, output(trial, poison));
    if (!is_bare_) {
      CGRT_ASSIGN_OR_RETURN(args.running_mean, output(trial, running_mean));
      CGRT_ASSIGN_OR_RETURN(args.running_variance, output(trial, running_variance));
    }
    args.workspace = workspace;
    const auto step = [&](LaunchTarget target) { return launch_batch_norm_train(target, plan, args); };
    CGRT_RETURN_IF_ERROR(run(trial, step));

    const std::vector<double> y = to_doubles(desc_.type, trial.found(out)), saved = floats(trial.found(args.save_mean)),
                              inverse = floats(trial.found(args.save_invstd));
    const std::vector<double> mean_before = floats(running_mean), variance_before = floats(running_variance);
    std::vector<double> mean_found, variance_found;
    if (!is_bare_) {
      mean_found = floats(trial.found(args.running_mean)), variance_found = floats(trial.found(args.running_variance));
    }
    for (std::uint64_t c = 0; c < desc_.channels; ++c) {
      const auto [mean, variance] = moments(c);
      const double deviation = std::sqrt(variance), scale = invstd(variance);
      CGRT_RETURN_IF_ERROR(
          compare("mean", c, 0, mean, saved[c], kFloat * (std::abs(mean) + of_first_) + kSums * deviation));
      CGRT_RETURN_IF_ERROR(compare("invstd", c, 0, scale, inverse[c], kSums * scale));
      CGRT_RETURN_IF_ERROR(compare_forward(c, mean, scale, y));
      if (is_bare_) continue;
      const double mean_after = kernels::running_reference(mean_before[c], momentum, mean);
      const double variance_after =
          kernels::running_reference(variance_before[c], momentum, kernels::unbiased(variance, count_));
      CGRT_RETURN_IF_ERROR(
          compare("running_mean", c, 0, mean_after, mean_found[c], kSums * (1 + std::abs(mean_after) + deviation)));
      // Of equal elements the reference's is not 0 either: its mean is rounded.
      CGRT_RETURN_IF_ERROR(compare("running_variance", c, 0, variance_after, variance_found[c],
                                   kSums * ((1 - momentum) * kept_variance + variance_after) + 1e-15 * mean * mean));
    }
    return absl::OkStatus();
  }

  absl::Status infer(const BatchNormPlan& plan, Trial& trial, void* out, const void* in, const float* weight,
                     const float* bias) {
    const Bytes mean_bytes = random_elements(DType::kFloat32, desc_.channels, 0, 1, 4);
    std::vector<double> variance = floats(random_elements(DType::kFloat32, desc_.channels, 0, 2, 5));
    for (double& value : variance) value = std::abs(value);
    kernels::BatchNormInferArgs args{.y = out, .x = in, .weight = weight, .bias = bias};
    CGRT_ASSIGN_OR_RETURN(args.running_mean, input(trial, mean_bytes));
    CGRT_ASSIGN_OR_RETURN(args.running_variance, input(trial, to_elements(DType::kFloat32, variance)));
    CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return launch_batch_norm_infer(target, plan, args); }));

    const std::vector<double> y = to_doubles(desc_.type, trial.found(out)), mean = floats(mean_bytes);
    for (std::uint64_t c = 0; c < desc_.channels; ++c) {
      CGRT_RETURN_IF_ERROR(compare_forward(c, mean[c], invstd(variance[c]), y));
    }
    return absl::OkStatus();
  }

  absl::Status backward(const BatchNormPlan& plan, Trial& trial, void* out, const void* in, const float* weight,
                        const kernels::Workspace& workspace) {
    const Bytes gradient_bytes = random_elements(desc_.type, count_ * desc_.channels, 0.25, 1, 6);
    std::vector<double> mean, scale;
    for (std::uint64_t c = 0; c < desc_.channels; ++c) {
      const auto [of_channel, variance] = moments(c);
      mean.push_back(of_channel), scale.push_back(invstd(variance));
    }
    const Bytes mean_bytes = to_elements(DType::kFloat32, mean), scale_bytes = to_elements(DType::kFloat32, scale);
    mean = floats(mean_bytes), scale = floats(scale_bytes);
    const Bytes poison(desc_.channels * sizeof(float), 0xfb);
    kernels::BatchNormBackwardArgs args{.x_gradient = out, .x = in, .weight = weight};
    CGRT_ASSIGN_OR_RETURN(args.y_gradient, trial.input(gradient_bytes, shift_));
    CGRT_ASSIGN_OR_RETURN(args.save_mean, input(trial, mean_bytes));
    CGRT_ASSIGN_OR_RETURN(args.save_invstd, input(trial, scale_bytes));
    if (!is_bare_) {
      CGRT_ASSIGN_OR_RETURN(args.weight_gradient, output(trial, poison));
      CGRT_ASSIGN_OR_RETURN(args.bias_gradient, output(trial, poison));
    }
    args.workspace = workspace;
    const auto step = [&](LaunchTarget target) { return launch_batch_norm_backward(target, plan, args); };
    CGRT_RETURN_IF_ERROR(run(trial, step));

    const std::vector<double> found = to_doubles(desc_.type, trial.found(out)),
                              gradients = to_doubles(desc_.type, gradient_bytes);
    std::vector<double> weight_found, bias_found;
    if (!is_bare_) {
      weight_found = floats(trial.found(args.weight_gradient)), bias_found = floats(trial.found(args.bias_gradient));
    }
    for (std::uint64_t c = 0; c < desc_.channels; ++c) {
      double sum = 0, products = 0, sizes = 0, product_sizes = 0;
      for (std::uint64_t i = 0; i < count_; ++i) {
        const double gradient = gradients[index_of(desc_, c, i)], product = gradient * (x(c, i) - mean[c]);
        sum += gradient, products += product;
        sizes += std::abs(gradient), product_sizes += std::abs(product);
      }
      const double n = static_cast<double>(count_), slope = std::abs(weight_[c]) * scale[c];
      const ChannelCoefficients of = kernels::backward_coefficients(mean[c], scale[c], weight_[c], sum, products, n);
      for (std::uint64_t i = 0; i < count_; ++i) {
        const double gradient = gradients[index_of(desc_, c, i)], centered = x(c, i) - mean[c];
        const double expected = of(x(c, i), gradient);
        const double terms =
            std::abs(gradient) + sizes / n + std::abs(centered) * scale[c] * scale[c] * product_sizes / n;
        CGRT_RETURN_IF_ERROR(compare("x_gradient", c, i, expected, found[index_of(desc_, c, i)],
                                     rounding(desc_.type, expected) + kSums * slope * terms));
      }
      if (is_bare_) continue;
      CGRT_RETURN_IF_ERROR(
          compare("weight_gradient", c, 0, products * scale[c], weight_found[c], kSums * product_sizes * scale[c]));
      CGRT_RETURN_IF_ERROR(compare("bias_gradient", c, 0, sum, bias_found[c], kSums * sizes));
    }
    return absl::OkStatus();
  }

  BatchNormDesc desc_;
  bool is_bare_, is_in_place_;
  double of_first_ = 0;  // how far first elements are from the mean, which they cost kFloat of it
  std::size_t shift_ = 0;
  std::uint64_t count_ = 0;
  Bytes x_bytes_, weight_bytes_, bias_bytes_;
  std::vector<double> x_, weight_, bias_;
};

struct Shape {
  ChannelOrder order;
  std::uint64_t batch, channels, plane;
  std::uint64_t count() const { return batch * channels * plane; }
};
constexpr ChannelOrder kNchw = ChannelOrder::kNchw, kNhwc = ChannelOrder::kNhwc;
constexpr Shape kShapes[] = {
    // In shared memory, where whole channels make whole packs; element by element where none do.
    {kNchw, 2, 1, 1},
    {kNchw, 1, 3, 2},
    {kNchw, 3, 5, 7},
    {kNchw, 4, 8, 1},
    {kNchw, 7, 8, 3},
    {kNchw, 5, 16, 49},
    {kNchw, 33, 64, 49},
    {kNchw, 3, 6, 196},
    {kNchw, 9, 3, 784},
    {kNchw, 17, 2, 3136},
    {kNhwc, 31, 3, 1},
    {kNhwc, 2, 8, 1},
    {kNhwc, 65, 24, 1},
    {kNhwc, 257, 111, 1},
    {kNhwc, 3, 64, 49},
    {kNhwc, 1000, 32, 1},
    // Planes of whole packs, of channels that a block holds as such: one pack of a thread, four, one more.
    {kNchw, 1, 5, 16},
    {kNchw, 3, 7, 24},
    {kNchw, 128, 9, 64},
    {kNchw, 64, 3, 256},
    {kNchw, 31, 2, 1056},
    {kNchw, 128, 2, 256},
    {kNchw, 129, 2, 256},
    {kNchw, 4, 300, 64},
    // Rows that are no whole packs: planes of a pack and more, shorter ones, channels fewer than a pack has elements.
    {kNchw, 43, 137, 81},
    {kNchw, 11, 101, 9},
    {kNchw, 40, 33, 5},
    {kNhwc, 333, 3, 7},
    // Planes and rows of a batch of 256.
    {kNchw, 256, 16, 49},
    {kNchw, 256, 4, 196},
    {kNchw, 256, 2, 784},
    {kNchw, 256, 1, 3136},
    {kNhwc, 256, 128, 49},
    // Several channels in a block that finishes them, the last one not full.
    {kNhwc, 3000, 1111, 1},
    {kNhwc, 1000, 2056, 1},
    // Too long for shared memory: read twice. Packs in one channel, across two, and across many; the
    // last tile not full, channels that begin and end within tiles.
    {kNchw, 150, 3, 12544},
    {kNchw, 3001, 24, 49},
    {kNchw, 1000, 3, 2300},
    {kNchw, 125000, 8, 3},
    {kNhwc, 120000, 24, 1},
    {kNhwc, 70001, 64, 1},
    {kNhwc, 65536, 40, 1},
};
constexpr std::uint64_t kSmall = 1 << 15, kMiddle = 1 << 18;

absl::Status expect_refusal(const absl::Status& status, const std::string& text) {
  if (status.code() == absl::StatusCode::kInvalidArgument && absl::StrContains(status.message(), text)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("expected \"", text, "\", found: ", status.ToString()));
}

absl::Status check_refusals() {
  const auto plan = [](const BatchNormDesc& desc) { return plan_batch_norm(kDevice, desc); };
  const BatchNormDesc desc{.batch = 150000, .channels = 8, .plane = 3};
  const auto refused = [&](auto change, const char* text) {
    BatchNormDesc changed = desc;
    change(changed);
    return expect_refusal(plan(changed).status(), text);
  };
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.batch = 0; }, "batch 0"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.channels = 0; }, "0 channels"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.plane = 0; }, "of 0 elements"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.plane = std::uint64_t{1} << 30; }, "at most 2147483647"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.batch = UINT64_MAX; }, "at most 2147483647"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.type = DType::kInt32; }, "no kernel for int32"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.batch = d.plane = 1; }, "no variance"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.alignment = 2; }, "alignment (2)"));
  CGRT_RETURN_IF_ERROR(refused([](BatchNormDesc& d) { d.alignment = 24; }, "alignment (24)"));

  CGRT_ASSIGN_OR_RETURN(const BatchNormPlan train, plan(desc));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 4096));
  auto* const data = buffer.as<float>();
  const kernels::BatchNormTrainArgs good{
      .y = data, .x = data, .save_mean = data, .save_invstd = data, .workspace = {data, train.workspace_bytes}};
  const auto launch_refused = [&](auto change, const char* text) {
    kernels::BatchNormTrainArgs args = good;
    change(args);
    return expect_refusal(launch_batch_norm_train(stream.ref(), train, args), text);
  };
  using Args = kernels::BatchNormTrainArgs;
  CGRT_RETURN_IF_ERROR(launch_refused([](Args& a) { a.y = nullptr; }, "y is null"));
  CGRT_RETURN_IF_ERROR(launch_refused([](Args& a) { a.x = nullptr; }, "x is null"));
  CGRT_RETURN_IF_ERROR(launch_refused([&](Args& a) { a.x = data + 1; }, "not aligned to 16 bytes"));
  CGRT_RETURN_IF_ERROR(launch_refused([](Args& a) { a.save_mean = nullptr; }, "save_mean is null"));
  CGRT_RETURN_IF_ERROR(launch_refused([&](Args& a) { a.running_mean = data; }, "running_variance is null"));
  CGRT_RETURN_IF_ERROR(launch_refused([](Args& a) { a.workspace.data = nullptr; }, "workspace is null"));
  CGRT_RETURN_IF_ERROR(launch_refused([&](Args& a) { a.workspace.data = data + 4; }, "not aligned to 256 bytes"));
  CGRT_RETURN_IF_ERROR(launch_refused([](Args& a) { --a.workspace.bytes; }, "the plan needs"));
  CGRT_RETURN_IF_ERROR(expect_refusal(launch_batch_norm_infer(stream.ref(), train, {}), "the plan is for"));
  return expect_refusal(launch_batch_norm_backward(stream.ref(), train, {}), "the plan is for");
}

// What is not finite stays in its channel.
absl::Status check_infinity(const Shape& shape) {
  const BatchNormDesc desc{
      .order = shape.order, .batch = shape.batch, .channels = shape.channels, .plane = shape.plane};
  std::vector<double> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  values[index_of(desc, 1, 0)] = std::numeric_limits<double>::infinity();
  CGRT_ASSIGN_OR_RETURN(const BatchNormPlan plan, plan_batch_norm(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  kernels::BatchNormTrainArgs args;
  const std::size_t channel_bytes = desc.channels * sizeof(float);
  CGRT_ASSIGN_OR_RETURN(args.x, trial.input(to_elements(DType::kFloat32, values)));
  CGRT_ASSIGN_OR_RETURN(args.y, trial.output(values.size() * sizeof(float)));
  CGRT_ASSIGN_OR_RETURN(void* const mean, trial.output(channel_bytes));
  CGRT_ASSIGN_OR_RETURN(void* const invstd, trial.output(channel_bytes));
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  args.save_mean = static_cast<float*>(mean), args.save_invstd = static_cast<float*>(invstd);
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return launch_batch_norm_train(target, plan, args); }));
  const std::vector<double> y = floats(trial.found(args.y));
  for (std::uint64_t c = 0; c < desc.channels; ++c) {
    for (std::uint64_t i = 0; i < desc.batch * desc.plane; ++i) {
      if (std::isfinite(y[index_of(desc, c, i)]) == (c == 1)) {
        return absl::InternalError(absl::StrCat("channel ", c, " at ", i, ": ", y[index_of(desc, c, i)]));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

void check_batch_norm(Report& report) {
  for (const BatchNormOp op : {BatchNormOp::kTrain, BatchNormOp::kInfer, BatchNormOp::kBackward}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const Shape& shape : kShapes) {
        if (report.is_simulated() && shape.count() > kSmall) continue;
        if (op == BatchNormOp::kTrain && shape.batch * shape.plane == 1) continue;
        for (const Variant variant : {Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kBare}) {
          if (variant != Variant::kPlain && shape.count() > kMiddle) continue;
          const BatchNormDesc desc{.op = op,
                                   .order = shape.order,
                                   .type = type,
                                   .batch = shape.batch,
                                   .channels = shape.channels,
                                   .plane = shape.plane};
          report.check(absl::StrCat(to_string(op), " ", to_string(type), shape.order == kNchw ? " nchw " : " nhwc ",
                                    shape.batch, "x", shape.channels, "x", shape.plane, to_string(variant)),
                       Check(desc, variant, {}).run());
        }
      }
    }
  }
  // A mean 100,000 times the deviation: sums of squares would leave nothing of the variance. And first elements far
  // from all others: sums around them would leave little.
  for (const Shape& shape : {Shape{kNchw, 64, 8, 49}, Shape{kNchw, 64, 8, 256}, Shape{kNhwc, 300, 8, 1},
                             Shape{kNhwc, 3000, 8, 1}, Shape{kNhwc, 150000, 12, 1}}) {
    if (report.is_simulated() && shape.count() > kSmall) continue;
    for (const Variant variant : {Variant::kPlain, Variant::kMisaligned}) {
      const BatchNormDesc desc{
          .order = shape.order, .batch = shape.batch, .channels = shape.channels, .plane = shape.plane, .momentum = 1};
      for (const Values& values : {Values{1000, 0.01}, Values{0.5, 3, 30}, Values{0.5, 3, -100}}) {
        report.check(absl::StrCat("batch_norm_train ", shape.count(), " with mean ", values.mean, ", first ",
                                  values.of_first, to_string(variant)),
                     Check(desc, variant, values).run());
      }
    }
  }
  report.check("batch_norm infinity in shared memory", check_infinity({kNchw, 9, 8, 49}));
  report.check("batch_norm infinity element by element", check_infinity({kNhwc, 99, 9, 1}));
  if (!report.is_simulated()) report.check("batch_norm infinity read twice", check_infinity({kNchw, 3000, 8, 49}));
  report.check("batch_norm refusals", check_refusals());
}

void draw_batch_norm(Draw& draw, Report& report) {
  BatchNormDesc desc{.op = draw.of({BatchNormOp::kTrain, BatchNormOp::kInfer, BatchNormOp::kBackward}),
                     .order = draw.of({kNchw, kNhwc}),
                     .type = draw.float_type()};
  std::tie(desc.batch, desc.channels) = draw.matrix(draw.max_elements(8));
  desc.plane = draw.size(5000);
  Draw::shrink(draw.max_elements(8), {&desc.batch, &desc.channels, &desc.plane});
  desc.epsilon = draw.of({1e-5f, 1e-3f}), desc.momentum = draw.of({0.1f, 0.0f, 1.0f});
  const Variant variant = draw.of({Variant::kPlain, Variant::kInPlace, Variant::kMisaligned, Variant::kBare});
  const Values values = draw.of({Values{}, Values{}, Values{1000, 0.5}, Values{0.5, 3, 100}});
  report.check(absl::StrCat(to_string(desc.op), " ", to_string(desc.type), desc.order == kNchw ? " nchw " : " nhwc ",
                            desc.batch, "x", desc.channels, "x", desc.plane, ", mean ", values.mean, ", first ",
                            values.of_first, to_string(variant)),
               Check(desc, variant, values).run());
}

}  // namespace cgrt::testing
