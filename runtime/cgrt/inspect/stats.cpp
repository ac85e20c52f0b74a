#include "cgrt/inspect/stats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/inspect/text_table.h"
#include "cgrt/inspect/timing.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {
namespace {

// A file may hold any sizes: their sums and products saturate.
void add_to(std::uint64_t& sum, std::uint64_t value) { sum = saturating_sum(sum, value); }

std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  return std::accumulate(factors.begin(), factors.end(), std::uint64_t{1}, saturating_product);
}

struct KernelStats {
  std::string_view function;
  std::size_t nodes = 0;
  std::uint64_t threads = 0;
  bool has_sizes = false;  // of one of the nodes at least
};

struct AllocationStats {
  std::size_t allocations = 0, unknown_sizes = 0;
  std::uint64_t bytes = 0;  // of the known sizes
};

struct Stats {
  ir::Shape shape;
  std::map<ir::NodeKind, std::size_t> kinds;
  std::size_t full_edges = 0, programmatic_edges = 0;
  std::vector<std::uint32_t> critical_path;
  std::vector<KernelStats> kernels;  // by number of nodes, descending, then by name
  std::uint64_t copied_bytes = 0, set_bytes = 0, allocated_bytes = 0;
  std::map<ir::MemoryKind, AllocationStats> allocations;
};

std::uint64_t threads_of(const ir::KernelParams& params) {
  const ir::Dim3& grid = params.grid;
  const ir::Dim3& block = params.block;
  return product({grid.x, grid.y, grid.z, block.x, block.y, block.z});
}

void count_nodes(const ir::GraphIr& graph, Stats& stats) {
  std::map<std::string_view, KernelStats> kernels;
  for (const ir::Node& node : graph.nodes) {
    ++stats.kinds[node.kind];
    if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
      const std::string& name = function_of(graph, *kernel).name;
      KernelStats& same_name = kernels[name];
      same_name.function = name;
      ++same_name.nodes;
      add_to(same_name.threads, threads_of(*kernel));
      same_name.has_sizes |= has_sizes(*kernel);
    } else if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
      add_to(stats.copied_bytes, product({copy->width_bytes, copy->height, copy->depth}));
    } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
      add_to(stats.set_bytes, product({set->width, set->element_bytes, set->height}));
    } else if (const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
      add_to(stats.allocated_bytes, alloc->bytes);
    }
  }
  for (const auto& [name, kernel] : kernels) stats.kernels.push_back(kernel);
  std::stable_sort(stats.kernels.begin(), stats.kernels.end(),
                   [](const KernelStats& a, const KernelStats& b) { return a.nodes > b.nodes; });
}

void count_allocations(const ir::GraphIr& graph, Stats& stats) {
  for (const ir::Allocation& allocation : graph.allocations) {
    AllocationStats& same_kind = stats.allocations[allocation.kind];
    ++same_kind.allocations;
    if (allocation.bytes == 0) ++same_kind.unknown_sizes;
    add_to(same_kind.bytes, allocation.bytes);
  }
}

// Of a valid graph. The names in it are those of `graph`.
Stats stats_of(const ir::GraphIr& graph) {
  Stats stats;
  stats.shape = ir::shape_of(graph);
  stats.critical_path = ir::critical_path(graph);
  for (const ir::Edge& edge : graph.edges) {
    ++(edge.type == ir::EdgeType::kFull ? stats.full_edges : stats.programmatic_edges);
  }
  count_nodes(graph, stats);
  count_allocations(graph, stats);
  return stats;
}

void append_summary(const ir::GraphIr& graph, const Stats& stats, std::string& out) {
  const auto bytes = [](std::uint64_t count) { return absl::StrCat(count_of(count, "byte", "bytes"), " a launch"); };
  Table<2> table;
  table.add({"nodes", absl::StrCat(graph.nodes.size())});
  table.add({"edges", absl::StrCat(graph.edges.size(), ": ", stats.full_edges, " ", to_string(ir::EdgeType::kFull),
                                   ", ", stats.programmatic_edges, " ", to_string(ir::EdgeType::kProgrammatic))});
  table.add({"depth", absl::StrCat(stats.shape.depth)});
  table.add({"width", absl::StrCat(stats.shape.width)});
  table.add({"roots", absl::StrCat(stats.shape.roots)});
  table.add({"leaves", absl::StrCat(stats.shape.leaves)});
  table.add({"copied", bytes(stats.copied_bytes)});
  table.add({"set", bytes(stats.set_bytes)});
  if (stats.allocated_bytes != 0) table.add({"allocated", bytes(stats.allocated_bytes)});
  table.append_to(out, Align::kLeft);
}

void append_kinds(const Stats& stats, std::string& out) {
  if (stats.kinds.empty()) return;
  Table<2> table;
  for (const auto& [kind, nodes] : stats.kinds) table.add({absl::StrCat(nodes), to_string(kind)});
  absl::StrAppend(&out, "\nnodes by kind\n");
  table.append_to(out, Align::kRight);
}

