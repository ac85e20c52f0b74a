// Arrays of more than 2^32 elements, of which indices of 32 bits are too small: rows repeat, so results must, too. On
// the simulator the same with a few rows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/bias_activation/bias_activation.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/dropout/dropout.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/reduce/reduce.h"
#include "cgrt_kernels/rope/rope.h"
#include "cgrt_kernels/scan/scan.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "cgrt_kernels/transpose_heads/transpose_heads.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::Workspace;

constexpr DType kType = DType::kBFloat16;
constexpr std::size_t kSize = 2;
constexpr std::uint64_t kUnit = 64;  // rows before they repeat, which then lie alike between multiples of 16 bytes
constexpr std::uint64_t kElements = (std::uint64_t{1} << 32) + (std::uint64_t{1} << 26);

struct Arrays {
  void* out;
  const void *a, *b;
};

// An operation on rows. `a`, `b` and `out` have so many elements for each of them, or none.
struct Operation {
  std::string name;
  std::uint64_t columns;
  std::uint64_t of_a, of_b, of_out;
  std::function<absl::Status(StreamRef stream, std::uint64_t rows, const Arrays& arrays)> run;
};

// `rows` rows of `elements` each: those of `unit` again and again.
absl::StatusOr<DeviceBuffer> repeated(StreamRef stream, const Bytes& unit, std::uint64_t rows, std::uint64_t elements) {
  const std::size_t bytes = rows * elements * kSize;
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, std::max<std::size_t>(bytes, 1)));
  auto* const data = buffer.as<unsigned char>();
  if (bytes == 0) return buffer;
  CGRT_RETURN_IF_ERROR(copy(stream, data, unit.data(), std::min(unit.size(), bytes)));
  for (std::size_t done = unit.size(); done < bytes; done *= 2) {
    CGRT_RETURN_IF_ERROR(copy(stream, data + done, data, std::min(done, bytes - done)));
  }
  return buffer;
}

// What the operation makes of so many rows: units of its result, those of `picked`.
absl::StatusOr<std::vector<Bytes>> results(const Operation& operation, std::uint64_t rows,
                                           const std::vector<std::uint64_t>& picked) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  const Bytes a = random_elements(kType, kUnit * operation.of_a, 0, 1, 1),
              b = random_elements(kType, kUnit * operation.of_b, 0, 1, 2);
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer in, repeated(stream.ref(), a, rows, operation.of_a));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer other, repeated(stream.ref(), b, rows, operation.of_b));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer out, DeviceBuffer::create(kDevice, rows * operation.of_out * kSize));
  CGRT_RETURN_IF_ERROR(fill8(stream.ref(), out.data(), 0xfb, out.size_bytes()));
  CGRT_RETURN_IF_ERROR(operation.run(stream.ref(), rows, {out.data(), in.data(), other.data()}));
  std::vector<Bytes> found;
  for (const std::uint64_t unit : picked) {
    const std::size_t begin = unit * kUnit * operation.of_out * kSize;
    found.emplace_back(std::min(kUnit * operation.of_out * kSize, out.size_bytes() - begin));
    CGRT_RETURN_IF_ERROR(
        copy(stream.ref(), found.back().data(), out.as<const unsigned char>() + begin, found.back().size()));
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return found;
}

