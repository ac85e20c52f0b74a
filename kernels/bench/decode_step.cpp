// A kernel as a node of a decoder's step: step_KERNEL and step_full_KERNEL take KERNEL's sizes. As KERNEL `layer`: all
// of a layer's behind one another.
#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

constexpr char kStep[] = "step_", kFullStep[] = "step_full_";
constexpr std::size_t kNodes = 20;  // of a chain, as kernelbench has launches
constexpr std::size_t kWorkingSet = std::size_t{512} << 20;

// rows, hidden, intermediate, heads, kv_heads, head_size, positions. Each kernel has arrays of its own.
absl::StatusOr<Work> make_layer(const Case& test) {
  std::map<std::string, std::uint64_t> of;
  for (const char* name : {"rows", "hidden", "intermediate", "heads", "kv_heads", "head_size", "positions"}) {
    CGRT_ASSIGN_OR_RETURN(of[name], test.size(name));
  }
  const std::uint64_t rows = of["rows"], hidden = of["hidden"], wide = of["intermediate"];
  const std::uint64_t heads = of["heads"], kv_heads = of["kv_heads"], size = of["head_size"];
  const auto product = [&](std::uint64_t n, std::uint64_t k) {
    return Case{"skinny_gemm", test.type, {{"rows", rows}, {"n", n}, {"k", k}}};
  };
  const Case norm{"add_rms_norm", test.type, {{"rows", rows}, {"columns", hidden}}};
  const Case rope{
      "rope_paged", test.type, {{"tokens", rows}, {"heads", heads}, {"kv_heads", kv_heads}, {"head_size", size}}};
  Case attention{"decode_attention", test.type, rope.sizes};
  attention.sizes.erase("tokens");
  attention.sizes["sequences"] = rows, attention.sizes["positions"] = of["positions"];
  std::vector<Work> nodes;
  std::size_t bytes = 0;
  for (const Case& one :
       {norm, product((heads + 2 * kv_heads) * size, hidden), rope, attention, product(hidden, heads * size), norm,
        product(2 * wide, hidden), Case{"silu_and_mul", test.type, {{"rows", rows}, {"columns", wide}}},
        product(hidden, wide)}) {
    CGRT_ASSIGN_OR_RETURN(Work node, make_work(one));
    bytes += node.bytes;
    nodes.push_back(std::move(node));
  }
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    std::vector<Launch> launches;
    for (const Work& node : nodes) {
      CGRT_ASSIGN_OR_RETURN(Launch launch, node.make(stream, seed));
      launches.push_back(std::move(launch));
    }
    return [=](LaunchTarget target) {
      for (const Launch& launch : launches) CGRT_RETURN_IF_ERROR(launch(target));
      return absl::OkStatus();
    };
  };
  return Work{bytes, make};
}

}  // namespace

// Nodes of one chain, each behind the one before by a programmatic edge (step_full_: by a full one). Weights and caches
// come from memory, and what is small from the L2 cache: nodes work in turn on as many sets as are 512 MiB or more, at
// most one each.
absl::StatusOr<Work> make_decode_step(const Case& test) {
  if (!absl::StartsWith(test.kernel, kStep)) return absl::NotFoundError("");
  const bool is_full = absl::StartsWith(test.kernel, kFullStep);
  Case of_node = test;
  of_node.kernel = test.kernel.substr((is_full ? sizeof(kFullStep) : sizeof(kStep)) - 1);
  CGRT_ASSIGN_OR_RETURN(const Work node, of_node.kernel == "layer" ? make_layer(of_node) : make_work(of_node));
  if (node.bytes == 0) return absl::InvalidArgumentError("there is nothing to measure: the sizes make 0 bytes.");
  const std::size_t count = std::min(kWorkingSet / node.bytes + 1, kNodes);
  const auto make = [=](StreamRef stream, std::uint32_t) -> absl::StatusOr<Launch> {
    const auto sets = std::make_shared<std::vector<Launch>>();
    for (std::uint32_t i = 0; i < count; ++i) {
      CGRT_ASSIGN_OR_RETURN(Launch launch, node.make(stream, i));
      sets->push_back(std::move(launch));
    }
    return [=, next = std::make_shared<std::size_t>(0)](LaunchTarget target) {
      return (*sets)[(*next)++ % sets->size()](is_full ? target : target.programmatic());
    };
  };
  // So many bytes that kernelbench makes one set of these.
  return Work{std::max(kNodes * node.bytes, kWorkingSet + 1), make, node.reset};
}

}  // namespace cgrt::bench
