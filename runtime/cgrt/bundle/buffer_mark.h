// How who saves a graph names memory of it (bundle/save.h):
//
//   const BufferMark token{.name = "token", .address = address, .bytes = 8, .dtype = "int64", .shape = {1}};
//   const BufferMark logits{.name = "logits", .place = OperandPlace{.node = 0, .operand = 0}};
//   CGRT_ASSIGN_OR_RETURN(const auto decode, saver.prepare(graph.ref(), "decode", {{token}, {logits}}));
//
// Plain.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgrt {

// What an operand of a node names: of a kernel its argument of that number, an address; of a copy its destination (0)
// or source (1); of a memset its destination (0).
struct OperandPlace {
  std::uint32_t node = 0, operand = 0;
  std::uint64_t offset = 0;  // bytes behind that
};

// Memory with a name.
struct BufferMark {
  std::string name = {};
  std::uint64_t address = 0;  // where `place` is nullopt
  std::optional<OperandPlace> place = {};
  std::uint64_t bytes = 0;  // 0: to the end of its allocation
  std::string dtype = {};
  std::vector<std::uint64_t> shape = {};
  bool is_optional = false;  // left out where the graph does not reach that memory
};

struct SavedMarks {
  std::vector<BufferMark> inputs = {}, outputs = {};
};

// Addresses.
struct MemoryRange {
  std::uint64_t address = 0, bytes = 0;
};

}  // namespace cgrt
