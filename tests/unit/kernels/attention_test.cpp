#include "cgrt_kernels/attention/attention.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/attention/kernels.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

// What a block takes, in its order: head * query_tiles + tile.
std::vector<std::uint32_t> tiles_of(const AttentionOrder& order, std::uint32_t block, std::uint32_t blocks) {
  std::vector<std::uint32_t> tiles;
  for (std::uint32_t turn = block;; turn += blocks) {
    const std::uint32_t at = order.step_at(turn, blocks);
    if (at >= order.steps()) return tiles;
    const AttentionOrder::Step step = order.at(at);
    tiles.push_back(step.head * order.query_tiles + step.last);
    if (order.tiles_at_once == 2 && step.first != step.last) {
      tiles.push_back(step.head * order.query_tiles + step.first);
    }
  }
}

TEST_CASE("blocks take each tile of attention once", "[kernels]") {
  for (const std::uint32_t tiles_at_once : {1, 2}) {
    for (const std::uint32_t query_tiles : {1, 2, 7, 34}) {
      for (const std::uint32_t heads : {1, 8, 17, 28}) {
        for (const std::uint32_t section_heads : {1, 4, 7, 28}) {
          const AttentionOrder order{heads, section_heads, query_tiles, tiles_at_once};
          for (const std::uint32_t blocks : {1, 5, 132}) {
            std::vector<int> taken(heads * query_tiles);
            for (std::uint32_t block = 0; block < blocks; ++block) {
              for (const std::uint32_t tile : tiles_of(order, block, blocks)) ++taken[tile];
            }
            INFO(tiles_at_once << " " << query_tiles << " " << heads << " " << section_heads << " " << blocks);
            REQUIRE(taken == std::vector<int>(heads * query_tiles, 1));
          }
        }
      }
    }
  }
}

TEST_CASE("strides of a cache that are not given follow from those that are", "[kernels]") {
  const Simulator simulator;
  const auto strides_of = [](KvCacheDesc cache) {
    cache.sequences = 4, cache.positions = 4096, cache.kv_heads = 8, cache.head_size = 128;
    const auto plan = plan_decode_attention(kDevice, {.heads = 8, .cache = cache});
    REQUIRE_OK(plan);
    const KvCacheDesc& all = plan->desc.cache;
    return std::vector{all.head_stride, all.position_stride, all.block_stride};
  };
  using Strides = std::vector<std::uint64_t>;
  CHECK(strides_of({}) == Strides{128, 1024, 4096 * 1024});
  CHECK(strides_of({.position_stride = 2048}) == Strides{128, 2048, 4096 * 2048});  // keys beside values
  CHECK(strides_of({.head_stride = 136}) == Strides{136, 8 * 136, 4096 * 8 * 136});
  const std::uint64_t of_head = 4096 * 128;
  CHECK(strides_of({.position_stride = 128, .head_stride = of_head}) == Strides{of_head, 128, 8 * of_head});
}

}  // namespace
}  // namespace cgrt::testing
