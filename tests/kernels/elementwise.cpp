// Elementwise operations on arrays and matrices, and maps of a user's own, each regime from both sides
// of its ends.
#include "cgrt_kernels/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/elementwise/map.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/elementwise/reference.h"
#include "kernels/draw.h"
#include "kernels/own_maps.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::ElementwiseArgs;
using kernels::ElementwiseDesc;
using kernels::ElementwiseOp;
using kernels::ElementwisePlan;
using kernels::MatrixArgs;
using kernels::MatrixDesc;
using kernels::MatrixOp;
using kernels::MatrixPlan;
using kernels::size_of;

constexpr float kAlpha = 0.3f;

// The ends of a type's range and what is no number, then random numbers on both sides of where the
// activations bend. Made once per type.
constexpr std::size_t kPool = 1 << 16;
Bytes numbers(DType type, std::uint64_t count, std::uint32_t seed) {
  static std::vector<Bytes> pools[6];
  std::vector<Bytes>& of_type = pools[static_cast<int>(type)];
  while (of_type.size() <= seed) {
    Bytes pool = random_elements(type, kPool, 0.5, 3, static_cast<std::uint32_t>(of_type.size()));
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double most = type == DType::kFloat16 ? 65504 : type == DType::kFloat64 ? 1e308 : 3e38;
    const double extremes[] = {kInf, -kInf, std::nan(""), 0.0, -0.0, most, -most, 1e-40, -1e-40, 6e-8, 1, -1, -40};
    // The two inputs' extremes meet normal numbers and each other.
    for (std::size_t i = 0; i < std::size(extremes); ++i) {
      write_element(type, &pool[(i + of_type.size() * 7 + 3) * size_of(type)], extremes[i]);
    }
    of_type.push_back(std::move(pool));
  }
  const Bytes& pool = of_type[seed];
  Bytes bytes(count * size_of(type));
  for (std::size_t at = 0; at < bytes.size(); at += pool.size()) {
    std::memcpy(&bytes[at], pool.data(), std::min(pool.size(), bytes.size() - at));
  }
  return bytes;
}

double rounded_to(DType type, double value) {
  unsigned char bytes[8];
  write_element(type, bytes, value);
  return read_element(type, bytes);
}

// Sums, products and conversions are rounded once (to float and then to 16 bits, which is the same),
// axpy of 16 bits twice. An activation's exponent has an error of its last places: the smaller the
// result, the larger the exponent was. gelu has up to 3e-7 of erf and of the
// differences from 1, times a number of up to 12 in a gate. An exponential below the
// smallest float is 0, which a gate multiplies by some tens.
enum class Accuracy { kExact, kTwice, kActivation, kGelu };

bool is_close(Accuracy accuracy, DType type, double expected, double found) {
  const double nearest = rounded_to(type, expected);
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (nearest == found) return true;
  if (accuracy == Accuracy::kExact || std::isinf(nearest) || std::isinf(found)) return false;
  const double of_type = type == DType::kFloat16 ? 1.0 / 1024 : type == DType::kBFloat16 ? 1.0 / 128 : 1e-7;
  const bool is_activation = accuracy == Accuracy::kActivation || accuracy == Accuracy::kGelu;
  const double rounding = of_type + (is_activation ? 1e-6 + 2e-7 * std::abs(std::log(std::abs(expected))) : 0);
  const double smallest = accuracy == Accuracy::kGelu ? 1e-5 : 1e-36;
  return std::abs(found - expected) <= rounding * std::abs(expected) + smallest + (type == DType::kFloat16 ? 6e-8 : 0);
}

Accuracy accuracy_of(ElementwiseOp op, DType type) {
  switch (op) {
    case ElementwiseOp::kAxpy: return type == DType::kFloat64 ? Accuracy::kExact : Accuracy::kTwice;
    case ElementwiseOp::kSilu:
    case ElementwiseOp::kGeluTanh: return Accuracy::kActivation;
    case ElementwiseOp::kGelu: return Accuracy::kGelu;
    default: return Accuracy::kExact;
  }
}

