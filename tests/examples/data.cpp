// Examples of graphs as data: base/, ir/, inspect/, record/, saved/.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "cgrt/base/json_writer.h"
#include "cgrt/base/log.h"
#include "cgrt/base/text_file.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/record/origin.h"
#include "cgrt/record/record.h"
#include "cgrt/record/statistics.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/hash.h"
#include "cgrt/saved/movable.h"
#include "cgrt/saved/text.h"
#include "cgrt/version.h"
#include "examples/examples.h"

namespace cgrt::examples {
namespace {

// A memset and the kernel that waits for it.
ir::GraphIr two_nodes() {
  ir::GraphIr graph;
  graph.allocations = {{.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = 4096}};
  graph.functions = {{.name = "scale", .parameters = {{0, 8}, {8, 4}, {12, 4}}}};
  ir::KernelParams scale{.grid = {4}, .block = {256}, .arguments = std::vector<std::uint8_t>(16), .pointers = {{}}};
  const float factor = 2;
  const std::uint32_t count = 1024;
  std::memcpy(&scale.arguments[8], &factor, sizeof(factor));
  std::memcpy(&scale.arguments[12], &count, sizeof(count));
  graph.nodes = {
      {.kind = ir::NodeKind::kMemset, .device = 0, .params = ir::MemsetParams{.element_bytes = 4, .width = 1024}},
      {.kind = ir::NodeKind::kKernel, .device = 0, .params = std::move(scale)}};
  graph.edges = {{.from = 0, .to = 1}};
  return graph;
}

// The same, and the copy of what the kernel wrote.
ir::GraphIr three_nodes() {
  ir::GraphIr graph = two_nodes();
  graph.allocations.push_back({.kind = ir::MemoryKind::kPinnedHost, .bytes = 4096});
  graph.nodes.push_back(
      {.kind = ir::NodeKind::kMemcpy,
       .device = 0,
       .params = ir::MemcpyParams{
           .destination = ir::Pointer{.allocation = 1}, .source = ir::Pointer{}, .width_bytes = 4096}});
  graph.edges.push_back({.from = 1, .to = 2});
  return graph;
}

CGRT_EXAMPLE(base_log) {
  std::ostringstream lines;
  const auto my_sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines);
#include "heads/cgrt/base/log.h.1.inc"
  log_warning("a line");
  spdlog::drop("cgrt");
  return contains(lines.str(), "a line");
}

CGRT_EXAMPLE(base_unique_handle) {
  CGRT_ASSIGN_OR_RETURN(Event owner, Event::create(DeviceRef(0)));
  const CUevent raw_event = std::move(owner).release();
#include "heads/cgrt/base/unique_handle.h.1.inc"
  return equal(event.get() == raw_event, true);
}

CGRT_EXAMPLE(ir_graph_ir) {
#include "heads/cgrt/ir/graph_ir.h.1.inc"
  return ir::validate(graph);
}

CGRT_EXAMPLE(ir_validate) {
  const ir::GraphIr graph = two_nodes();
#include "heads/cgrt/ir/validate.h.1.inc"
  return absl::OkStatus();
}

CGRT_EXAMPLE(ir_analysis) {
  const ir::GraphIr graph = three_nodes();
#include "heads/cgrt/ir/analysis.h.1.inc"
  CGRT_RETURN_IF_ERROR(equal(shape.depth, std::size_t{3}));
  return equal(path.size(), shape.depth);
}

CGRT_EXAMPLE(ir_describe) {
  ir::GraphIr graph = three_nodes();
  graph.nodes.push_back(graph.nodes[1]);
#include "heads/cgrt/ir/describe.h.1.inc"
  CGRT_RETURN_IF_ERROR(equal<std::string>(node, "node 3 \"scale\""));
  CGRT_RETURN_IF_ERROR(equal<std::string>(ir::node_label(graph, 2), "node 2 (memcpy)"));
  return equal<std::string>(place, "device#0+0x100");
}

CGRT_EXAMPLE(ir_diff) {
  const ir::GraphIr before = two_nodes(), after = three_nodes();
#include "heads/cgrt/ir/diff.h.1.inc"
  return equal(ir::first_difference(before, before).has_value(), false);
}

CGRT_EXAMPLE(inspect_emit) {
  const ir::GraphIr graph = two_nodes();
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return absl::InternalError("no temporary file");
#include "heads/cgrt/inspect/emit.h.1.inc"
  const bool has_kernel = inspect::to_program(graph).find("__global__ void stub_0(") != std::string::npos;
  const bool is_written = std::ftell(file) > 0;
  std::fclose(file);
  return equal(has_kernel && is_written, true);
}

CGRT_EXAMPLE(ir_varying) {
  const ir::GraphIr before = two_nodes();
  ir::GraphIr after = before;
  std::get<ir::KernelParams>(after.nodes[1].params).arguments[11] = 0x41;  // 8.0f
#include "heads/cgrt/ir/varying.h.1.inc"
  return equal<std::string>(ir::find_varying(captures).varying[0].values[1], "8.0f");
}

CGRT_EXAMPLE(ir_verdict) {
  const ir::GraphIr before = two_nodes(), after = three_nodes();
#include "heads/cgrt/ir/verdict.h.1.inc"
  CGRT_RETURN_IF_ERROR(equal<std::string>(verdicts.update_rule, "the nodes of an executable stay"));
  return equal<std::string>(ir::to_string(verdicts.rung), "instantiate anew");
}

CGRT_EXAMPLE(ir_function_table) {
  ir::GraphIr graph;
  ir::KernelParams kernel;
#include "heads/cgrt/ir/function_table.h.1.inc"
  CGRT_RETURN_IF_ERROR(equal<std::string>(ir::function_of(graph, kernel).name, "scale"));
  return equal(functions.add({"add", {{0, 8}}}), 1u);
}

CGRT_EXAMPLE(ir_matching) {
  const ir::GraphIr before = three_nodes(), after = three_nodes();
#include "heads/cgrt/ir/matching.h.1.inc"
  return equal(matches[2], 2u);
}

CGRT_EXAMPLE(ir_relation) {
  const ir::GraphIr graph = three_nodes();
#include "heads/cgrt/ir/relation.h.1.inc"
  return equal(relation.path.size(), std::size_t{2});
}

CGRT_EXAMPLE(inspect_lint) {
  ir::GraphIr graph = three_nodes();
  graph.edges.clear();
#include "heads/cgrt/inspect/lint.h.1.inc"
  const inspect::Finding first = inspect::lint(graph)[0];
  return contains(first.rule->id.data() + (": " + first.text) + "\n",
#include "heads/cgrt/inspect/lint.h.2.txt"
  );
}

CGRT_EXAMPLE(inspect_lint_run) {
  const std::map<std::string, ir::GraphIr> graphs = {{"a", two_nodes()}, {"b", two_nodes()}};
  const inspect::RecordedExec first{.file = "a", .launches = 1, .uploads = 1, .streams = {"0x10"}, .memory = {7}};
  const inspect::RecordedExec second{
      .number = 1, .file = "b", .launches = 1, .uploads = 1, .streams = {"0x20"}, .memory = {7}};
  const inspect::RecordedProcess process{.program = "program", .process = 1, .execs = {first, second}};
#include "heads/cgrt/inspect/lint_run.h.1.inc"
  return equal(of_pairs.size(), std::size_t{1});
}

CGRT_EXAMPLE(inspect_recorded_run) {
  const char* const text =
      R"({"schema": "cgrt-run-1", "processes": [{"program": "a", "process": 1, "graphs": [
        {"file": null, "nodes": 1, "launches": 2, "uploads": 0, "updates": 0, "set_params": 0}]}]})";
  std::uint64_t launches = 0;
