#include "kernels/bench/bench.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/reduce/reduce.h"

namespace cgrt::bench {

using kernels::ReduceArgs;
using kernels::ReduceDesc;
using kernels::ReduceOp;
using kernels::ReduceOver;
using kernels::ReducePlan;

namespace {

// reduce_all_sum, reduce_rows_argmax, ..., and dot
absl::StatusOr<ReduceDesc> parse(const std::string& kernel) {
  if (kernel == "dot") return ReduceDesc{.op = ReduceOp::kDot};
  constexpr std::pair<const char*, ReduceOver> kOvers[] = {
      {"all", ReduceOver::kAll}, {"rows", ReduceOver::kRow}, {"columns", ReduceOver::kColumn}};
  constexpr std::pair<const char*, ReduceOp> kOps[] = {
      {"sum", ReduceOp::kSum}, {"mean", ReduceOp::kMean}, {"sum_of_squares", ReduceOp::kSumOfSquares},
      {"min", ReduceOp::kMin}, {"max", ReduceOp::kMax},   {"argmax", ReduceOp::kArgmax}};
  for (const auto& [over_name, over] : kOvers) {
    for (const auto& [op_name, op] : kOps) {
      if (kernel == absl::StrCat("reduce_", over_name, "_", op_name)) return ReduceDesc{.op = op, .over = over};
    }
  }
  return absl::NotFoundError("");
}

}  // namespace

// count when all are reduced to one, otherwise rows, columns; shift
absl::StatusOr<Work> make_reduce(const Case& test) {
  CGRT_ASSIGN_OR_RETURN(ReduceDesc desc, parse(test.kernel));
  desc.type = test.type;
  if (desc.over == ReduceOver::kAll) {
    CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("count"));
  } else {
    CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
    CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  }
  CGRT_ASSIGN_OR_RETURN(const ReducePlan plan, plan_reduce(kDevice, desc));
  const std::uint64_t count = desc.rows * desc.columns;
  const bool is_dot = desc.op == ReduceOp::kDot;
  struct Set {
    DeviceBuffer out;
    Array in;
    DeviceBuffer workspace;
    std::optional<Array> other;
  };
  return Work{(is_dot ? 2 : 1) * count * size_of(desc.type),
              [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                const std::uint64_t results = std::max(desc.rows, desc.columns);  // or fewer
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, results * 8));
                CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
                const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(workspace), {}});
                ReduceArgs args{
                    .out = set->out.data(), .in = set->in.data(), .workspace = workspace_in(set->workspace)};
                if (is_dot) {
                  CGRT_ASSIGN_OR_RETURN(set->other, make_array(test, stream, desc.type, count, seed + 1));
                  args.other = set->other->data();
                }
                return [set, plan, args](LaunchTarget target) { return launch_reduce(target, plan, args); };
              }};
}

}  // namespace cgrt::bench