absl::Status wrong(std::uint64_t i, double expected, double found) {
  return absl::InternalError(absl::StrCat("element ", i, ": expected ", expected, ", found ", found));
}

// Bytes behind an aligned address.
enum class Variant { kPlain, kInPlace, kInPlaceOfB, kAllShifted, kOneShifted, kHalfShifted };
const char* to_string(Variant variant) {
  switch (variant) {
    case Variant::kPlain: return "";
    case Variant::kInPlace: return " in place";
    case Variant::kInPlaceOfB: return " in place of b";
    case Variant::kAllShifted: return " all misaligned";
    case Variant::kOneShifted: return " one misaligned";
    case Variant::kHalfShifted: return " one misaligned by half";
  }
  return "";
}

absl::Status check(const ElementwiseDesc& desc, Variant variant) {
  const DType out_type = out_type_of(desc);
  const bool is_binary = takes_two_inputs(desc.op), are_all = variant == Variant::kAllShifted;
  const Bytes a = numbers(desc.type, desc.count, 0), b = numbers(desc.type, desc.count, 1);
  const std::size_t size = size_of(desc.type), out_size = size_of(out_type);
  const std::size_t one_shift = variant == Variant::kHalfShifted ? 8 : are_all ? size : 0;
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  ElementwiseArgs args{.alpha = kAlpha};
  void* out = nullptr;
  if (variant == Variant::kInPlace) {
    CGRT_ASSIGN_OR_RETURN(out, trial.output(a));
    args.a = out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.a, trial.input(a, variant == Variant::kOneShifted ? size : one_shift));
  }
  if (variant == Variant::kInPlaceOfB) {
    CGRT_ASSIGN_OR_RETURN(out, trial.output(b));
    args.b = out;
  } else if (is_binary) {
    CGRT_ASSIGN_OR_RETURN(args.b, trial.input(b, are_all ? size : 0));
  }
  if (out == nullptr) {
    CGRT_ASSIGN_OR_RETURN(out, trial.output(desc.count * out_size, are_all ? out_size : 0));
  }
  args.out = out;
  CGRT_ASSIGN_OR_RETURN(const ElementwisePlan plan, kernels::plan_elementwise(kDevice, desc));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_elementwise(target, plan, args); }));

  const Bytes found = trial.found(out);
  const Accuracy accuracy = accuracy_of(desc.op, desc.type);
  for (std::uint64_t i = 0; i < desc.count; ++i) {
    const double x = read_element(desc.type, &a[i * size]), y = read_element(desc.type, &b[i * size]);
    const double got = read_element(out_type, &found[i * out_size]);
    // The limit of x / (1 + exp(-x)) is 0; arithmetic may find no number there.
    if (x == -std::numeric_limits<double>::infinity() && accuracy >= Accuracy::kActivation && !(got < 0)) continue;
    const double expected = kernels::elementwise_reference(desc.op, x, y, static_cast<double>(kAlpha));
    if (!is_close(accuracy, out_type, expected, got)) return wrong(i, expected, got);
  }
  return absl::OkStatus();
}