#include "heads/cgrt/inspect/recorded_run.h.1.inc"
  return equal(launches, std::uint64_t{2});
}

CGRT_EXAMPLE(inspect_budget) {
  const ir::GraphIr graph = three_nodes();
#include "heads/cgrt/inspect/budget.h.1.inc"
  return equal(broken.empty(), true);
}

CGRT_EXAMPLE(inspect_text) {
  const ir::GraphIr graph = two_nodes();
#include "heads/cgrt/inspect/text.h.1.inc"
  for (const char* part : {
#include "heads/cgrt/inspect/text.h.2.txt"
           ,
#include "heads/cgrt/inspect/text.h.3.txt"
           ,
#include "heads/cgrt/inspect/text.h.4.txt"
       }) {
    CGRT_RETURN_IF_ERROR(contains(inspect::to_text(graph), part));
  }
  return absl::OkStatus();
}

CGRT_EXAMPLE(inspect_timing) {
  ir::GraphIr graph = three_nodes();
  graph.timing = {.launches = 10,
                  .median_ns = 12000,
                  .busy_ns = 11400,
                  .nodes = {{10, 1400, 1300, 1500}, {10, 7900, 7800, 8000}, {10, 2100, 2000, 2200}}};
#include "heads/cgrt/inspect/timing.h.1.inc"
  for (const char* part : {
#include "heads/cgrt/inspect/timing.h.2.txt"
           ,
#include "heads/cgrt/inspect/timing.h.3.txt"
           ,
#include "heads/cgrt/inspect/timing.h.4.txt"
       }) {
    CGRT_RETURN_IF_ERROR(contains(inspect::to_timing_text(graph), part));
  }
  return absl::OkStatus();
}

