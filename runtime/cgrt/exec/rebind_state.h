// What a rebindable executable knows of its nodes, and what changes of them. Internal to exec/.
//
// An executable cannot be read back, so the value of every argument word that a kernel has, or will have from the next
// launch on, is kept here. Only words that change travel to the device: see exec/patches.h.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/exec/launch_resources.h"
#include "cgrt/exec/patches.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

// The low `bytes` bytes of a word, from `within` bytes into an argument on.
inline std::uint64_t load_word(const void* argument, std::uint16_t within, std::uint8_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, static_cast<const unsigned char*>(argument) + within, bytes);
  return value;
}

class Variants;

class RebindState {
 public:
  // Up to 8 bytes of a kernel's argument, its grid, or whether it runs.
  struct Word {
    std::uint16_t argument = 0, within = 0;  // which, and bytes from its begin
    std::uint8_t bytes = 0;                  // 0: of no argument
    bool is_set_by_host = false;             // as all of its node's
  };
  struct Node {
    CUgraphNode handle;
    CUgraphNodeType type;
    // Of a kernel.
    CUfunction function = nullptr;
    CUcontext context = nullptr;
    Dim3 block = {};
    std::uint32_t shared_bytes = 0;
    std::uint32_t first_word = 0, word_count = 0;  // the grid, whether it runs, the arguments
    LaunchAttributes attributes = {};              // in normal form
    // Of others.
    std::uint32_t params = 0;   // into what is set now
    OperandPlaces places = {};  // where there are alternatives
  };
  static constexpr std::uint32_t kGridWord = 0, kEnabledWord = 1, kArgumentWords = 2;  // from first_word

  // New values of words and of nodes that are not kernels, checked, to be taken over together or not at all.
  struct Change {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> words;
    std::vector<std::pair<std::uint32_t, OwnedParams>> params;  // by node
    std::vector<std::pair<std::uint32_t, bool>> enabled;        // by node, of those that are no kernels
    std::optional<Resources> used;                              // by its nodes, of all calls of a step
    Resources over;                                             // what no launch uses any more: take() leaves it here
  };

  // The values of all words and nodes at once.
  struct Values {
    std::uint64_t owner;  // id() of the state that they are of
    std::vector<std::uint64_t> words;
    std::vector<OwnedParams> params;
    std::vector<bool> enabled;  // by params
    Resources used;
  };

  // A node of a call that was captured.
  struct CapturedNode {
    CUgraphNode handle = nullptr;
    CUgraphNodeParams params{};        // what it points to is the node's
    LaunchAttributes attributes = {};  // of a kernel, in normal form
  };
  // All of such a call, those inside child graphs where these stand, without empty ones.
  struct CapturedCall {
    std::shared_ptr<const GraphState> graph;
    std::vector<CapturedNode> nodes;
  };
  absl::Status read_captured(CUgraph captured, std::vector<CapturedNode>& nodes);
  // Null: none with that key is kept.
  std::shared_ptr<const CapturedCall> captured_call(CallKey key) const;
  void keep_captured(CallKey key, const std::shared_ptr<const CapturedCall>& call);

  // An address that a node has: a word of a kernel's argument, or an operand: of a copy or memset its destination (0)
  // or source (1), of memory operations that of one of these.
  struct Address {
    std::uint32_t node;
    std::uint32_t word_or_operand;
    bool is_pointer;  // declared as one; else a number that may be an address
    std::uintptr_t value;
  };

  // Makes the kernels of `graph` device-updatable that patches change, and puts these in front. kFailedPrecondition
  // names the node that cannot be, and leaves all as they were; a failure of the driver's may leave some of them so.
  // Waits for a copy.
  static absl::StatusOr<RebindState> create(GraphState& graph);
  // Of a graph that has variants, with an executable for each: it becomes none itself.
  static absl::StatusOr<RebindState> create_of_variants(GraphState& graph, InstantiateFlags flags);
  RebindState(RebindState&&) noexcept;
  RebindState& operator=(RebindState&&) = delete;
  ~RebindState();

  // In which calls that a step makes are captured. Made at the first question.
  absl::StatusOr<StreamRef> capture_stream();