void check_arrays(Report& report) {
  constexpr std::uint64_t kSmall[] = {1, 2, 7, 8, 9, 255, 1023, 1024, 1025, 2049, 4099, 65539};
  constexpr std::uint64_t kLarge[] = {(1 << 20) + 3, (5 << 20) + 1};
  constexpr Variant kVariants[] = {Variant::kPlain,      Variant::kInPlace,    Variant::kInPlaceOfB,
                                   Variant::kAllShifted, Variant::kOneShifted, Variant::kHalfShifted};
  const auto check_all = [&](ElementwiseDesc desc) {
    const bool is_cast = desc.op == ElementwiseOp::kCast;
    const auto check_one = [&](std::uint64_t count, Variant variant) {
      if (variant == Variant::kInPlaceOfB && !takes_two_inputs(desc.op)) return;
      if (variant == Variant::kInPlace && is_cast) return;
      desc.count = count;
      report.check(
          absl::StrCat(to_string(desc.op), " ", to_string(desc.type),
                       is_cast ? absl::StrCat(" to ", to_string(desc.out_type)) : "", " ", count, to_string(variant)),
          check(desc, variant));
    };
    for (const std::uint64_t count : kSmall) {
      for (const Variant variant : kVariants) {
        if (variant != Variant::kPlain && count > 5000 && report.is_simulated()) continue;
        check_one(count, variant);
      }
    }
    if (report.is_simulated()) return;  // one host body serves all sizes
    for (const std::uint64_t count : kLarge) {
      const bool is_first = desc.op == ElementwiseOp::kMul || is_cast;
      check_one(count, Variant::kPlain);
      for (const Variant variant : {Variant::kAllShifted, Variant::kOneShifted}) {
        if (is_first && count == (1 << 20) + 3) check_one(count, variant);
      }
    }
  };
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const ElementwiseOp op :
         {ElementwiseOp::kScale, ElementwiseOp::kAdd, ElementwiseOp::kMul, ElementwiseOp::kAxpy, ElementwiseOp::kRelu,
          ElementwiseOp::kSilu, ElementwiseOp::kGelu, ElementwiseOp::kGeluTanh}) {
      check_all({.op = op, .type = type});
    }
    for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      if (to != type) check_all({.op = ElementwiseOp::kCast, .type = type, .out_type = to});
    }
  }
  for (const ElementwiseOp op :
       {ElementwiseOp::kScale, ElementwiseOp::kAdd, ElementwiseOp::kMul, ElementwiseOp::kAxpy}) {
    check_all({.op = op, .type = DType::kFloat64});
  }
}

// Elements that each array of a matrix operation begins behind an aligned address; `out` may be `a`.
struct Begins {
  std::size_t out = 0, a = 0, b = 0;
  bool is_in_place = false;
};

absl::Status check(const MatrixDesc& desc, const Begins& begins) {
  const std::uint64_t count = desc.rows * desc.columns, stride = (is_gated(desc.op) ? 2 : 1) * desc.columns;
  const std::size_t size = size_of(desc.type);
  const Bytes a = numbers(desc.type, desc.rows * stride, 0);
  const Bytes b = numbers(desc.type, is_per_row(desc.op) ? desc.rows : desc.columns, 1);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  MatrixArgs args;
  if (begins.is_in_place) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(a, begins.out * size));
    args.a = args.out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(count * size, begins.out * size));
    CGRT_ASSIGN_OR_RETURN(args.a, trial.input(a, begins.a * size));
  }
  if (!is_gated(desc.op)) {
    CGRT_ASSIGN_OR_RETURN(args.b, trial.input(b, begins.b * size));
  }
  CGRT_ASSIGN_OR_RETURN(const MatrixPlan plan, kernels::plan_matrix(kDevice, desc));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_matrix(target, plan, args); }));

  const Bytes found = trial.found(args.out);
  const Accuracy accuracy = !is_gated(desc.op)                 ? Accuracy::kExact
                            : desc.op == MatrixOp::kGeluAndMul ? Accuracy::kGelu
                                                               : Accuracy::kActivation;
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    for (std::uint64_t c = 0; c < desc.columns; ++c) {
      const auto element = [&](const Bytes& from, std::uint64_t i) { return read_element(desc.type, &from[i * size]); };
      const double x = element(a, row * stride + c);
      const double y =
          is_gated(desc.op) ? element(a, row * stride + desc.columns + c) : element(b, is_per_row(desc.op) ? row : c);
      const double expected = kernels::matrix_reference(desc.op, x, y), got = element(found, row * desc.columns + c);
      if (is_gated(desc.op) && (!std::isfinite(x) || !std::isfinite(y) || std::abs(y) > 1e4)) continue;
      if (!is_close(accuracy, desc.type, expected, got)) return wrong(row * desc.columns + c, expected, got);
    }
  }
  return absl::OkStatus();
}