absl::Status check(const Operation& operation, bool is_simulated) {
  const std::uint64_t widest = std::max({operation.of_a, operation.of_b, operation.of_out});
  const std::uint64_t rows = is_simulated ? kUnit + 3 : kElements / operation.columns + 3;
  if (!Trial::has_room_for(rows * widest * kSize)) return absl::CancelledError("larger than this run's arrays");
  const std::uint64_t units = (rows - 1) / kUnit + 1;
  std::vector<std::uint64_t> picked;
  for (std::uint64_t i = 0; i < 256; ++i) picked.push_back(i * (units - 1) / 255);
  for (const std::uint64_t element : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {  // and at 4 and 8 GiB
    const std::uint64_t unit = element / (operation.of_out * kUnit);
    for (const std::uint64_t one : {unit / 2, unit - 1, unit, unit + 1}) picked.push_back(std::min(one, units - 1));
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<Bytes> found, results(operation, rows, picked));
  CGRT_ASSIGN_OR_RETURN(const std::vector<Bytes> expected, results(operation, kUnit, {0}));
  const std::vector<double> want = to_doubles(kType, expected[0]), got = to_doubles(kType, found[0]);
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < want.size(); ++i) {  // fewer rows may be added up in another order
    if (std::abs(want[i] - got[i]) <= 0.01 * std::abs(want[i]) + 0.001 * largest) continue;
    return absl::InternalError(absl::StrCat("element ", i, ": expected ", want[i], ", found ", got[i]));
  }
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (!std::equal(found[i].begin(), found[i].end(), found[0].begin())) {
      return absl::InternalError(absl::StrCat("rows from ", picked[i] * kUnit, " on differ from the first ", kUnit));
    }
  }
  return absl::OkStatus();
}

// Launches with the workspace that the plan asks for.
template <class Plan, class Args>
absl::Status launch_with_workspace(StreamRef stream, const Plan& plan, Args args,
                                   absl::Status (*launch)(LaunchTarget, const Plan&, const Args&)) {
  std::optional<DeviceBuffer> memory;
  if (plan.workspace_bytes != 0) {
    CGRT_ASSIGN_OR_RETURN(memory, DeviceBuffer::create(kDevice, plan.workspace_bytes));
    args.workspace = {memory->data(), memory->size_bytes()};
    CGRT_RETURN_IF_ERROR(initialize_workspace(stream, args.workspace));
  }
  CGRT_RETURN_IF_ERROR(launch(stream, plan, args));
  return stream.synchronize();
}