// At most kMaxLines lines; of a longer path the beginning and the end.
void append_critical_path(const ir::GraphIr& graph, const Stats& stats, std::string& out) {
  constexpr std::size_t kMaxLines = 12, kBeginning = 6, kEnd = kMaxLines - kBeginning - 1;
  const std::vector<std::uint32_t>& path = stats.critical_path;
  if (path.empty()) return;
  absl::StrAppend(&out, "\ncritical path: ", count_of(path.size(), "node", "nodes"), "\n");
  const auto append = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) absl::StrAppend(&out, ir::node_label(graph, path[i]), "\n");
  };
  if (path.size() <= kMaxLines) return append(0, path.size());
  append(0, kBeginning);
  absl::StrAppend(&out, "... ", path.size() - kBeginning - kEnd, " more\n");
  append(path.size() - kEnd, path.size());
}

void append_kernels(const Stats& stats, std::string& out) {
  if (stats.kernels.empty()) return;
  Table<3> table;
  for (const KernelStats& kernel : stats.kernels) {
    table.add({absl::StrCat(kernel.nodes), ir::printable(kernel.function),
               !kernel.has_sizes ? "size unknown" : count_of(kernel.threads, "thread", "threads")});
  }
  absl::StrAppend(&out, "\nkernels by name\n");
  table.append_to(out, Align::kRight);
}

std::string size_of(const AllocationStats& stats) {
  const std::string bytes = count_of(stats.bytes, "byte", "bytes");
  if (stats.unknown_sizes == 0) return bytes;
  if (stats.unknown_sizes == stats.allocations) return "size unknown";
  return absl::StrCat(bytes, ", and ", stats.unknown_sizes, " of unknown size");
}

void append_allocations(const Stats& stats, std::string& out) {
  if (stats.allocations.empty()) return;
  Table<3> table;
  for (const auto& [kind, sum] : stats.allocations) {
    table.add({absl::StrCat(sum.allocations), to_string(kind), size_of(sum)});
  }
  absl::StrAppend(&out, "\nallocations by kind\n");
  table.append_to(out, Align::kRight);
}

void write_summary(JsonWriter& json, const ir::GraphIr& graph, const Stats& stats) {
  json.member("nodes", graph.nodes.size());
  json.key("edges");
  json.begin_object(JsonLayout::kOneLine);
  json.member(to_string(ir::EdgeType::kFull), stats.full_edges);
  json.member(to_string(ir::EdgeType::kProgrammatic), stats.programmatic_edges);
  json.end_object();
  json.member("depth", stats.shape.depth);
  json.member("width", stats.shape.width);
  json.member("roots", stats.shape.roots);
  json.member("leaves", stats.shape.leaves);
  json.member("copied_bytes", stats.copied_bytes);
  json.member("set_bytes", stats.set_bytes);
}

// An array with one object a line, which `write_members` fills from an item.
template <class Items, class WriteMembers>
void write_list(JsonWriter& json, std::string_view key, const Items& items, const WriteMembers& write_members) {
  json.key(key);
  json.begin_array();
  for (const auto& item : items) {
    json.begin_object(JsonLayout::kOneLine);
    write_members(item);
    json.end_object();
  }
  json.end_array();
}

void write_lists(JsonWriter& json, const Stats& stats) {
  write_list(json, "nodes_by_kind", stats.kinds, [&](const auto& kind) {
    json.member("kind", to_string(kind.first));
    json.member("nodes", kind.second);
  });
  json.key("critical_path");
  json.begin_array(JsonLayout::kOneLine);
  for (const std::uint32_t id : stats.critical_path) json.value(id);
  json.end_array();
  write_list(json, "kernels", stats.kernels, [&](const KernelStats& kernel) {
    json.member("function", kernel.function);
    json.member("nodes", kernel.nodes);
    json.member("threads", kernel.threads);
  });
  write_list(json, "allocations", stats.allocations, [&](const auto& kind) {
    json.member("kind", to_string(kind.first));
    json.member("allocations", kind.second.allocations);
    json.member("bytes", kind.second.bytes);
    json.member("unknown_sizes", kind.second.unknown_sizes);
  });
}

std::string not_valid(const absl::Status& status) { return absl::StrCat("not a valid graph: ", status.message()); }

}  // namespace

std::string to_stats_text(const ir::GraphIr& graph) {
  if (const absl::Status status = ir::validate(graph); !status.ok()) return not_valid(status) + "\n";
  const Stats stats = stats_of(graph);
  std::string out;
  append_summary(graph, stats, out);
  append_kinds(stats, out);
  append_critical_path(graph, stats, out);
  append_kernels(stats, out);
  append_allocations(stats, out);
  if (graph.timing != ir::Timing{}) absl::StrAppend(&out, "\ntimes\n", to_timing_text(graph));
  return out;
}

std::string to_stats_json(const ir::GraphIr& graph) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kGraphStatsSchema);
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    json.member("error", not_valid(status));
  } else {
    const Stats stats = stats_of(graph);
    write_summary(json, graph, stats);
    write_lists(json, stats);
  }
  json.end_object();
  return std::move(json).finish();
}

}  // namespace cgrt::inspect