  // In the order of the calls that made them, those inside child graphs where these stand.
  const std::vector<Node>& nodes() const { return nodes_; }
  // Null: no node of it.
  const Node* find(CUgraphNode handle) const;
  // Of a node that is no kernel, as it is set now.
  const CUgraphNodeParams& current_params(const Node& node) const { return params_[node.params].params; }
  std::uint32_t id_of(const Node& node) const { return static_cast<std::uint32_t>(&node - nodes_.data()); }
  bool is_enabled(const Node& node) const;
  // "kernel \"scale\"", "memcpy". Of an executable alone: its graph may be another thread's.
  std::string describe(const Node& node) const;

  // Whether a step's calls may leave nodes out, which then do not run: graph/alternatives.h.
  bool has_alternatives() const { return has_alternatives_; }
  // The first node from `from` on that a call can meet there. Null: none.
  absl::StatusOr<const Node*> find_alternative(std::size_t from, const KernelLaunch& launch) const;
  absl::StatusOr<const Node*> find_alternative(std::size_t from, const CUgraphNodeParams& params) const;
  absl::StatusOr<const Node*> find_alternative(std::size_t from, const CapturedNode& captured) const;

  // Puts what `launch` changes of `kernel` into `change`. kFailedPrecondition with what cannot change: the function,
  // the block, shared memory, attributes; kInvalidArgument for a grid that no launch could have.
  absl::Status change_kernel(const Node& kernel, const KernelLaunch& launch, Change& change) const;
  // The same with what a captured node of the same type has.
  absl::Status change_as(const Node& node, const CapturedNode& captured, Change& change) const;
  void change_enabled(const Node& node, bool is_enabled, Change& change) const;
  void change_params(const Node& node, const CUgraphNodeParams& params, Change& change) const;
  absl::Status change_grid(const Node& kernel, const Dim3& grid, Change& change) const;

  // The words of an argument of a kernel, which follow each other. kInvalidArgument when it has no such argument, or
  // one of other than `bytes` bytes.
  absl::StatusOr<std::uint32_t> first_word(const Node& kernel, std::size_t argument, std::size_t bytes) const;
  void change_argument(std::uint32_t first_word, const void* value, std::size_t bytes, Change& change) const;

  // Those in [begin, begin + bytes), in the order of nodes.
  std::vector<Address> addresses_in(std::uintptr_t begin, std::size_t bytes) const;
  // "kernel "scale"", of a node in the body of a conditional node that has such an address; empty: there is none.
  std::string user_in_bodies(std::uintptr_t begin, std::size_t bytes) const;
  void change_address(const Address& address, std::uintptr_t value, Change& change) const;
  // That of a kernel's argument, `at` bytes from its begin, or the operand of number `at`. kInvalidArgument: there is
  // none there.
  absl::StatusOr<Address> address_of(CUgraphNode node, std::optional<std::size_t> argument, std::size_t at) const;
  const Word& word(std::uint32_t index) const { return words_[index]; }

  // All of it counts from the next launch on, or none and an error of setting a node by the host. Resources that go
  // are left in `change`: their destructors are the callers', and may call this executable. Where there are variants,
  // `exec` here and below is null.
  absl::Status take(Change&& change, CUgraphExec exec);

  // Of an executable that was just made: nodes that the graph's first step leaves out do not run.
  absl::Status begin(CUgraphExec exec);

  // What a launch into `stream` is of, which then brings all that was taken.
  absl::StatusOr<CUgraphExec> before_launch(CUgraphExec exec, StreamRef stream);
  absl::Status after_launch(StreamRef stream);
  absl::Status upload(CUgraphExec exec, StreamRef stream);
  // What a launch would be of.
  CUgraphExec current(CUgraphExec exec) const;
  // The same, left to the caller: its launches change nothing any more.
  CUgraphExec release(CUgraphExec exec);
  // Before the executable is destroyed.
  void finish();

  std::uint64_t id() const { return id_; }  // of no other state
  Values values_after(const Change& change) const;
  Change change_to(const Values& values) const;
  // To what `whole` has, of whose nodes `nodes` are these.
  Change change_to(const RebindState& whole, const std::vector<std::uint32_t>& nodes) const;