struct Shape {
  std::uint64_t rows, columns;
};

void check_matrices(Report& report) {
  constexpr Shape kShapes[] = {{1, 1},     {3, 7},      {5, 8},      {1000, 1},  {257, 24}, {33, 264},
                               {4099, 3},  {2, 16},     {77, 9},     {19, 15},   {40, 17},  {6, 31},
                               {16, 1000}, {7, 2048},   {19, 2056},  {9, 4104},  {5, 4097}, {1, 14336},
                               {1, 4099},  {64, 14336}, {300, 1030}, {300, 1031}};
  constexpr Begins kBegins[] = {{},        {1, 1, 1}, {0, 0, 1}, {0, 1, 0},       {1, 0, 0},
                                {3, 3, 0}, {2, 5, 7}, {7, 4, 2}, {0, 0, 0, true}, {5, 5, 1, true}};
  for (const MatrixOp op :
       {MatrixOp::kAddPerColumn, MatrixOp::kAddPerRow, MatrixOp::kMulPerColumn, MatrixOp::kMulPerRow,
        MatrixOp::kSiluAndMul, MatrixOp::kGeluAndMul, MatrixOp::kGeluTanhAndMul}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const auto& [rows, columns] : kShapes) {
        if (report.is_simulated() && rows * columns > 20000) continue;
        for (const Begins& begins : kBegins) {
          if (is_gated(op) && begins.is_in_place) continue;
          const bool is_plain = begins.out == 0 && begins.a == 0 && begins.b == 0 && !begins.is_in_place;
          if (!is_plain && rows * columns > 500000) continue;
          report.check(absl::StrCat(to_string(op), " ", to_string(type), " ", rows, "x", columns, ", begins ",
                                    begins.out, " ", begins.a, " ", begins.b, begins.is_in_place ? ", in place" : ""),
                       check({op, type, rows, columns}, begins));
        }
      }
    }
  }
}

// Element i of the nth input: exact in every type.
int number_of(std::uint64_t i, std::uint32_t nth) { return static_cast<int>((i * 37 + nth * 11) % 251) - 125; }

// `expected` says what element i of the output is, given the inputs' elements by number, from 1.
template <class F, class Out, class... In, class Expected>
absl::Status check_map(Kernel<Out*, F, std::uint64_t, const In*...> kernel, const std::type_identity_t<F>& functor,
                       std::uint64_t count, bool is_shifted, Expected expected) {
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_map(kDevice, kernel, count));
  std::uint32_t nth = 0;
  const auto make_input = [&]<class T>(T value) -> absl::StatusOr<const T*> {
    ++nth;
    Bytes bytes(count * sizeof(T));
    for (std::uint64_t i = 0; i < count; ++i) {
      value = static_cast<T>(number_of(i, nth));
      std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
    }
    CGRT_ASSIGN_OR_RETURN(void* data, trial.input(bytes, is_shifted ? sizeof(T) * nth : 0));
    return static_cast<const T*>(data);
  };
  const std::tuple<absl::StatusOr<const In*>...> in{make_input(In{})...};
  CGRT_ASSIGN_OR_RETURN(void* out, trial.output(count * sizeof(Out), is_shifted ? sizeof(Out) : 0));
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) {
    return std::apply(
        [&](const auto&... data) {
          return kernels::launch_map(target, plan, functor, static_cast<Out*>(out), *data...);
        },
        in);
  }));
  const Bytes found = trial.found(out);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto input = [&](std::uint32_t which) { return static_cast<float>(number_of(i, which)); };
    Out got;
    std::memcpy(&got, &found[i * sizeof(Out)], sizeof(Out));
    const Out want = static_cast<Out>(expected(input));
    if (std::memcmp(&got, &want, sizeof(Out)) != 0) {
      return wrong(i, static_cast<double>(static_cast<float>(want)), static_cast<double>(static_cast<float>(got)));
    }
  }
  return absl::OkStatus();
}

