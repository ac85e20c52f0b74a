// A copy of a graph whose nodes get the parameters that a process gives those of an executable. The driver tells the
// parameters of graphs alone, not those of executables.
//
//   GraphClone clone;
//   if (const NotFollowed reason = clone.make(graph, note_of); reason != NotFollowed::kNone) ...
//   clone.set(node, params);                              // after cuGraphExecKernelNodeSetParams
//   cgrt::snapshot(cgrt::GraphRef(clone.get()), ...);
//
// Its calls are to be made in relaxed capture mode. Not thread-safe.
#pragma once

#include <cuda.h>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "cgrt/graph/snapshot.h"
#include "inject/session_file.h"

namespace graphdump {

class GraphClone {
 public:
  using NoteOf = absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)>;

  GraphClone() = default;
  ~GraphClone() { reset(); }
  GraphClone(const GraphClone&) = delete;
  GraphClone& operator=(const GraphClone&) = delete;

  // Copies `graph`, and what `note_of` knows of its nodes (see cgrt::snapshot). In place of what this was.
  NotFollowed make(CUgraph graph, NoteOf note_of);
  void reset();

  // `node`: of the graph or of a child graph inside of it. Not of a child graph node: nodes inside may be others then.
  NotFollowed set(CUgraphNode node, CUgraphNodeParams params);

  // Null: it was not made.
  CUgraph get() const { return clone_; }
  // Of the copy's nodes.
  const cgrt::NodeNote* note_of(CUgraphNode node) const;
  bool was_set(CUgraphNode node) const { return set_.contains(node); }

 private:
  NotFollowed pair_nodes(CUgraph graph, CUgraph clone, NoteOf note_of);

  CUgraph clone_ = nullptr;
  absl::flat_hash_map<CUgraphNode, CUgraphNode> in_clone_;  // by the graph's
  absl::flat_hash_map<CUgraphNode, cgrt::NodeNote> notes_;
  absl::flat_hash_set<CUgraphNode> set_;
};

}  // namespace graphdump
