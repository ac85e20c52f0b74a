#include "cgrt_kernels/index/index.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::IndexOp;
using kernels::IndexPlan;

// skew 0: uniform; 1: row k as often as 1 / (k + 1); 2: half of them one row.
std::vector<std::int64_t> make_indices(std::uint64_t count, std::uint64_t rows, std::uint64_t skew,
                                       std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  const auto max = static_cast<double>(rows);
  std::vector<std::int64_t> indices(count);
  for (std::int64_t& index : indices) {
    const double at = unit(engine);
    index = static_cast<std::int64_t>(skew == 1 ? std::pow(max, at) - 1 : at * max);
    if (skew == 2 && engine() % 2 == 0) index = 0;
  }
  return indices;
}

struct Set {
  DeviceBuffer out, in, index, workspace;
};

}  // namespace

// rows, columns, count; skew; index_rows: below which indices are (rows); fixed=1: in a fixed order
absl::StatusOr<Work> make_index(const Case& test) {
  kernels::IndexDesc desc{.type = test.type};
  bool is_known = false;
  for (const IndexOp op : {IndexOp::kSelect, IndexOp::kAdd, IndexOp::kScatterAdd}) {
    if (test.kernel == to_string(op)) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(desc.count, test.size("count"));
  if (test.size_or("fixed", 0) != 0) desc.order = kernels::SumOrder::kFixed;
  const std::uint64_t skew = test.size_or("skew", 0), index_rows = test.size_or("index_rows", desc.rows);
  CGRT_ASSIGN_OR_RETURN(const IndexPlan plan, plan_index(kDevice, desc));
  const bool is_select = desc.op == IndexOp::kSelect;
  const std::uint64_t matrix = desc.rows * desc.columns, named = desc.count * desc.columns;
  const std::uint64_t indices = desc.op == IndexOp::kScatterAdd ? named : desc.count;
  // A matrix with more rows than indices is touched in as many places only.
  const std::uint64_t touched = std::min(matrix, named) * (is_select ? 1 : 2) + named;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    const std::uint64_t out_count = is_select ? named : matrix, in_count = is_select ? matrix : named;
    const std::vector<std::int64_t> host = make_indices(indices, index_rows, skew, seed);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, make_numbers(stream, desc.type, out_count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, desc.type, in_count, seed + 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer index, DeviceBuffer::create(kDevice, indices * sizeof(std::int64_t)));
    CGRT_RETURN_IF_ERROR(copy(stream, index.data(), host.data(), index.size_bytes()));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(index), std::move(workspace)});
    return [=](LaunchTarget target) {
      return launch_index(target, plan,
                          {.out = set->out.data(),
                           .in = set->in.data(),
                           .index = set->index.data(),
                           .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{touched * size_of(desc.type) + indices * sizeof(std::int64_t), make};
}

}  // namespace cgrt::bench