void check_maps(Report& report) {
  for (const std::uint64_t count : {1ull, 15ull, 16ull, 17ull, 1024ull, 4100ull, (1ull << 21) + 5}) {
    if (report.is_simulated() && count > 5000) continue;
    for (const bool is_shifted : {false, true}) {
      const std::string what = absl::StrCat(" of one's own ", count, is_shifted ? " misaligned" : "");
      report.check("clamp" + what, check_map(clamp_kernel(), {-50, 50}, count, is_shifted,
                                             [](auto input) { return std::clamp(input(1), -50.0f, 50.0f); }));
      report.check("a * b + c" + what, check_map(mul_add_kernel(), {}, count, is_shifted,
                                                 [](auto input) { return input(1) * input(2) + input(3); }));
      report.check("negate" + what,
                   check_map(negate_kernel(), {}, count, is_shifted, [](auto input) { return -input(1); }));
      report.check("sum of four" + what, check_map(sum_of_four_kernel(), {}, count, is_shifted, [](auto input) {
                     return input(1) + input(2) + input(3) + input(4);
                   }));
      report.check("dequantize" + what, check_map(dequantize_kernel(), {0.25f}, count, is_shifted,
                                                  [](auto input) { return 0.25f * input(1); }));
      report.check("flip" + what, check_map(flip_kernel(), {}, count, is_shifted,
                                            [](auto input) { return ~static_cast<int>(input(1)); }));
      if (report.is_simulated()) continue;  // there it is refused by name
      report.check("reverse bits" + what, check_map(reverse_bits_kernel(), {}, count, is_shifted, [](auto input) {
                     auto bits = static_cast<std::uint32_t>(static_cast<int>(input(1)));
                     std::uint32_t reversed = 0;
                     for (int i = 0; i < 32; ++i, bits >>= 1) reversed = reversed << 1 | (bits & 1);
                     return reversed;
                   }));
    }
  }
}

absl::Status check_refusals() {
  using kernels::launch_elementwise;
  using kernels::launch_matrix;
  using kernels::plan_elementwise;
  using kernels::plan_matrix;
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 256));
  void* const x = buffer.data();
  void* const odd = buffer.as<unsigned char>() + 1;

  CGRT_RETURN_IF_ERROR(
      refused(plan_elementwise(kDevice, {.op = ElementwiseOp::kMul}).status(), "mul: the descriptor has 0"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_elementwise(kDevice, {.op = ElementwiseOp::kSilu, .count = 8, .type = DType::kFloat64}).status(),
              "float64"));
  CGRT_RETURN_IF_ERROR(refused(
      plan_elementwise(kDevice, {.op = ElementwiseOp::kAdd, .count = 8, .type = DType::kInt32}).status(), "int32"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_elementwise(kDevice, {.op = ElementwiseOp::kCast, .count = 8}).status(), "float32 to float32"));

  CGRT_ASSIGN_OR_RETURN(ElementwisePlan add,
                        plan_elementwise(kDevice, {.op = ElementwiseOp::kAdd, .count = 8, .type = DType::kFloat16}));
  CGRT_RETURN_IF_ERROR(refused(launch_elementwise(stream.ref(), add, {.a = x, .b = x}), "add: out is null"));
  CGRT_RETURN_IF_ERROR(refused(launch_elementwise(stream.ref(), add, {.out = x, .b = x}), "a is null"));
  CGRT_RETURN_IF_ERROR(refused(launch_elementwise(stream.ref(), add, {.out = x, .a = x}), "b is null"));
  CGRT_RETURN_IF_ERROR(
      refused(launch_elementwise(stream.ref(), add, {.out = x, .a = x, .b = odd}), "is not aligned to 2 bytes"));

  CGRT_RETURN_IF_ERROR(refused(plan_matrix(kDevice, {.rows = 0, .columns = 8}).status(), "0 rows"));
  CGRT_RETURN_IF_ERROR(refused(plan_matrix(kDevice, {.rows = 8, .columns = 1ull << 31}).status(), "2147483647"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_matrix(kDevice, {.type = DType::kFloat64, .rows = 8, .columns = 8}).status(), "float64"));
  CGRT_ASSIGN_OR_RETURN(MatrixPlan bias, plan_matrix(kDevice, {.rows = 2, .columns = 4}));
  CGRT_RETURN_IF_ERROR(refused(launch_matrix(stream.ref(), bias, {.out = x, .a = x}), "b is null"));
  CGRT_RETURN_IF_ERROR(
      refused(launch_matrix(stream.ref(), bias, {.out = x, .a = odd, .b = x}), "is not aligned to 4 bytes"));
  CGRT_ASSIGN_OR_RETURN(MatrixPlan gate, plan_matrix(kDevice, {MatrixOp::kSiluAndMul, DType::kFloat32, 2, 4}));
  CGRT_RETURN_IF_ERROR(refused(launch_matrix(stream.ref(), gate, {.out = x, .a = x}), "cannot work in place"));

  CGRT_RETURN_IF_ERROR(refused(kernels::plan_map(kDevice, clamp_kernel(), 0).status(), "the count is 0"));
  CGRT_ASSIGN_OR_RETURN(auto clamp, kernels::plan_map(kDevice, clamp_kernel(), 8));
  auto* const half = static_cast<__half*>(x);
  CGRT_RETURN_IF_ERROR(refused(kernels::launch_map(stream.ref(), clamp, {}, nullptr, half), "the output is null"));
  return refused(kernels::launch_map(stream.ref(), clamp, {}, half, static_cast<const __half*>(odd)), "input 1 (0x");
}

}  // namespace

