// verdict_tests simulator|gpu [--only TEXT]
//
// Whether the verdicts of ir::judge are true: for each pair of graphs A and B, an executable of A is asked to become B,
// by rebinding, by setting nodes one by one, and by cuGraphExecUpdate, and each answer and each result is compared with
// the verdict. A line for each pair says the verdict and what the driver did:
//
//   ok      another scalar: rebind | set-params: 1 of 1 taken, as B | update: success, as B | rebound: as B
//   FAILED  ...: and below it each expectation that was not met
//   beyond  a change that CUDA documents as refused, or of which it says nothing, and that this driver takes, or the
//           other way round
//   lenient the simulator takes what a device refuses
//
// "as B": launched, it wrote what an executable of B writes. Exit 0: none failed; 77: no device.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/ir/diff.h"
#include "cgrt/simulator/simulator.h"
#include "support/no_device.h"
#include "verdicts/pairs.h"

namespace cgrt::testing {
namespace {

using ir::Rung;
using ir::Update;
using Bytes = std::vector<unsigned char>;

struct RawExec {
  CUgraphExec handle = nullptr;
  RawExec() = default;
  RawExec(const RawExec&) = delete;
  RawExec& operator=(const RawExec&) = delete;
  ~RawExec() {
    if (handle != nullptr) driver::api().GraphExecDestroy(handle);
  }
};

std::string name_of(CUresult result) {
  const char* name = nullptr;
  driver::api().GetErrorName(result, &name);
  return name != nullptr ? name : absl::StrCat(static_cast<int>(result));
}

// One pair on its way.
class Trial {
 public:
  Trial(const Pair& pair, const World& world) : pair_(pair), world_(world) {}