CGRT_EXAMPLE(inspect_stats) {
  const ir::GraphIr graph = three_nodes();
#include "heads/cgrt/inspect/stats.h.1.inc"
  for (const char* part : {
#include "heads/cgrt/inspect/stats.h.2.txt"
           ,
#include "heads/cgrt/inspect/stats.h.3.txt"
           ,
#include "heads/cgrt/inspect/stats.h.4.txt"
           ,
#include "heads/cgrt/inspect/stats.h.5.txt"
           ,
#include "heads/cgrt/inspect/stats.h.6.txt"
       }) {
    CGRT_RETURN_IF_ERROR(contains(inspect::to_stats_text(graph), part));
  }
  return absl::OkStatus();
}

CGRT_EXAMPLE(inspect_dot) {
  ir::GraphIr graph = two_nodes();
  graph.nodes[1].scope = "layer0";
  return contains(inspect::to_dot(graph),
#include "heads/cgrt/inspect/dot.h.2.txt"
  );
}

CGRT_EXAMPLE(inspect_driver_dot) {
  const std::string text = R"(digraph dot { subgraph cluster_1 { "graph_1_node_0"[label="0\nHOST\n"]; } })";
#include "heads/cgrt/inspect/driver_dot.h.1.inc"
  return equal(graph.nodes.at(0).kind == ir::NodeKind::kHost, true);
}

CGRT_EXAMPLE(inspect_html) {
  const ir::GraphIr graph = two_nodes();
#include "heads/cgrt/inspect/html.h.1.inc"
  std::FILE* const file = std::fopen("step.html", "r");
  CHECK(file != nullptr);
  const absl::StatusOr<std::string> text = read_text(file, "step.html");
  std::fclose(file);
  return equal<std::string>(text.value_or(""), inspect::to_html(graph));
}

CGRT_EXAMPLE(base_text_file) {
  const ir::GraphIr graph = two_nodes();
#include "heads/cgrt/base/text_file.h.1.inc"
  std::FILE* const file = std::fopen("step.dot", "r");
  CHECK(file != nullptr);
  const absl::StatusOr<std::string> text = read_text(file, "step.dot");
  std::fclose(file);
  return equal<std::string>(text.value_or(""), inspect::to_dot(graph));
}

CGRT_EXAMPLE(inspect_json) {
  const ir::GraphIr graph = two_nodes();
#include "heads/cgrt/inspect/json.h.1.inc"
  return equal(again == graph, true);
}

