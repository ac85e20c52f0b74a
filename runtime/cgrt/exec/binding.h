// Binding and Slot: what a rebindable executable (graph_exec.h) can be told without running the calls of a step again.
//
//   CGRT_ASSIGN_OR_RETURN(Binding four, exec.prepare([&](LaunchTarget target) { return step(target, 4); }));
//   CGRT_ASSIGN_OR_RETURN(Slot<float> factor, exec.slot<float>(scaled, 2));   // the third argument of a node
//   CGRT_RETURN_IF_ERROR(exec.rebind(four));                                  // all that the step's calls said
//   CGRT_RETURN_IF_ERROR(exec.set(factor, 0.5f));                             // one argument
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));
//
// Values. They are of the executable that made them, which may be moved, and of no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cgrt/graph/node.h"

namespace cgrt {

namespace internal {
struct BoundValues;
}

// All arguments, grids and other parameters that the nodes of an executable had when it was prepared. A copy costs a
// pointer. Does not own what the arguments point to.
class Binding {
 public:
  Binding() = default;  // empty, and refused

  // For the rest of this library.
  explicit Binding(std::shared_ptr<const internal::BoundValues> values) : values_(std::move(values)) {}
  const internal::BoundValues* values() const { return values_.get(); }

 private:
  std::shared_ptr<const internal::BoundValues> values_;
};

// One argument of one kernel node, of type T: what cuFuncGetParamInfo says of it has T's size.
template <class T>
class Slot {
 public:
  Slot() = default;  // empty, and refused

  // For the rest of this library.
  Slot(std::uint64_t executable, std::uint32_t word) : executable_(executable), word_(word) {}
  std::uint64_t executable() const { return executable_; }
  std::uint32_t word() const { return word_; }

 private:
  std::uint64_t executable_ = 0;
  std::uint32_t word_ = 0;
};

// A place in an executable that holds an address of a buffer.
struct BufferUse {
  NodeRef node;
  std::optional<std::size_t> argument = {};  // of a kernel; nullopt: an operand of another node
  // Bytes from the argument's begin; of a copy or memset 0: destination, 1: source; of memory operations which, from 0.
  std::size_t at = 0;
  std::size_t offset = 0;  // of the address in the buffer, in bytes
  // Declared as a pointer in a kernel that was launched through this library, or an operand. Else a number that was
  // found: 8 bytes of a kernel that others launched, of a struct, or of a parameter that is no pointer.
  bool is_certain = false;
  std::string text = {};  // "argument 1 of kernel "scale" (node 3)"
};

}  // namespace cgrt