  absl::Status run() {
    CGRT_ASSIGN_OR_RETURN(a_, make(pair_.a));
    CGRT_ASSIGN_OR_RETURN(b_, make(pair_.b));
    context_ = a_.state()->context;
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context_));
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir_a, snapshot(a_));
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir_b, snapshot(b_));
    ir::Differences differences = ir::differences(ir_a, ir_b);
    ir::Verdicts verdicts = ir::judge(ir_a, ir_b, differences);
    if (verdicts.nodes.rung != Rung::kNone) {  // what is known is which nodes stand in the places of which
      differences = ir::differences(ir_a, ir_b, ir::match_by_position(ir_a, ir_b));
      verdicts = ir::judge(ir_a, ir_b, differences);
    }
    note(absl::StrCat(to_string(verdicts.rung)));
    check(verdicts.rung == pair_.rung, absl::StrCat("the verdict is to be ", to_string(pair_.rung)));
    check(verdicts.update == pair_.update,
          absl::StrCat("the verdict is that an update is ", to_string(verdicts.update), " (", verdicts.update_rule,
                       "), and is to be ", to_string(pair_.update)));
    {
      RawExec exec;
      CGRT_RETURN_IF_ERROR(instantiate_raw(b_, exec));
      CGRT_ASSIGN_OR_RETURN(wanted_, launch(exec.handle));
    }
    {
      RawExec exec;
      CGRT_RETURN_IF_ERROR(instantiate_raw(a_, exec));
      CGRT_ASSIGN_OR_RETURN(const Bytes before, launch(exec.handle));
      if (pair_.rung == Rung::kNone && !pair_.traits.is_moved) check(before == wanted_, "A does what B does");
    }
    CGRT_RETURN_IF_ERROR(try_set(differences, verdicts));
    CGRT_RETURN_IF_ERROR(try_update());
    return try_rebind();
  }

  const std::string& text() const { return text_; }
  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& answers() const { return answers_; }

 private:
  void note(const std::string& text) { absl::StrAppend(&text_, text_.empty() ? "" : " | ", text); }
  void check(bool is_true, const std::string& text) {
    if (!is_true) failures_.push_back(text);
  }
  // The same about the driver.
  void check_driver(bool is_true, const std::string& text) {
    if (!is_true) answers_.push_back(text);
  }

  absl::StatusOr<Graph> make(const Build& build) const {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
    CGRT_RETURN_IF_ERROR(build(world_, graph));
    return graph;
  }

  absl::Status instantiate_raw(const Graph& graph, RawExec& exec) const {
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    params.flags = static_cast<cuuint64_t>(pair_.traits.flags);
    return driver::to_status(driver::api().GraphInstantiateWithParams(&exec.handle, graph.ref().get(), &params),
                             "cuGraphInstantiateWithParams");
  }

  // The memory after a launch into memory that is as before.
  absl::StatusOr<Bytes> launch(CUgraphExec exec) const {
    return launch_by(
        [&] { return driver::to_status(driver::api().GraphLaunch(exec, world_.stream.ref().get()), "cuGraphLaunch"); });
  }
  template <class Launch>
  absl::StatusOr<Bytes> launch_by(Launch launch) const {
    constexpr std::size_t kBytes = World::kWords * sizeof(float);
    std::vector<float> values(World::kWords);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7 + 1);
    CGRT_RETURN_IF_ERROR(copy(world_.stream.ref(), world_.memory.data(), values.data(), kBytes));
    CGRT_RETURN_IF_ERROR(world_.stream.ref().synchronize());
    std::memcpy(world_.host.data(), values.data(), kBytes);
    std::memset(world_.word(0), 0, 64);
    CGRT_RETURN_IF_ERROR(launch());
    Bytes seen(2 * kBytes);
    CGRT_RETURN_IF_ERROR(copy(world_.stream.ref(), seen.data(), world_.memory.data(), kBytes));
    CGRT_RETURN_IF_ERROR(world_.stream.ref().synchronize());
    std::memcpy(seen.data() + kBytes, world_.host.data(), kBytes);
    return seen;
  }

  const char* compared(const Bytes& found) const { return found == wanted_ ? ", as B" : ", not as B"; }

  CUresult set(CUgraphExec exec, const NodeInfo& ours, const NodeInfo& theirs, absl::Status& status) const {
    const auto type = static_cast<CUgraphNodeType>(theirs.kind);
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      status = driver::to_status(driver::api().GraphKernelNodeGetParams(theirs.node.get(), &kernel), "GetParams");
      return driver::api().GraphExecKernelNodeSetParams(exec, ours.node.get(), &kernel);
    }
    CUgraphNodeParams params{};
    status = internal::read_params(theirs.node.get(), type, context_, params);
    return driver::api().GraphExecNodeSetParams(exec, ours.node.get(), &params);
  }

  // Each node that changes.
  absl::Status try_set(const ir::Differences& differences, const ir::Verdicts& verdicts) {
    if (verdicts.nodes.rung != Rung::kNone || verdicts.edges.rung != Rung::kNone) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> ours, list_nodes(a_));
    CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> theirs, list_nodes(b_));
    std::set<std::pair<std::size_t, std::size_t>> nodes;
    bool is_of_fixed = false;  // no kernel: what a kernel's node keeps, set-params keeps without a word
    for (std::size_t i = 0; i < differences.changes.size(); ++i) {
      const ir::Change& change = differences.changes[i];
      if (change.part >= ir::Part::kMemoryKind) {  // which nodes have it, the change does not say
        for (std::size_t n = 0; n < std::min(ours.size(), theirs.size()); ++n) {
          if (ours[n].kind == theirs[n].kind) nodes.insert({n, n});
        }
        is_of_fixed |= verdicts.changes[i].rung == Rung::kInstantiate;
        continue;
      }
      std::pair<std::size_t, std::size_t> pair(change.id, change.other);
      const bool is_lost_in_child =
          verdicts.changes[i].rung == Rung::kSetParams && verdicts.changes[i].update == Update::kLost;
      if (is_lost_in_child) pair = {*ours[pair.first].owner, *theirs[pair.second].owner};
      if (verdicts.changes[i].rung == Rung::kNone || ours[pair.first].kind == ir::NodeKind::kConditional) continue;
      is_of_fixed |= verdicts.changes[i].rung == Rung::kInstantiate && ours[pair.first].kind != ir::NodeKind::kKernel;
      if (ours[pair.first].kind != ir::NodeKind::kMemAlloc) nodes.insert(pair);
    }
    if (nodes.empty()) return absl::OkStatus();
    RawExec exec;
    CGRT_RETURN_IF_ERROR(instantiate_raw(a_, exec));
    std::size_t taken = 0;
    std::string refusals;
    for (const auto& [one, other] : nodes) {
      absl::Status read;
      const CUresult result = set(exec.handle, ours[one], theirs[other], read);
      CGRT_RETURN_IF_ERROR(read);
      taken += result == CUDA_SUCCESS ? 1u : 0u;
      if (result != CUDA_SUCCESS) absl::StrAppend(&refusals, ", ", name_of(result));
    }
    std::string text = absl::StrCat("set-params: ", taken, " of ", nodes.size(), " taken", refusals);
    const bool are_all_taken = taken == nodes.size();
    bool is_same = true;
    if (are_all_taken && !pair_.traits.is_moved) {
      CGRT_ASSIGN_OR_RETURN(const Bytes found, launch(exec.handle));
      is_same = found == wanted_;
      absl::StrAppend(&text, compared(found));
    }
    note(text);
    if (pair_.rung <= Rung::kSetParams) {
      check_driver(are_all_taken || pair_.update == Update::kMayBeRefused, "set-params takes all");
      check_driver(is_same, "set-params makes A do what B does");
    } else if (pair_.rung == Rung::kWholeUpdate || is_of_fixed) {
      check_driver(!are_all_taken || !is_same, "set-params does not do it");
    }
    return absl::OkStatus();
  }

  absl::Status try_update() {
    RawExec exec;
    CGRT_RETURN_IF_ERROR(instantiate_raw(a_, exec));
    CUgraphExecUpdateResultInfo info{};
    const CUresult result = driver::api().GraphExecUpdate(exec.handle, b_.ref().get(), &info);
    const bool is_taken = result == CUDA_SUCCESS;
    std::string text = absl::StrCat("update: ", is_taken ? "success" : name_of(result));
    if (!is_taken) {
      absl::StrAppend(&text, " (", to_string(static_cast<UpdateRefusal>(info.result)),
                      info.errorNode != nullptr ? absl::StrCat(", ", describe_node(info.errorNode)) : "", ")");
    }
    bool is_same = false;
    if (is_taken) {
      CGRT_ASSIGN_OR_RETURN(const Bytes found, launch(exec.handle));
      is_same = found == wanted_;
      absl::StrAppend(&text, compared(found));
    }
    note(text);
    switch (pair_.traits.update.value_or(pair_.update)) {
      case Update::kTaken: check_driver(is_taken && is_same, "an update takes B over"); break;
      case Update::kMayBeRefused: check_driver(!is_taken || is_same, "an update takes B over or is refused"); break;
      case Update::kLost:
        check_driver(is_taken, "an update succeeds");
        if (pair_.traits.is_shown) check_driver(!is_same, "an update loses what changes");
        break;
      case Update::kRefused: check_driver(!is_taken, "an update is refused"); break;
    }
    return absl::OkStatus();
  }

  absl::Status try_rebind() {
    if (pair_.step_b == nullptr || pair_.rung > Rung::kRebind || pair_.traits.flags != InstantiateFlags::kNone) {
      return absl::OkStatus();
    }
    CGRT_ASSIGN_OR_RETURN(Graph graph, make(pair_.a));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
    if (pair_.rung == Rung::kRebind) {
      CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return pair_.step_b(world_, target); }));
    }
    CGRT_ASSIGN_OR_RETURN(const Bytes found, launch_by([&] { return exec.launch(world_.stream.ref()); }));
    note(absl::StrCat("rebound", compared(found)));
    check_driver(found == wanted_, "rebinding makes A do what B does");
    return absl::OkStatus();
  }

  const Pair& pair_;
  const World& world_;
  CUcontext context_ = nullptr;
  Graph a_, b_;
  Bytes wanted_;
  std::string text_;
  std::vector<std::string> failures_;  // of verdicts
  std::vector<std::string> answers_;   // of the driver
};