CGRT_EXAMPLE(base_json_writer) {
#include "heads/cgrt/base/json_writer.h.1.inc"
  return equal<std::string>(text,
#include "heads/cgrt/base/json_writer.h.2.txt"
  );
}

CGRT_EXAMPLE(record_record) {
  using record::Record;
#include "heads/cgrt/record/record.h.1.inc"
  return contains(record::to_json(record), "\"name\": \"exec_launch\"");
}

CGRT_EXAMPLE(version) {
#include "heads/cgrt/version.h.1.inc"
  return absl::OkStatus();
}

CGRT_EXAMPLE(record_origin) {
  using record::Record;
  const int argc = 2;
  const char* const argv[] = {"./program", "--json"};
#include "heads/cgrt/record/origin.h.1.inc"
  return equal<std::string>(record.command, "program --json");
}

CGRT_EXAMPLE(record_statistics) {
#include "heads/cgrt/record/statistics.h.1.inc"
  return equal(row.median, 2.4);
}

// In the working directory, until the program ends.
absl::Status write_bundle(const std::string& path, const ir::GraphIr& graph, std::uint64_t address = 0x7f0000000000) {
  CGRT_ASSIGN_OR_RETURN(saved::FolderWriter writer, saved::FolderWriter::create(path));
  const std::string image = "an image";
  const std::vector<std::byte> weights(4096, std::byte{1});
  saved::SavedGraph step{.name = "step", .kernels = {{.symbol = "scale"}}, .node_kernels = {0}};
  step.allocations = {{.block = 0, .bytes = 4096}};
  step.inputs = {{.name = "token", .range = step.allocations[0], .dtype = "int64", .shape = {1}}};
  CGRT_ASSIGN_OR_RETURN(step.memory.emplace_back(saved::Piece{step.allocations[0]}).hash, writer.add_memory(weights));
  CGRT_ASSIGN_OR_RETURN(step.file, writer.add_graph(step.name, graph));
  CGRT_ASSIGN_OR_RETURN(const saved::Hash code, writer.add_code(image));
  const saved::Manifest manifest{
      .machine = {.device = "NVIDIA H200", .major = 9, .minor = 0, .multiprocessors = 132, .driver = 13000},
      .modules = {{.code = code, .bytes = image.size()}},
      .blocks = {{.address = address, .bytes = 4096}},
      .graphs = {step}};
  return writer.finish(manifest);
}

CGRT_EXAMPLE(saved_hash) {
  const std::vector<std::byte> bytes(3);
#include "heads/cgrt/saved/hash.h.1.inc"
  return equal<std::size_t>(name.size(), 32);
}

CGRT_EXAMPLE(saved_folder) {
  CGRT_RETURN_IF_ERROR(write_bundle("step.bundle", two_nodes()));
#include "heads/cgrt/saved/folder.h.1.inc"
  return equal(graph == two_nodes(), true);
}

CGRT_EXAMPLE(saved_movable) {
  CGRT_RETURN_IF_ERROR(write_bundle("step.bundle", two_nodes()));
  CGRT_RETURN_IF_ERROR(write_bundle("second.bundle", two_nodes(), 0x302000000));
#include "heads/cgrt/saved/movable.h.1.inc"
  CGRT_ASSIGN_OR_RETURN(const saved::Folder again, saved::Folder::open("step.bundle"));
  return equal(again.manifest().graphs[0].is_movable, true);
}

CGRT_EXAMPLE(saved_text) {
  CGRT_RETURN_IF_ERROR(write_bundle("step.bundle", two_nodes()));
  CGRT_ASSIGN_OR_RETURN(const saved::Folder folder, saved::Folder::open("step.bundle"));
#include "heads/cgrt/saved/text.h.1.inc"
  for (const char* part : {
#include "heads/cgrt/saved/text.h.2.txt"
           ,
#include "heads/cgrt/saved/text.h.3.txt"
           ,
#include "heads/cgrt/saved/text.h.4.txt"
           ,
#include "heads/cgrt/saved/text.h.5.txt"
       }) {
    CGRT_RETURN_IF_ERROR(contains(text, part));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::examples
