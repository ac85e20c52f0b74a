#!/usr/bin/env python3
"""mutants.py WORKDIR [TEXT]: puts known mistakes back into the library, one at a time, and expects a test to fail.

The mistakes are those that other graph libraries were found to make, and some near them. Builds the
committed tree with the dev preset in WORKDIR (some ten minutes on two cores), never in the checkout.
Exit 0: every mutant was noticed; 1: one survived, or its text is no longer in the source.
"""
import pathlib
import subprocess
import sys

# mistake, file below runtime/cgrt, text, what it becomes
MUTANTS = [
    ("an edge list pairs a node with itself", "graph/snapshot.cpp",
     "ids.at(edges.from[i]), ids.at(edges.to[i])", "ids.at(edges.to[i]), ids.at(edges.to[i])"),
    ("programmatic edges are listed without edge data", "graph/graph_state.cpp",
     "edges.from.data() + before, edges.data.data() + before, &count)", "edges.from.data() + before, nullptr, &count)"),
    ("attributes do not survive an explicit add", "graph/nodes.cpp",
     "if (ABSL_PREDICT_FALSE(has_attributes(launch, *node_params.function))) {", "if (!has_attributes(launch, *node_params.function)) {"),
    ("attributes do not survive a capture", "launch/launch.cpp",
     "config.numAttrs = launch.attributes != nullptr ? internal::to_driver(*launch.attributes, own) : 0;",
     "config.numAttrs = 0;"),
    ("attributes of a capture are forgotten", "target/capture_context.cpp",
     "if (is_first || !normal.is_default()) capture->", "if (is_first) capture->"),
    ("attributes, also a cluster size, are dropped by an update", "exec/exec_state.cpp",
     "lost.has_value()) {", "false) {"),
    ("attributes of a clone are forgotten", "graph/node_table.cpp",
     "for (NodeAttributes& one : table.attributes) one.node = node_at(one.path);", "table.attributes.clear();"),
    ("a host function dies before its node", "launch/host.cpp",
     "CGRT_RETURN_IF_ERROR(target.sink()->keep(owned));\n", "\n"),
    ("what joined is looked for after the capture ended", "graph/capture.cpp",
     "  std::move(abandon).Cancel();\n  const CUresult ended = end();\n",
     "  std::move(abandon).Cancel();\n  const CUresult ended = end();\n"
     "  if (!unjoined.empty()) unjoined = internal::name_unjoined(stream.get(), capture.joined());\n"),
    ("a branch that fails leaves the others unjoined", "target/fork_join.cpp",
     "for (std::size_t i = 0; i < forked; ++i) {", "for (std::size_t i = 0; i < forked && status.ok(); ++i) {"),
    ("a branch of a cursor waits for the one before", "graph/cursor.cpp", "Cursor place = fork;", "Cursor place = *this;"),
    ("a graph does not keep the pool that it uses", "memory/graph_pool.cpp",
     "CGRT_RETURN_IF_ERROR(keep_for(target));", "static_cast<void>(target);"),
    ("what a capture kept is lost when it is copied", "graph/capture.cpp",
     "internal::kept_count.load(std::memory_order_relaxed) != kept_before", "kept_before == UINT64_MAX"),
    ("the last refused call is told, and not the first", "driver/capture_log.cpp",
     "if (capture.noted_count_ == LoggedCapture::kMaxNoted) return;", "capture.noted_count_ = 0;"),
    ("another thread's refused launch is blamed before all others", "driver/capture_log.cpp",
     "return one.is_own || !one.may_be_elsewhere;", "return one.captures != 0;"),
    ("the captured stream dies inside of its capture", "stream/stream.cpp",
     "  if (CapturedStreams::is_active() && CapturedStreams::destroy_later(stream)) return;\n", ""),
    ("a callback that fails leaves the stream capturing", "graph/capture.cpp",
     "if (ABSL_PREDICT_FALSE(!recorded.ok())) return recorded;",
     "if (ABSL_PREDICT_FALSE(!recorded.ok())) return std::move(abandon).Cancel(), recorded;"),
    ("a macro makes a failed call twice", "base/status_macros.h",
     "if (ABSL_PREDICT_FALSE(!status.ok())) return status;", "if (ABSL_PREDICT_FALSE(!status.ok())) return (__VA_ARGS__);"),
    ("an update alters launches in flight", "simulator/exec.cpp",
     "  Body body_;\n  LaunchedEvents events_;", "  const Body& body_;\n  LaunchedEvents events_;"),
    ("an occupancy cache takes kernels of one type for one", "launch/occupancy.cpp",
     "const std::tuple key(handle, context,", "const std::tuple key(CUfunction{}, context,"),
    ("a child that was moved in dies with the parent's owner", "graph/graph_state.cpp",
     "owner = parent.owner;", "owner = std::make_shared<GraphOwner>(nullptr);"),
    ("an empty child graph is refused", "graph/nodes.cpp",
     "  CUgraphNodeParams params{};\n  params.type = CU_GRAPH_NODE_TYPE_GRAPH;",
     "  if (*count_nodes(child->handle) == 0) return absl::InvalidArgumentError(\"empty\");\n"
     "  CUgraphNodeParams params{};\n  params.type = CU_GRAPH_NODE_TYPE_GRAPH;"),
    ("an error of a stream is \"not complete\"", "stream/stream.cpp",
     "return driver::to_status(result, \"cuStreamQuery\");", "return Completion::kPending;"),
    ("an error of an event is \"not complete\"", "stream/event.cpp",
     "return driver::to_status(result, \"cuEventQuery\");", "return Completion::kPending;"),
    ("a query kills another thread's capture", "stream/capture_mode.h",
     "mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;", "mode_ = CU_STREAM_CAPTURE_MODE_GLOBAL;"),
    ("attributes stay at their positions when a node is removed", "graph/node_table.cpp",
     "for (auto& one : nodes) one.path.front() -= one.path.front() > position ? 1 : 0;", ""),
    ("an executable takes its definition's table after an edit", "exec/exec_state.cpp",
     "table = definition->knowledge.first_table();", "table = definition->knowledge.table();"),
    ("scopes stay at their positions when a node is removed", "graph/graph_state.cpp",
     "for (ScopeRun& run : scope_runs) run.first_node -= run.first_node > position ? 1 : 0;", ""),
    ("a graph does not keep the code of its kernels", "graph/nodes.cpp",
     "keep_in_graph(outermost(state), library)", "keep_in_graph(outermost(state), nullptr)"),
    ("a function is remembered beyond its table or context", "driver/api.h",
     "known->context == context && known->generation == now", "known->context == context && now != 0"),
    ("a pushed context stays", "device/context.cpp", "if (entered_) driver::pop_context();", ""),
    ("a refused node leaves its kernel without attributes", "graph/nodes.cpp",
     "absl::Cleanup remove = [&] { driver::api().GraphDestroyNode(node); };", "absl::Cleanup remove = [] {};"),
    ("scopes of children are mixed up", "graph/walk.cpp", " && found->position == position ?", " ?"),
    ("an event of a capture is asked in a way that ends it", "stream/event.cpp",
     "if (ABSL_PREDICT_FALSE(driver::LiveCapture::any()) && is_captured(handle_)) return Completion::kCaptured;", ""),
    ("attributes of an adopted graph are not read", "graph/node_table.cpp",
     "if (!attributes.is_default()) table.", "if (attributes.is_default()) table."),
    ("a cluster that was compiled in counts as none", "target/launch_attributes.cpp",
     "if (attributes.cluster == Dim3()) attributes.cluster = compiled_cluster;",
     "if (attributes.cluster.x == 0) attributes.cluster = compiled_cluster;"),
    ("a priority that was clamped counts as another", "graph/attribute_difference.cpp",
     "return std::clamp(a, greatest, least) == std::clamp(b, greatest, least);", "return a == b;"),
    ("instantiate ends a capture", "exec/graph_exec.cpp",
     "RelaxedCaptureMode relaxed;\n  CGRT_RETURN_IF_ERROR(relaxed.status());", ""),
    ("a capture blames the first call that failed", "driver/live_capture.cpp",
     "if (now != CU_STREAM_CAPTURE_STATUS_INVALIDATED) {", "if (false) {"),
    ("no block fits, and that is divided by", "launch/occupancy.cpp",
     "if (block == 0) return no_block_fits(kernel, shared_bytes_of_block(32));", ""),
    ("a primary context is made for each kernel", "driver/api.cpp",
     "if (result != CUDA_SUCCESS || is_active == 0) return result;", "if (result != CUDA_SUCCESS) return result;"),
    ("limits are quoted of device 0", "launch/launch.cpp",
     "max_cluster_size(kernel, context,", "max_cluster_size(kernel, DeviceRef(0),"),
    ("a refused update counts the definition's nodes", "exec/exec_state.cpp",
     "internal::refused_by_driver(info, node_count,",
     "internal::refused_by_driver(info, *internal::count_nodes(definition->handle),"),
    ("a refused update is an OK status", "exec/graph_exec.cpp",
     "return ABSL_PREDICT_TRUE(report.rung == UpdateRung::kWholeGraph) ?", "return true ?"),
    ("a patch overtakes the launch before", "exec/patches.cpp", "*last_stream_ != id", "id == UINT64_MAX"),
    ("a launch overtakes the patch of one that failed", "exec/patches.h", "pending_count_ == 0 && !has_patched_",
     "pending_count_ == 0"),
    ("an executable is patched before it was uploaded", "exec/patches.cpp", "if (!is_uploaded_) {", "if (false) {"),
    ("patches become nodes of a capture", "exec/patches.cpp", "if (is_capturing) return",
     "if (is_capturing && pending_count_ == 0) return"),
    ("what a rebound step hands over goes at once", "exec/rebinder.cpp",
     "change_.used->push_back(std::move(resource));", "resource.reset();"),
    ("a step's calls meet nodes that others left out", "exec/rebinder.cpp",
     "state_.change_enabled(node, false, change_);", "static_cast<void>(node);"),
    ("a stream that was moved from is the default stream", "launch/launch.cpp",
     "if (stream.get() == nullptr) return driver::empty_object(\"Stream\");", ""),
    ("dumps of two copies of the library overwrite each other", "dump/dump.cpp", "O_CREAT | O_EXCL |", "O_CREAT |"),
]


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def build(tree):
    return run(["cmake", "--build", "--preset", "dev", "--target", "unit_tests", "behaviour_tests"], cwd=tree)


