#include "cgrt_kernels/elementwise/elementwise.h"

#include <algorithm>
#include <memory>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/library.h"
#include "cgrt_kernels/elementwise/map.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/elementwise_maps.h"
#include "kernels/bench/raw_cub.h"

namespace cgrt::bench {
namespace {

using kernels::DType;
using kernels::ElementwiseOp;
using kernels::MatrixOp;
using kernels::size_of;

struct Arrays {
  void* out;
  const void *a, *b;
};

// Elements of each array and their types. `b` of 0 elements is not there.
struct Sizes {
  std::uint64_t out, a, b;
  DType type, out_type;
};

Work work_on(const Case& test, const Sizes& sizes, std::function<absl::Status(LaunchTarget, const Arrays&)> start) {
  const std::size_t size = size_of(sizes.type), out_size = size_of(sizes.out_type);
  struct Set {
    Array out, a, b;
  };
  return Work{sizes.out * out_size + (sizes.a + sizes.b) * size,
              [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, sizes.out_type, sizes.out));
                CGRT_ASSIGN_OR_RETURN(Array a, make_array(test, stream, sizes.type, sizes.a, seed));
                CGRT_ASSIGN_OR_RETURN(Array b, make_array(test, stream, sizes.type, sizes.b + 1, seed + 1));
                const auto set = std::make_shared<Set>(Set{std::move(out), std::move(a), std::move(b)});
                const Arrays arrays{test.is_chain ? set->a.data() : set->out.data(), set->a.data(), set->b.data()};
                return [=](LaunchTarget target) {
                  static_cast<void>(set);  // lives as long as this
                  return start(target, arrays);
                };
              }};
}

absl::StatusOr<Work> make_arrays(const Case& test, ElementwiseOp op) {
  kernels::ElementwiseDesc desc{.op = op, .type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.count, test.size("count"));
  if (test.type == DType::kFloat32) desc.out_type = DType::kFloat16;  // of a cast
  CGRT_ASSIGN_OR_RETURN(const kernels::ElementwisePlan plan, plan_elementwise(kDevice, desc));
  const Sizes sizes{desc.count, desc.count, takes_two_inputs(op) ? desc.count : 0, desc.type, out_type_of(desc)};
  return work_on(test, sizes, [=](LaunchTarget target, const Arrays& arrays) {
    return launch_elementwise(target, plan, {.out = arrays.out, .a = arrays.a, .b = arrays.b, .alpha = 1.5f});
  });
}

absl::StatusOr<Work> make_matrix(const Case& test, MatrixOp op) {
  kernels::MatrixDesc desc{.op = op, .type = test.type};
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::MatrixPlan plan, plan_matrix(kDevice, desc));
  const std::uint64_t count = desc.rows * desc.columns, of_b = is_per_row(op) ? desc.rows : desc.columns;
  const Sizes sizes{count, is_gated(op) ? 2 * count : count, is_gated(op) ? 0 : of_b, desc.type, desc.type};
  // A gate has no place for its result in its input: chains of it write elsewhere.
  Case test_of_work = test;
  test_of_work.is_chain = test.is_chain && !is_gated(op);
  return work_on(test_of_work, sizes, [=](LaunchTarget target, const Arrays& arrays) {
    return launch_matrix(target, plan, {.out = arrays.out, .a = arrays.a, .b = arrays.b});
  });
}

absl::StatusOr<Work> make_naive(const Case& test) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  const LaunchConfig config{.grid = static_cast<std::uint32_t>((count - 1) / 256 + 1), .block = 256};
  const NaiveKernel kernel = mul_naive_kernel(test.type);
  return work_on(test, {count, count, count, test.type, test.type}, [=](LaunchTarget target, const Arrays& arrays) {
    return launch(target, config, kernel, arrays.out, arrays.a, arrays.b, count);
  });
}

absl::StatusOr<Work> make_raw_cub_mul(const Case& test) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  if (test.type != DType::kFloat32) return absl::InvalidArgumentError("raw_cub_mul takes float32.");
  return work_on(test, {count, count, count, test.type, test.type}, [=](LaunchTarget target, const Arrays& arrays) {
    return kernels::launch_library(target, [&](CUstream into) {
      return raw_cub_mul(static_cast<const float*>(arrays.a), static_cast<const float*>(arrays.b),
                         static_cast<float*>(arrays.out), static_cast<int>(count), into)
                 ? absl::OkStatus()
                 : absl::InternalError("cub::DeviceTransform failed.");
    });
  });
}

template <class T>
absl::StatusOr<Work> make_four_ops(const Case& test) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_map(kDevice, four_ops_kernel<T>(), count));
  return work_on(test, {count, count, 0, test.type, test.type}, [=](LaunchTarget target, const Arrays& arrays) {
    return kernels::launch_map(target, plan, FourOps{1.5f, 0.25f, 0.75f}, static_cast<T*>(arrays.out),
                               static_cast<const T*>(arrays.a));
  });
}

}  // namespace

// count; or rows, columns; shift
absl::StatusOr<Work> make_elementwise(const Case& test) {
  for (const ElementwiseOp op :
       {ElementwiseOp::kScale, ElementwiseOp::kAdd, ElementwiseOp::kMul, ElementwiseOp::kAxpy, ElementwiseOp::kRelu,
        ElementwiseOp::kSilu, ElementwiseOp::kGelu, ElementwiseOp::kGeluTanh, ElementwiseOp::kCast}) {
    if (test.kernel == to_string(op)) return make_arrays(test, op);
  }
  for (const MatrixOp op :
       {MatrixOp::kAddPerColumn, MatrixOp::kAddPerRow, MatrixOp::kMulPerColumn, MatrixOp::kMulPerRow,
        MatrixOp::kSiluAndMul, MatrixOp::kGeluAndMul, MatrixOp::kGeluTanhAndMul}) {
    if (test.kernel == to_string(op)) return make_matrix(test, op);
  }
  if (test.kernel == "raw_cub_mul") return make_raw_cub_mul(test);
  const bool is_half = test.type == DType::kFloat16;
  if (is_half || test.type == DType::kFloat32) {
    if (test.kernel == "mul_naive") return make_naive(test);
    if (test.kernel == "four_ops") return is_half ? make_four_ops<__half>(test) : make_four_ops<float>(test);
  }
  return absl::NotFoundError("");
}

}  // namespace cgrt::bench
