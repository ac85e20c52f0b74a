#include "cgrt_kernels/transpose_heads/transpose_heads.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::TransposeHeadsOp;

struct Set {
  Array out, in;
  DeviceBuffer offsets;
};

}  // namespace

// sequences, positions, heads, head_size; NAME_packed: with packed rows, of `length` positions of each sequence.
absl::StatusOr<Work> make_transpose_heads(const Case& test) {
  kernels::TransposeHeadsDesc desc{.type = test.type};
  bool is_known = false, is_packed = false;
  for (const TransposeHeadsOp op : {TransposeHeadsOp::kMerge, TransposeHeadsOp::kSplit}) {
    const bool names_packed = test.kernel == absl::StrCat(to_string(op), "_packed");
    if (test.kernel == to_string(op) || names_packed) desc.op = op, is_known = true, is_packed = names_packed;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.sequences, test.size("sequences"));
  CGRT_ASSIGN_OR_RETURN(desc.positions, test.size("positions"));
  CGRT_ASSIGN_OR_RETURN(desc.heads, test.size("heads"));
  CGRT_ASSIGN_OR_RETURN(desc.head_size, test.size("head_size"));
  const std::uint64_t length = is_packed ? test.size_or("length", desc.positions) : desc.positions;
  if (is_packed) desc.rows = kernels::TokenRows::kPacked, desc.tokens = desc.sequences * length;
  CGRT_ASSIGN_OR_RETURN(const kernels::TransposeHeadsPlan plan, plan_transpose_heads(kDevice, desc));
  const std::uint64_t row = desc.heads * desc.head_size, count = desc.sequences * desc.positions * row;
  const std::uint64_t moved = desc.sequences * length * row;
  const bool is_split = desc.op == TransposeHeadsOp::kSplit;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    std::vector<std::int32_t> offset;
    for (std::uint64_t i = 0; i <= desc.sequences; ++i) offset.push_back(static_cast<std::int32_t>(i * length));
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, is_split ? count : moved));
    CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, is_split ? moved : count, seed));
    const std::size_t bytes = offset.size() * sizeof(offset[0]);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer offsets, DeviceBuffer::create(kDevice, bytes));
    CGRT_RETURN_IF_ERROR(copy(stream, offsets.data(), offset.data(), bytes));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(offsets)});
    return [=](LaunchTarget target) {
      return launch_transpose_heads(
          target, plan, {.out = set->out.data(), .in = set->in.data(), .offsets = set->offsets.as<std::int32_t>()});
    };
  };
  return Work{(moved + (is_split ? count : moved)) * size_of(desc.type), make};
}

}  // namespace cgrt::bench