def failures(tree):
    """Names of the tests and rows that fail."""
    tests = tree / "build/dev/tests"
    unit = subprocess.run([tests / "unit_tests"], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace")
    rows = run([tests / "behaviour_tests", "simulator", "--transcript", "tests/behaviour/transcripts/h200.json"], cwd=tree,
               errors="replace")
    found = []
    lines = unit.stdout.splitlines()
    for before, name, after in zip(lines, lines[1:], lines[2:]):
        if before.startswith("-----") and after.startswith(("-----", "  ")) and name not in found:
            found.append(name)
    if unit.returncode != 0 and not found:
        found.append(f"unit_tests ended with {unit.returncode}")
    found += [line.split("FAILED", 1)[1].strip() for line in rows.stdout.splitlines() if line.startswith("  FAILED")]
    if rows.returncode != 0 and "FAILED" not in rows.stdout:
        found.append(f"behaviour_tests ended with {rows.returncode}")
    return found


def main(work, only):
    root = pathlib.Path(__file__).resolve().parents[2]
    tree = work / "tree"
    if not tree.exists():
        subprocess.run(["git", "clone", "-q", root, tree], check=True)
    subprocess.run(["git", "checkout", "-q", "-f", "HEAD"], cwd=tree, check=True)
    subprocess.run(["cmake", "--preset", "dev"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    if build(tree).returncode != 0 or failures(tree):
        print("the tree does not build or its tests fail without a mutant")
        return 1
    survivors = 0
    for mistake, name, text, becomes in MUTANTS:
        if only not in mistake:
            continue
        path = tree / "runtime/cgrt" / name
        source = path.read_text()
        if text not in source:
            print(f"STALE    {mistake}: {name} has no line with {text!r}")
            survivors += 1
            continue
        path.write_text(source.replace(text, becomes, 1))
        built = build(tree)
        if built.returncode != 0:
            print(f"UNBUILT  {mistake}\n{built.stdout[-2000:]}")
            survivors += 1
        else:
            found = failures(tree)
            survivors += not found
            print(f"{'noticed ' if found else 'SURVIVED'} {mistake}" + (f"\n           {len(found)}: " if found else "") +
                  "; ".join(found[:3]), flush=True)
        path.write_text(source)
    print(f"{survivors} not noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) == 3 else ""))
