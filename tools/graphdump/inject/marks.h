// Names for memory, in marks of NVTX (inject/saving.h) and on the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cgrt/bundle/buffer_mark.h"

namespace graphdump {

struct Mark {
  enum class Kind { kInput, kOutput, kDead, kNoneDead } kind = Kind::kInput;
  cgrt::BufferMark buffer = {};  // of an input or output
  cgrt::MemoryRange dead = {};
};

// Nullopt: it does not begin with "cgrt:". kInvalidArgument says what is wrong with one that does.
absl::StatusOr<std::optional<Mark>> parse_mark(std::string_view text);

// NAME=NODE:OPERAND[+OFFSET][:BYTES[:DTYPE:SHAPE]]
absl::StatusOr<cgrt::BufferMark> parse_operand(std::string_view text);

}  // namespace graphdump
