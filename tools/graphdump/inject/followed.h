// The parameters of an executable whose nodes a process sets one by one: the first such call has the graph that the
// executable was made of cloned (inject/graph_clone.h). The next launch has the clone written as NAME-setN.cgrt.json.
//
//   Followed followed("python3-803-0", graph, lifetime, &record);
//   followed.set(node, params, note_of);                 // after cuGraphExecKernelNodeSetParams
//   if (followed.is_changed()) followed.write();         // after cuGraphLaunch
//
// Nothing is cloned before the first call, and the clone is destroyed with the last file, or where it cannot be what
// the executable is any more: then the record tells why. Its calls are to be made in relaxed capture mode. Not
// thread-safe, but for is_changed() and is_over().
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "inject/graph_clone.h"
#include "inject/session_file.h"

namespace graphdump {

class Followed {
 public:
  static constexpr std::uint32_t kMaxWritten = 3;  // some programs set parameters before each launch

  // `record`: of the executable, which was made of `graph`. `lifetime`: ends with the graph. `name`: of the
  // executable's file, without suffix.
  Followed(std::string name, CUgraph graph, std::weak_ptr<const void> lifetime, ExecRecord* record);
  ~Followed();
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  // The process has set `node`, of the graph or of a child graph inside of it. `note_of`: see cgrt::snapshot().
  void set(CUgraphNode node, CUgraphNodeParams params, GraphClone::NoteOf note_of);
  // A whole-graph update was taken over: what the clone has the executable has not.
  void on_update();

  // Whether a node was set since the last file.
  bool is_changed() const { return is_changed_.load(std::memory_order_relaxed); }
  // Returns when the clone is read. The thread of the writer looks then whether it is what was instantiated but for the
  // nodes that were set: the process may have changed the graph before it was cloned.
  void write();

  // Nothing will be written any more.
  bool is_over() const { return is_over_.load(std::memory_order_relaxed); }

 private:
  void give_up(NotFollowed reason);
  void end();

  const std::string name_;
  const CUgraph graph_;
  const std::weak_ptr<const void> lifetime_;
  ExecRecord* const record_;

  GraphClone clone_;
  std::uint32_t written_ = 0;
  bool is_updated_ = false;
  std::atomic<bool> is_changed_{false}, is_over_{false};
};

}  // namespace graphdump