struct Counts {
  int passed = 0, failed = 0, beyond = 0, lenient = 0, documented = 0;
};

absl::Status run_pair(const Pair& pair, bool simulated, Counts& counts) {
  CGRT_ASSIGN_OR_RETURN(const World world, World::create());
  Trial trial(pair, world);
  const absl::Status status = trial.run();
  const bool has_failed = !status.ok() || !trial.failures().empty();
  const bool is_otherwise = !trial.answers().empty();
  const char* word = "ok     ";
  const bool is_documented = pair.traits.documented != nullptr;
  if (has_failed || (is_otherwise && !is_documented && !(simulated && pair.traits.lenient != nullptr))) {
    word = "FAILED ";
    ++counts.failed;
  } else if (is_otherwise && simulated && pair.traits.lenient != nullptr) {
    word = "lenient";
    ++counts.lenient;
  } else if (is_otherwise) {
    word = "beyond ";
    ++counts.beyond;
  } else {
    ++counts.passed;
  }
  counts.documented += is_documented ? 1 : 0;
  std::printf("%s %s: %s%s\n", word, pair.name.c_str(), trial.text().c_str(), is_documented ? " (documented)" : "");
  if (word[0] == 'l') std::printf("        the simulator %s\n", pair.traits.lenient);
  if (word[0] == 'F' || word[0] == 'b') {
    if (!status.ok()) std::printf("        %s\n", std::string(status.message()).c_str());
    for (const std::string& one : trial.failures()) std::printf("        not so: %s\n", one.c_str());
    for (const std::string& one : trial.answers()) std::printf("        not so: %s\n", one.c_str());
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<World> World::create() {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(Event first, Event::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(Event second, Event::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(Event recorded, Event::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer memory, DeviceBuffer::create(kDevice, kWords * sizeof(float)));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer host, PinnedBuffer::create(kDevice, kWords * sizeof(float)));
  CGRT_RETURN_IF_ERROR(stream.ref().record(recorded.ref()));
  return World{std::move(stream),   std::move(first),  std::move(second),
               std::move(recorded), std::move(memory), std::move(host)};
}

int run_all(bool simulated, const std::string& only) {
  std::vector<Pair> pairs = kernel_pairs();
  for (auto make : {copy_pairs, structure_pairs}) {
    std::vector<Pair> more = make();
    std::move(more.begin(), more.end(), std::back_inserter(pairs));
  }
  Counts counts;
  for (const Pair& pair : pairs) {
    if (pair.name.find(only) == std::string::npos) continue;
    std::unique_ptr<Simulator> simulator;
    if (simulated) simulator = std::make_unique<Simulator>();
    const absl::Status status = run_pair(pair, simulated, counts);
    if (!status.ok()) {
      std::printf("FAILED  %s: %s\n", pair.name.c_str(), std::string(status.message()).c_str());
      ++counts.failed;
    }
    collect_released();
  }
  std::printf(
      "verdicts on the %s: %d as the driver answers, %d not, %d as documented, of which %d otherwise, %d where the "
      "simulator "
      "is lenient\n",
      simulated ? "simulator" : "device", counts.passed, counts.failed, counts.documented, counts.beyond,
      counts.lenient);
  return counts.failed == 0 && counts.passed > 0 ? 0 : 1;
}

}  // namespace cgrt::testing

int main(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "";
  const bool has_only = argc == 4 && std::strcmp(argv[2], "--only") == 0;
  if ((backend != "simulator" && backend != "gpu") || (argc != 2 && !has_only)) {
    std::fputs("usage: verdict_tests simulator|gpu [--only TEXT]\n", stderr);
    return 2;
  }
  if (backend == "gpu") {
    if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  }
  return cgrt::testing::run_all(backend == "simulator", has_only ? argv[3] : "");
}