 private:
  struct Parameter {
    std::uint16_t offset, bytes;
    bool is_pointer;
  };
  struct Function {
    std::string name;  // as in snapshot's IR
    std::vector<Parameter> parameters;
  };
  struct KernelShape {
    CUfunction function;
    Dim3 grid, block;
    std::uint32_t shared_bytes;
    const LaunchAttributes* attributes;  // in normal form; null: none
  };

  static absl::StatusOr<RebindState> read_nodes(GraphState& graph);
  absl::Status add_nodes(CUgraph graph, const GraphState& root);
  absl::Status add_bodies(const GraphState& graph);
  absl::Status add_kernel(CUgraphNode handle, const GraphState& graph);
  absl::Status add_other(CUgraphNode handle, CUgraphNodeType type);
  absl::Status choose_set_by_host(CUgraph graph);
  absl::Status make_updatable();
  absl::StatusOr<const Function*> function_of(CUfunction function);
  const Function& function_of(const Node& kernel) const { return functions_.find(kernel.function)->second; }

  absl::StatusOr<KernelShape> shape_of(const KernelLaunch& launch, LaunchAttributes& storage) const;
  static KernelShape shape_of(const CapturedNode& captured);
  static bool is_same_kernel(const Node& kernel, const KernelShape& wanted);
  const Node* find_kernel(std::size_t from, const KernelShape& wanted) const;
  // `name()`: of the kernel that is to run. `argument(word)`: where its value is.
  template <class Name, class Argument>
  absl::Status change_words(const Node& kernel, const KernelShape& wanted, Name name, Argument argument,
                            Change& change) const;
  template <class Name>
  absl::Status change_grid(const Node& kernel, const Dim3& grid, Name name, Change& change) const;
  absl::Status set(std::uint32_t node, const CUgraphNodeParams& params, CUgraphExec exec) const;
  absl::Status set_enabled(std::uint32_t node, bool is_enabled, CUgraphExec exec) const;
  absl::Status take_in_variant(Change&& change);
  // Of a node, as it is to be.
  struct Wanted {
    const std::uint64_t* words;  // of a kernel
    const OwnedParams* params;   // of others
    bool is_enabled;             // of others
  };
  template <class WantedOf>
  Change change_to_wanted(WantedOf wanted_of) const;
  // What changes in words that are set by the host.
  struct HostKernel {
    std::uint32_t node;
    bool is_set = false, is_switched = false;  // its grid or arguments; whether it runs
  };
  std::vector<HostKernel> find_host_kernels(const Change& change) const;  // and the unsettled ones
  // To values_.
  absl::Status set_kernel(const HostKernel& kernel, CUgraphExec exec) const;

  RebindState();

  std::uint64_t id_ = 0;
  CUcontext context_ = nullptr;
  bool has_alternatives_ = false;
  std::vector<Node> nodes_;
  absl::flat_hash_map<CUgraphNode, std::uint32_t> positions_;
  std::vector<std::uint32_t> set_by_host_;  // kernels, ascending
  std::vector<HostKernel> unsettled_;       // not known to be as values_ says: a change failed, and so did its undo
  std::vector<Word> words_;
  std::vector<std::uint64_t> values_;     // of words_
  std::vector<driver::NodeWord> places_;  // of words_, on the device
  std::vector<OwnedParams> params_;
  std::vector<bool> enabled_;  // of params_
  absl::flat_hash_map<CUfunction, Function> functions_;
  AskedAttributes asked_;  // of captured kernels
  absl::flat_hash_map<std::vector<std::uint64_t>, std::shared_ptr<const CapturedCall>> captured_calls_;  // by key
  std::vector<CUgraphNode> earlier_patches_;  // nodes of the graph that are no call's
  Patches patches_;
  LaunchResources resources_;
  Stream capture_stream_;               // empty: none yet
  Change at_first_;                     // what does not run until a step says so
  std::vector<RebindState> bodies_;     // of conditional nodes, read alone: what is in there cannot be changed
  std::unique_ptr<Variants> variants_;  // which do what this says; null: this does
};

// Whether CUDA lets all kernels of `graph` be device-updatable; else kFailedPrecondition.
absl::Status check_rebindable(const GraphState& graph);

}  // namespace cgrt::internal
