#include "inject/followed.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/driver/api.h"
#include "cgrt/inspect/json.h"
#include "cgrt/ir/diff.h"
#include "inject/graph_nodes.h"
#include "inject/session.h"
#include "inject/writer.h"

namespace graphdump {
namespace {

namespace driver = cgrt::driver;
namespace ir = cgrt::ir;

void put(ExecRecord& record, NotFollowed reason) {
  NotFollowed none = NotFollowed::kNone;
  record.not_followed.compare_exchange_strong(none, reason);  // the first one counts
}

// `graph` without what the nodes `ids` are, and without what its memory is: that may have been freed or have grown.
ir::GraphIr without(ir::GraphIr graph, const std::vector<std::uint32_t>& ids) {
  for (const std::uint32_t id : ids) graph.nodes[id] = {.body = graph.nodes[id].body};
  for (ir::Allocation& allocation : graph.allocations) allocation = {};
  return graph;
}

// Whether the graphs are the same but for the parameters of the nodes `set`. Memory and events are matched by which
// other nodes use them: their numbers change with what is set.
bool is_same_but(const ir::GraphIr& instantiated, const ir::GraphIr& changed, const std::vector<std::uint32_t>& set) {
  if (instantiated.nodes.size() != changed.nodes.size()) return false;
  const auto is_same_kind = [&](std::uint32_t id) { return instantiated.nodes[id].kind == changed.nodes[id].kind; };
  if (!std::all_of(set.begin(), set.end(), is_same_kind)) return false;
  std::vector<std::uint32_t> same_ids(changed.nodes.size());
  std::iota(same_ids.begin(), same_ids.end(), 0u);
  return ir::differences(without(instantiated, set), without(changed, set), same_ids).empty();
}

}  // namespace

Followed::Followed(std::string name, CUgraph graph, std::weak_ptr<const void> lifetime, ExecRecord* record)
    : name_(std::move(name)), graph_(graph), lifetime_(std::move(lifetime)), record_(record) {}

Followed::~Followed() { end(); }

void Followed::set(CUgraphNode node, CUgraphNodeParams params,
                   absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)> note_of) {
  if (is_over()) return;
  if (is_updated_) return give_up(NotFollowed::kUpdated);
  // The handles of the nodes inside may be others then.
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) return give_up(NotFollowed::kChildGraph);
  if (clone_ == nullptr) {
    if (const NotFollowed reason = clone(note_of); reason != NotFollowed::kNone) return give_up(reason);
  }
  const auto found = in_clone_.find(node);
  if (found == in_clone_.end()) return give_up(NotFollowed::kGraphChanged);
  if (driver::api().GraphNodeSetParams(found->second, &params) != CUDA_SUCCESS) return give_up(NotFollowed::kRefused);
  set_.insert(found->second);
  is_changed_ = true;
}

void Followed::on_update() {
  end();
  is_updated_ = true;
}

void Followed::write() {
  if (!is_changed_.exchange(false)) return;  // another thread's launch has written it
  std::vector<std::uint32_t> set;
  std::uint32_t id = 0;
  const auto note_of = [&](CUgraphNode node) -> const cgrt::NodeNote* {
    if (set_.contains(node)) set.push_back(id);
    ++id;
    const auto found = notes_.find(node);
    return found != notes_.end() ? &found->second : nullptr;
  };
  absl::StatusOr<ir::GraphIr> ir = cgrt::snapshot(cgrt::GraphRef(clone_), note_of);
  if (!ir.ok()) return give_up(NotFollowed::kNotRead);
  // On the thread of the writer, which has written the executable's own file before.
  const auto is_wanted = [record = record_, set = std::move(set)](const ir::GraphIr& changed) {
    const std::string file = absl::StrCat(session_folder(), "/", record->file);
    const absl::StatusOr<ir::GraphIr> instantiated =
        record->file[0] != '\0' ? cgrt::inspect::read_file(file) : absl::NotFoundError("");
    const bool is_same = instantiated.ok() && is_same_but(*instantiated, changed, set);
    if (!is_same) put(*record, instantiated.ok() ? NotFollowed::kGraphChanged : NotFollowed::kNoFile);
    return is_same;
  };
  writer::write(*std::move(ir), absl::StrCat(name_, "-set", ++written_, ".cgrt.json"), nullptr, is_wanted);
  if (written_ < kMaxWritten) return;
  end();
  is_over_ = true;
}

NotFollowed Followed::clone(absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)> note_of) {
  if (record_->nodes < limits().min_nodes) return NotFollowed::kNoFile;
  if (lifetime_.expired()) return NotFollowed::kGraphDestroyed;
  if (driver::api().GraphClone(&clone_, graph_) != CUDA_SUCCESS) {
    clone_ = nullptr;
    return NotFollowed::kNoClone;
  }
  return pair_nodes(graph_, clone_, note_of);
}

// Not by cuGraphNodeFindInClone: it does not say that it finds nodes of child graphs. The order is the same.
NotFollowed Followed::pair_nodes(CUgraph graph, CUgraph clone,
                                 absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)> note_of) {
  const driver::Api& api = driver::api();
  const std::vector<CUgraphNode> from = nodes_of(graph), to = nodes_of(clone);
  if (from.size() != to.size()) return NotFollowed::kNotRead;
  for (std::size_t i = 0; i < from.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY, type_of_clone = CU_GRAPH_NODE_TYPE_EMPTY;
    if (api.GraphNodeGetType(from[i], &type) != CUDA_SUCCESS ||
        api.GraphNodeGetType(to[i], &type_of_clone) != CUDA_SUCCESS || type != type_of_clone) {
      return NotFollowed::kNotRead;
    }
    in_clone_.emplace(from[i], to[i]);
    if (const cgrt::NodeNote* const note = note_of(from[i]); note != nullptr) notes_.emplace(to[i], *note);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CUgraph inside = nullptr, inside_clone = nullptr;
    if (api.GraphChildGraphNodeGetGraph(from[i], &inside) != CUDA_SUCCESS ||
        api.GraphChildGraphNodeGetGraph(to[i], &inside_clone) != CUDA_SUCCESS) {
      return NotFollowed::kNotRead;
    }
    const NotFollowed reason = pair_nodes(inside, inside_clone, note_of);
    if (reason != NotFollowed::kNone) return reason;
  }
  return NotFollowed::kNone;
}

void Followed::give_up(NotFollowed reason) {
  put(*record_, reason);
  end();
  is_over_ = true;
}

void Followed::end() {
  is_changed_ = false;
  if (clone_ != nullptr) driver::api().GraphDestroy(std::exchange(clone_, nullptr));
  in_clone_.clear();
  notes_.clear();
  set_.clear();
}

}  // namespace graphdump