Operation softmax(std::uint64_t columns) {
  return {absl::StrCat("softmax of ", columns),
          columns,
          columns,
          0,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(const auto plan,
                                  kernels::plan_softmax(kDevice, {.type = kType, .rows = rows, .columns = columns}));
            return launch_with_workspace(stream, plan, kernels::SoftmaxArgs{.out = arrays.out, .in = arrays.a},
                                         kernels::launch_softmax);
          }};
}
Operation softmax_backward(std::uint64_t columns) {
  return {absl::StrCat("softmax backward of ", columns),
          columns,
          columns,
          columns,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_softmax_backward(
                                                       kDevice, {.type = kType, .rows = rows, .columns = columns}));
            return launch_with_workspace(stream, plan,
                                         kernels::SoftmaxBackwardArgs{.dx = arrays.out, .dy = arrays.a, .y = arrays.b},
                                         kernels::launch_softmax_backward);
          }};
}
Operation norm(kernels::NormOp op, kernels::Residual residual, std::uint64_t columns) {
  const bool has_residual = residual == kernels::Residual::kAdded;
  return {absl::StrCat(has_residual ? "add_" : "", to_string(op), " of ", columns),
          columns,
          columns,
          has_residual ? columns : 0,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(
                const auto plan,
                kernels::plan_norm(kDevice,
                                   {.op = op, .type = kType, .rows = rows, .columns = columns, .residual = residual}));
            return launch_with_workspace(
                stream, plan,
                kernels::NormArgs{.out = arrays.out, .in = arrays.a, .residual = has_residual ? arrays.b : nullptr},
                kernels::launch_norm);
          }};
}
Operation norm_backward(kernels::NormOp op, std::uint64_t columns) {
  return {absl::StrCat(to_string(op), " backward of ", columns),
          columns,
          columns,
          columns,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(
                const auto plan,
                kernels::plan_norm_backward(kDevice, {.op = op, .type = kType, .rows = rows, .columns = columns}));
            return launch_with_workspace(stream, plan,
                                         kernels::NormBackwardArgs{.dx = arrays.out, .dy = arrays.a, .x = arrays.b},
                                         kernels::launch_norm_backward);
          }};
}
Operation add(std::uint64_t columns) {
  return {"add",
          columns,
          columns,
          columns,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(
                const auto plan,
                kernels::plan_elementwise(
                    kDevice, {.op = kernels::ElementwiseOp::kAdd, .count = rows * columns, .type = kType}));
            CGRT_RETURN_IF_ERROR(kernels::launch_elementwise(stream, plan, {arrays.out, arrays.a, arrays.b}));
            return stream.synchronize();
          }};
}
Operation matrix(kernels::MatrixOp op, std::uint64_t columns) {
  return {absl::StrCat(to_string(op), " of ", columns),
          columns,
          is_gated(op) ? 2 * columns : columns,
          columns,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(
                const auto plan,
                kernels::plan_matrix(kDevice, {.op = op, .type = kType, .rows = rows, .columns = columns}));
            CGRT_RETURN_IF_ERROR(kernels::launch_matrix(stream, plan, {arrays.out, arrays.a, arrays.b}));
            return stream.synchronize();
          }};
}
Operation max_of_rows(std::uint64_t columns) {
  return {absl::StrCat("max of rows of ", columns),
          columns,
          columns,
          0,
          1,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_reduce(kDevice, {.op = kernels::ReduceOp::kMax,
                                                                                  .type = kType,
                                                                                  .over = kernels::ReduceOver::kRow,
                                                                                  .rows = rows,
                                                                                  .columns = columns}));
            return launch_with_workspace(stream, plan, kernels::ReduceArgs{.out = arrays.out, .in = arrays.a},
                                         kernels::launch_reduce);
          }};
}
Operation scan_of_rows(std::uint64_t columns) {
  return {absl::StrCat("scan of rows of ", columns),
          columns,
          columns,
          0,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(const auto plan,
                                  kernels::plan_scan(kDevice, {.type = kType, .rows = rows, .columns = columns}));
            return launch_with_workspace(stream, plan, kernels::ScanArgs{.out = arrays.out, .in = arrays.a},
                                         kernels::launch_scan);
          }};
}
Operation dropout_backward(std::uint64_t columns) {
  return {"dropout_backward",
          columns,
          columns,
          columns / 8 / kSize,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            const kernels::DropoutDesc desc{kernels::DropoutOp::kBackward, kType, rows * columns};
            CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_dropout(kDevice, desc));
            auto* const mask = static_cast<std::uint8_t*>(const_cast<void*>(arrays.b));  // is read only
            CGRT_RETURN_IF_ERROR(kernels::launch_dropout(stream, plan, {arrays.out, arrays.a, mask}));
            return stream.synchronize();
          }};
}
Operation bias_norm(std::uint64_t columns) {
  return {absl::StrCat("bias_add_layer_norm of ", columns),
          columns,
          columns,
          columns,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            CGRT_ASSIGN_OR_RETURN(const auto plan,
                                  kernels::plan_bias_norm(kDevice, {.type = kType, .rows = rows, .columns = columns}));
            CGRT_RETURN_IF_ERROR(kernels::launch_bias_norm(
                stream, plan, {.out = arrays.out, .in = arrays.a, .in_bias = arrays.b, .residual = arrays.b}));
            return stream.synchronize();
          }};
}
Operation bias_gate(std::uint64_t columns) {
  return {absl::StrCat("a bias with a gate of ", columns),
          columns,
          2 * columns,
          0,
          columns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            const kernels::BiasActivationDesc desc{
                .gate = kernels::BiasGate::kGated, .type = kType, .rows = rows, .columns = columns};
            CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_bias_activation(kDevice, desc));
            CGRT_RETURN_IF_ERROR(
                kernels::launch_bias_activation(stream, plan, {.out = arrays.out, .a = arrays.a, .bias = arrays.a}));
            return stream.synchronize();
          }};
}
// A row is a sequence.
Operation transpose_heads(kernels::TransposeHeadsOp op) {
  constexpr std::uint64_t kPositions = 9, kHeads = 6, kHeadSize = 80, kColumns = kPositions * kHeads * kHeadSize;
  return {to_string(op),
          kColumns,
          kColumns,
          0,
          kColumns,
          [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
            const kernels::TransposeHeadsDesc desc{.op = op,
                                                   .type = kType,
                                                   .sequences = rows,
                                                   .positions = kPositions,
                                                   .heads = kHeads,
                                                   .head_size = kHeadSize};
            CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_transpose_heads(kDevice, desc));
            CGRT_RETURN_IF_ERROR(kernels::launch_transpose_heads(stream, plan, {.out = arrays.out, .in = arrays.a}));
            return stream.synchronize();
          }};
}
// Tokens whose positions repeat as the rows do.
Operation rope(std::uint64_t heads, std::uint64_t head_size) {
  const std::uint64_t columns = heads * head_size;
  return {
      "rope",
      columns,
      columns + 2 * head_size,
      0,
      columns,
      [=](StreamRef stream, std::uint64_t rows, const Arrays& arrays) -> absl::Status {
        const kernels::RopeDesc desc{
            .type = kType, .tokens = rows, .heads = heads, .kv_heads = 1, .head_size = head_size, .positions = kUnit};
        CGRT_ASSIGN_OR_RETURN(const auto plan, kernels::plan_rope(kDevice, desc));
        std::vector<std::int32_t> positions(rows);
        for (std::uint64_t i = 0; i < rows; ++i) positions[i] = static_cast<std::int32_t>(i % kUnit);
        const std::vector<float> turns = kernels::rope_table(kUnit, head_size);
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer kept, DeviceBuffer::create(kDevice, 2 * rows * head_size * kSize));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer position, DeviceBuffer::create(kDevice, rows * sizeof(positions[0])));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer table, DeviceBuffer::create(kDevice, turns.size() * sizeof(turns[0])));
        CGRT_RETURN_IF_ERROR(copy(stream, position.data(), positions.data(), position.size_bytes()));
        CGRT_RETURN_IF_ERROR(copy(stream, table.data(), turns.data(), table.size_bytes()));
        CGRT_RETURN_IF_ERROR(launch_rope(stream, plan,
                                         {.q = arrays.out,
                                          .k = kept.data(),
                                          .v = kept.as<unsigned char>() + rows * head_size * kSize,
                                          .qkv = arrays.a,
                                          .table = table.as<float>(),
                                          .position = position.as<std::int32_t>()}));
        return stream.synchronize();
      }};
}

}  // namespace

