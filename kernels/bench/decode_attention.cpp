#include "cgrt_kernels/decode_attention/decode_attention.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::DecodeAttentionDesc;
using kernels::DecodeAttentionPlan;
using kernels::KvCacheDesc;
using kernels::KvLayout;

constexpr std::uint64_t kPageSize = 16;

absl::StatusOr<DeviceBuffer> on_device(StreamRef stream, const std::vector<std::int32_t>& values) {
  const std::size_t bytes = values.size() * sizeof(values[0]);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, bytes));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), values.data(), bytes));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

struct Cache {
  Array k, v;
};
struct Set {
  Array out, q;
  std::shared_ptr<const Cache> cache;
  DeviceBuffer lengths, block_table, workspace;
};

}  // namespace

// sequences, positions, heads, kv_heads, head_size. decode_attention_paged: in pages of which neighbours are far apart;
// decode_attention_planned: with a plan for `planned` positions, of which `positions` are there. Its sets share a
// cache, in which each has other positions: one for each set would be more than a device has memory for.
absl::StatusOr<Work> make_decode_attention(const Case& test) {
  const bool is_paged = test.kernel == "decode_attention_paged", is_planned = test.kernel == "decode_attention_planned";
  if (!is_paged && !is_planned && test.kernel != "decode_attention") return absl::NotFoundError("");
  DecodeAttentionDesc desc{.type = test.type, .cache = {}};
  KvCacheDesc& cache = desc.cache;
  CGRT_ASSIGN_OR_RETURN(cache.sequences, test.size("sequences"));
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t positions, test.size("positions"));
  CGRT_ASSIGN_OR_RETURN(desc.heads, test.size("heads"));
  CGRT_ASSIGN_OR_RETURN(cache.kv_heads, test.size("kv_heads"));
  CGRT_ASSIGN_OR_RETURN(cache.head_size, test.size("head_size"));
  cache.positions = is_planned ? test.size_or("planned", positions) : positions;
  if (is_paged) {
    cache.layout = KvLayout::kPaged, cache.page_size = kPageSize;
    cache.pages_per_sequence = (positions + kPageSize - 1) / kPageSize;
    cache.pages = cache.sequences * cache.pages_per_sequence;
  }
  CGRT_ASSIGN_OR_RETURN(const DecodeAttentionPlan plan, plan_decode_attention(kDevice, desc));
  const KvCacheDesc shape = plan.desc.cache;
  const std::uint64_t kept = (is_paged ? shape.pages : shape.sequences) * shape.block_stride;
  const std::uint64_t queries = shape.sequences * desc.heads * shape.head_size;
  const std::uint64_t read = 2 * shape.sequences * positions * shape.kv_heads * shape.head_size;
  const auto shared = std::make_shared<std::shared_ptr<const Cache>>();
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    // Of all sequences in turn, so that those of one are far apart.
    std::vector<std::int32_t> table(std::max<std::uint64_t>(shape.pages, 1));
    for (std::uint64_t i = 0; i < shape.pages; ++i) {
      const std::uint64_t sequence = i / shape.pages_per_sequence, column = i % shape.pages_per_sequence;
      table[i] = static_cast<std::int32_t>(column * shape.sequences + sequence);
    }
    const std::vector<std::int32_t> lengths(shape.sequences, static_cast<std::int32_t>(positions));
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, queries));
    CGRT_ASSIGN_OR_RETURN(Array q, make_array(test, stream, desc.type, queries, seed));
    std::shared_ptr<const Cache> kv = *shared;
    if (kv == nullptr) {
      CGRT_ASSIGN_OR_RETURN(Array k, make_array(test, stream, desc.type, kept, seed + 1));
      CGRT_ASSIGN_OR_RETURN(Array v, make_array(test, stream, desc.type, kept, seed + 2));
      kv = std::make_shared<const Cache>(Cache{std::move(k), std::move(v)});
      if (is_planned) *shared = kv;
    }
    const std::uint64_t first = is_planned ? seed * positions % (shape.positions - positions + 1) : 0;
    const std::uint64_t offset = first * shape.position_stride * size_of(desc.type);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer length_data, on_device(stream, lengths));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer block_table, on_device(stream, table));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(q), std::move(kv), std::move(length_data),
                                               std::move(block_table), std::move(workspace)});
    return [=](LaunchTarget target) {
      return launch_decode_attention(target, plan,
                                     {.out = set->out.data(),
                                      .q = set->q.data(),
                                      .k = set->cache->k.as<unsigned char>() + offset,
                                      .v = set->cache->v.as<unsigned char>() + offset,
                                      .lengths = set->lengths.as<std::int32_t>(),
                                      .block_table = set->block_table.as<std::int32_t>(),
                                      .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{(read + 2 * queries) * size_of(desc.type), make};
}

}  // namespace cgrt::bench