void check_elementwise(Report& report) {
  report.check("refusals", check_refusals());
  check_maps(report);
  check_matrices(report);
  check_arrays(report);
}

void draw_elementwise(Draw& draw, Report& report) {
  const DType type = draw.float_type();
  if (draw.one_in(2)) {
    MatrixDesc desc{
        draw.of({MatrixOp::kAddPerColumn, MatrixOp::kAddPerRow, MatrixOp::kMulPerColumn, MatrixOp::kMulPerRow,
                 MatrixOp::kSiluAndMul, MatrixOp::kGeluAndMul, MatrixOp::kGeluTanhAndMul}),
        type};
    std::tie(desc.rows, desc.columns) = draw.matrix(draw.max_elements(8));
    const Begins begins{draw.shift(), draw.shift(), draw.shift(), !is_gated(desc.op) && draw.one_in(4)};
    report.check(absl::StrCat(to_string(desc.op), " ", to_string(type), " ", desc.rows, "x", desc.columns, ", begins ",
                              begins.out, " ", begins.a, " ", begins.b, begins.is_in_place ? ", in place" : ""),
                 check(desc, begins));
    return;
  }
  ElementwiseDesc desc{.op = draw.of({ElementwiseOp::kScale, ElementwiseOp::kAdd, ElementwiseOp::kMul,
                                      ElementwiseOp::kAxpy, ElementwiseOp::kRelu, ElementwiseOp::kSilu,
                                      ElementwiseOp::kGelu, ElementwiseOp::kGeluTanh, ElementwiseOp::kCast}),
                       .count = draw.size(draw.max_elements(4)),
                       .type = draw.one_in(6) ? DType::kFloat64 : type,
                       .out_type = draw.float_type()};
  Variant variant = draw.of({Variant::kPlain, Variant::kAllShifted, Variant::kOneShifted, Variant::kHalfShifted});
  if (draw.one_in(3) && desc.op != ElementwiseOp::kCast) {
    variant = takes_two_inputs(desc.op) && draw.one_in(2) ? Variant::kInPlaceOfB : Variant::kInPlace;
  }
  report.check(absl::StrCat(to_string(desc.op), " ", to_string(desc.type), " to ", to_string(desc.out_type), " ",
                            desc.count, to_string(variant)),
               check(desc, variant));
}

}  // namespace cgrt::testing
