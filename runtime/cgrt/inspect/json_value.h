// JsonValue: a JSON text as a tree, for readers that then decode it with names and types (see
// json_cursor.h).
//
//   CGRT_ASSIGN_OR_RETURN(JsonValue root, parse_json(R"({"version": 1})"));
//
// Made for files of unknown origin: no exception leaves it, nesting and the number of values are
// limited, a key that appears twice in one object is refused.
// Internal to inspect/ and saved/. Thread-safe: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace cgrt::inspect {

constexpr std::size_t kMaxJsonDepth = 64;
// A value takes about 70 bytes; this many describe a graph of some 200,000 kernel nodes.
constexpr std::size_t kMaxJsonValues = std::size_t{1} << 24;

struct JsonMember;

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;
  // Integers are std::uint64_t, and std::int64_t only below zero; those that fit neither are double.
  std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array, Object> data;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// InvalidArgument with line and column where the text is not JSON, and with the path ("nodes[3]")
// where it breaks one of the limits above.
absl::StatusOr<JsonValue> parse_json(std::string_view text);

}  // namespace cgrt::inspect
