#include "cgrt_kernels/rope/rope.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::KvCacheDesc;
using kernels::KvLayout;
using kernels::RopeDesc;
using kernels::RopePlan;

constexpr std::uint64_t kPositions = 8192, kPageSize = 16, kPages = kPositions / kPageSize;

template <class T>
absl::StatusOr<DeviceBuffer> on_device(StreamRef stream, const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, bytes));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), values.data(), bytes));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

struct Set {
  Array q, k, v, qkv, bias;
  DeviceBuffer table, position, sequence, block_table;
};

}  // namespace

// tokens, heads, kv_heads, head_size. rope_paged: of one sequence whose tokens these are, in pages in reverse order.
absl::StatusOr<Work> make_rope(const Case& test) {
  const bool is_paged = test.kernel == "rope_paged";
  if (!is_paged && test.kernel != "rope") return absl::NotFoundError("");
  RopeDesc desc{.type = test.type, .has_bias = true, .positions = kPositions};
  CGRT_ASSIGN_OR_RETURN(desc.tokens, test.size("tokens"));
  CGRT_ASSIGN_OR_RETURN(desc.heads, test.size("heads"));
  CGRT_ASSIGN_OR_RETURN(desc.kv_heads, test.size("kv_heads"));
  CGRT_ASSIGN_OR_RETURN(desc.head_size, test.size("head_size"));
  if (is_paged) {
    desc.cache = KvCacheDesc{.layout = KvLayout::kPaged,
                             .sequences = 1,
                             .pages = kPages,
                             .page_size = kPageSize,
                             .pages_per_sequence = kPages};
  }
  CGRT_ASSIGN_OR_RETURN(const RopePlan plan, plan_rope(kDevice, desc));
  const std::uint64_t per_head = desc.tokens * desc.head_size, row = (desc.heads + 2 * desc.kv_heads) * desc.head_size;
  const std::uint64_t kept = (is_paged ? kPositions : desc.tokens) * desc.kv_heads * desc.head_size;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    std::vector<std::int32_t> position, block_table;
    for (std::uint64_t i = 0; i < desc.tokens; ++i) position.push_back(static_cast<std::int32_t>(i % kPositions));
    for (std::uint64_t i = kPages; i-- > 0;) block_table.push_back(static_cast<std::int32_t>(i));
    CGRT_ASSIGN_OR_RETURN(Array q, make_output(test, desc.type, per_head * desc.heads));
    CGRT_ASSIGN_OR_RETURN(Array k, make_output(test, desc.type, kept));
    CGRT_ASSIGN_OR_RETURN(Array v, make_output(test, desc.type, kept));
    CGRT_ASSIGN_OR_RETURN(Array qkv, make_array(test, stream, desc.type, desc.tokens * row, seed));
    CGRT_ASSIGN_OR_RETURN(Array bias, make_array(test, stream, desc.type, row, seed + 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer table,
                          on_device(stream, kernels::rope_table(kPositions, plan.desc.rotary_size)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer positions, on_device(stream, position));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer sequence, on_device(stream, std::vector<std::int32_t>(desc.tokens)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer pages, on_device(stream, block_table));
    const auto set =
        std::make_shared<Set>(Set{std::move(q), std::move(k), std::move(v), std::move(qkv), std::move(bias),
                                  std::move(table), std::move(positions), std::move(sequence), std::move(pages)});
    return [=](LaunchTarget target) {
      return launch_rope(target, plan,
                         {.q = set->q.data(),
                          .k = set->k.data(),
                          .v = set->v.data(),
                          .qkv = set->qkv.data(),
                          .bias = set->bias.data(),
                          .table = set->table.as<float>(),
                          .position = set->position.as<std::int32_t>(),
                          .sequence = set->sequence.as<std::int32_t>(),
                          .block_table = set->block_table.as<std::int32_t>()});
    };
  };
  return Work{2 * desc.tokens * row * size_of(desc.type), make};
}

}  // namespace cgrt::bench
