// JsonCursor: a place in a JsonValue tree that knows its path, so that every complaint says where. Internal
// to inspect/ and saved/.
//
//   const JsonCursor root(tree);
//   CGRT_RETURN_IF_ERROR(root.expect_object());
//   std::uint32_t id = 0;
//   CGRT_RETURN_IF_ERROR(read_required(root, "id", id));   // "id: expected an integer from 0 to ..."
//
// A type of one's own is read by an overload `absl::Status read(const JsonCursor&, T&)` found by
// argument-dependent lookup. A cursor must not outlive the tree, nor the cursor that it came from.
// Not synchronized; reads only.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/json_value.h"

namespace cgrt::inspect {

// The value of what a graph file (version 5) has in the place of parameters or arguments that are not known.
inline constexpr char kNotKnown[] = "not known";

class JsonCursor {
 public:
  explicit JsonCursor(const JsonValue& root) : value_(&root) {}

  const JsonValue& value() const { return *value_; }
  std::size_t index() const { return index_; }                   // of an array element
  JsonCursor element(std::size_t index) const;                   // of an array with that many
  std::optional<JsonCursor> member(std::string_view key) const;  // of an object

  absl::Status expect_object() const;
  absl::StatusOr<std::size_t> expect_array() const;  // its length

  // InvalidArgument "nodes[3].grid: `what`".
  absl::Status error(const std::string& what) const;
  absl::Status missing(std::string_view key) const;
  // "expected `expected`, found the string \"x\"".
  absl::Status mismatch(const std::string& expected) const;

 private:
  std::string path() const;

  const JsonValue* value_;
  const JsonCursor* parent_ = nullptr;
  std::string_view key_;   // within an object,
  std::size_t index_ = 0;  // or within an array
};

absl::Status read(const JsonCursor& cursor, bool& out);
absl::Status read(const JsonCursor& cursor, std::string& out);
absl::Status read(const JsonCursor& cursor, double& out);
absl::Status read(const JsonCursor& cursor, float& out);  // a number too large for one is refused
absl::Status read_integer(const JsonCursor& cursor, std::int64_t lowest, std::uint64_t highest, std::uint64_t& bits);

// Of the values that are texts which `parse` knows; `what` says what they are: "a kind of node".
template <class Value>
absl::Status read_parsed(const JsonCursor& cursor, std::optional<Value> (*parse)(std::string_view), const char* what,
                         Value& out) {
  std::string text;
  CGRT_RETURN_IF_ERROR(read(cursor, text));
  const std::optional<Value> value = parse(text);
  if (!value.has_value()) return cursor.mismatch(what);
  out = *value;
  return absl::OkStatus();
}

template <std::integral Integer>
absl::Status read(const JsonCursor& cursor, Integer& out) {
  using Limits = std::numeric_limits<Integer>;
  std::uint64_t bits = 0;
  CGRT_RETURN_IF_ERROR(
      read_integer(cursor, static_cast<std::int64_t>(Limits::min()), static_cast<std::uint64_t>(Limits::max()), bits));
  out = static_cast<Integer>(bits);
  return absl::OkStatus();
}

template <class Item>
absl::Status read(const JsonCursor& cursor, std::vector<Item>& out) {
  CGRT_ASSIGN_OR_RETURN(const std::size_t length, cursor.expect_array());
  out.resize(length);
  for (std::size_t i = 0; i < length; ++i) CGRT_RETURN_IF_ERROR(read(cursor.element(i), out[i]));
  return absl::OkStatus();
}

template <class T>
absl::Status read_required(const JsonCursor& object, std::string_view key, T& out) {
  const std::optional<JsonCursor> found = object.member(key);
  return found.has_value() ? read(*found, out) : object.missing(key);
}

// Leaves `out` as it is when the key is missing.
template <class T>
absl::Status read_optional(const JsonCursor& object, std::string_view key, T& out) {
  const std::optional<JsonCursor> found = object.member(key);
  return found.has_value() ? read(*found, out) : absl::OkStatus();
}

}  // namespace cgrt::inspect