void check_large_arrays(Report& report) {
  using kernels::MatrixOp;
  using kernels::NormOp;
  using kernels::Residual;
  std::vector<Operation> operations{add(4096),
                                    matrix(MatrixOp::kSiluAndMul, 4096),
                                    dropout_backward(4096),
                                    rope(32, 128),
                                    transpose_heads(kernels::TransposeHeadsOp::kMerge),
                                    transpose_heads(kernels::TransposeHeadsOp::kSplit)};
  for (const std::uint64_t columns : {4096, 4097}) {
    operations.push_back(bias_norm(columns));
    operations.push_back(bias_gate(columns));
  }
  // In registers, in streams and slices, of lanes, and the same where rows are not aligned.
  for (const std::uint64_t columns : {64, 127, 4096, 4097, 65536, 200001}) {
    operations.push_back(softmax(columns));
    operations.push_back(norm(NormOp::kLayerNorm, Residual::kNone, columns));
    operations.push_back(norm(NormOp::kRmsNorm, Residual::kAdded, columns));
  }
  for (const std::uint64_t columns : {127, 4096, 4097, 200001}) {
    operations.push_back(softmax_backward(columns));
    operations.push_back(norm_backward(NormOp::kLayerNorm, columns));
    operations.push_back(max_of_rows(columns));
    operations.push_back(scan_of_rows(columns));
    operations.push_back(matrix(MatrixOp::kAddPerColumn, columns));
  }
  for (const Operation& operation : operations) {
    if (report.is_simulated() && operation.columns > 5000) continue;  // one host body serves all
    report.check(absl::StrCat("large arrays, ", operation.name), check(operation, report.is_simulated()));
  }
}

}  // namespace cgrt::testing
