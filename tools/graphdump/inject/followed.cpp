#include "inject/followed.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/inspect/json.h"
#include "cgrt/ir/diff.h"
#include "inject/session.h"
#include "inject/writer.h"

namespace graphdump {
namespace {

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

void Followed::set(CUgraphNode node, CUgraphNodeParams params, GraphClone::NoteOf note_of) {
  if (is_over()) return;
  if (is_updated_) return give_up(NotFollowed::kUpdated);
  if (clone_.get() == nullptr) {
    if (record_->nodes < limits().min_nodes) return give_up(NotFollowed::kNoFile);
    if (lifetime_.expired()) return give_up(NotFollowed::kGraphDestroyed);
    if (const NotFollowed reason = clone_.make(graph_, note_of); reason != NotFollowed::kNone) return give_up(reason);
  }
  if (const NotFollowed reason = clone_.set(node, params); reason != NotFollowed::kNone) return give_up(reason);
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
    if (clone_.was_set(node)) set.push_back(id);
    ++id;
    return clone_.note_of(node);
  };
  absl::StatusOr<ir::GraphIr> ir = cgrt::snapshot(cgrt::GraphRef(clone_.get()), note_of);
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

void Followed::give_up(NotFollowed reason) {
  put(*record_, reason);
  end();
  is_over_ = true;
}

void Followed::end() {
  is_changed_ = false;
  clone_.reset();
}

}  // namespace graphdump
