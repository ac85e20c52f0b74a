// A graph on its way into a bundle: what is known of it when it was instantiated, at the entry of a launch and after
// it. All by address; the Saver makes blocks of it. Internal to bundle/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/bundle/cubin.h"
#include "cgrt/bundle/save.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::internal {

// Memory that a graph uses: all of an allocation, a variable, the operand of a copy.
struct Place {
  CUdeviceptr start = 0;
  std::uint64_t bytes = 0;
  ir::MemoryKind kind = ir::MemoryKind::kDevice;
  bool has_content = true;                   // false: of the graph's own, undefined at the entry of a launch
  std::optional<std::uint32_t> module = {};  // it is a variable of this LoadedModule
  std::string variable = {};

  CUdeviceptr end() const { return start + bytes; }
};

// A module of this process. Two with the same image are one where it has no variables.
struct LoadedModule {
  struct Variable {
    std::string name;
    CUdeviceptr address;
    std::uint64_t bytes;
    const Cubin::Variable* in_image;  // null: what it is when the module is loaded is not known
  };

  std::shared_ptr<const std::string> image;
  std::shared_ptr<const Cubin> cubin = {};  // of it; null: it is none
  saved::Hash code = {};
  CUmodule handle = nullptr;
  std::vector<Variable> variables = {};
};

class LoadedModules {
 public:
  // The module of `function`, which is from `image`. Its number, of which none is given twice.
  absl::StatusOr<std::uint32_t> add(CUfunction function, std::string_view image);
  const LoadedModule& operator[](std::size_t i) const { return modules_[i]; }
  std::size_t size() const { return modules_.size(); }

  struct Found {
    std::uint32_t module;
    const LoadedModule::Variable* variable;
  };
  // That an address is in.
  std::optional<Found> find_variable(CUdeviceptr address) const;
  // Null: not known, see above.
  const Cubin::Variable* in_image(const Place& place) const;
  // Whether memory of one lies in the range.
  bool has_variables_in(CUdeviceptr start, std::uint64_t bytes) const;

 private:
  std::vector<LoadedModule> modules_;
  std::map<CUdeviceptr, std::pair<std::uint32_t, std::size_t>> variables_;  // module and number in it, by address
};

// By start; none overlaps another.
using Places = std::map<CUdeviceptr, Place>;

// That `address` is in; null: none.
const Place* find_place(const Places& places, CUdeviceptr address);

struct AddressPiece {
  CUdeviceptr address;
  std::uint64_t bytes;
  std::optional<saved::Hash> hash;  // nullopt: all zeros
};

struct NamedPlace {
  std::string name;
  CUdeviceptr address;
  std::uint64_t bytes;
  std::string dtype;
  std::vector<std::uint64_t> shape;
};

// Memory of an allocation node.
struct OwnMemory {
  CUdeviceptr address;
  std::uint64_t bytes;
  bool is_freed;  // by the graph
};

}  // namespace cgrt::internal

namespace cgrt {

struct Saver::Prepared {
  std::string name;
  CUcontext context = nullptr;
  int device = 0;
  ir::GraphIr graph;  // from begin() on with allocations as they are in the bundle
  std::vector<AllocationId> ids;
  std::vector<saved::Kernel> kernels;  // whose modules are LoadedModules
  std::vector<std::uint32_t> node_kernels;
  std::vector<saved::Slices> slices;
  std::vector<MemoryRange> host_operands;  // of copies, in pageable memory
  std::vector<internal::OwnMemory> own;
  std::vector<BufferMark> inputs, outputs;

  // At the entry of the launch.
  std::uint64_t launch = 0;
  internal::Places places;
  std::vector<MemoryRange> allocations;  // of the graph
  std::vector<internal::AddressPiece> memory;
  std::map<CUdeviceptr, std::string> initial;  // content of variables, by address, that a loaded module has anyway
  std::vector<internal::NamedPlace> named_inputs, named_outputs;
  std::vector<MemoryRange> dead;

  // After it.
  saved::Hash file = {};
  std::vector<internal::Place> after;
  std::vector<std::uint64_t> hashes;  // of `after`
  saved::Hash hashes_file = {};

  // Before another one.
  std::vector<MemoryRange> changed;
};

namespace internal {

// What Saver::prepare does.
absl::StatusOr<std::shared_ptr<Saver::Prepared>> prepare_graph(GraphRef graph, const std::string& name,
                                                               SavedMarks marks,
                                                               absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of,
                                                               const CodeOf& code_of, LoadedModules& modules);

}  // namespace internal
}  // namespace cgrt
