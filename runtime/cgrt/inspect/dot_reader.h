// DotFile: a text in DOT, the language of Graphviz, as lists of its nodes and edges. Internal to inspect/.
//
//   CGRT_ASSIGN_OR_RETURN(const DotFile file, parse_dot(R"(digraph dot { "a" -> "b" [headlabel=0]; })"));
//   file.edges[0].to;                          // b
//   place_of(text, file.edges[0].to);          // "line 1"
//
// Made for files of unknown origin: nesting and the number of statements are limited, and memory and time are linear in
// the text. Reads directed graphs with subgraphs; ports of nodes, edges to whole subgraphs, strings in HTML and strings
// joined by + are refused.
// The parts of a DotFile are views into the text, which must outlive it. Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cgrt::inspect {

inline constexpr std::size_t kMaxDotDepth = 64;                    // of subgraphs
inline constexpr std::size_t kMaxDotItems = std::size_t{1} << 24;  // statements and attributes together

// Names and values are as in the text, without the quotes around them: what a backslash means is for the reader of a
// value to know.
struct DotAttribute {
  std::string_view name, value;
};

// Which of DotFile::attributes.
struct DotAttributes {
  std::size_t first = 0, count = 0;
  bool operator==(const DotAttributes&) const = default;
};

struct DotNode {
  std::string_view name;
  DotAttributes attributes;
};

struct DotEdge {
  std::string_view from, to;
  DotAttributes attributes;
};

struct DotFile {
  std::string_view name;                    // of the graph; empty: it has none
  std::vector<std::string_view> subgraphs;  // their names, in the order in which they begin; those without left out
  std::vector<DotNode> nodes;               // the statements of nodes
  std::vector<DotEdge> edges;
  std::vector<DotAttribute> attributes;

  std::span<const DotAttribute> of(const DotAttributes& some) const {
    return std::span(attributes).subspan(some.first, some.count);
  }
  // Of several the last; empty when there is none.
  std::string_view value(const DotAttributes& some, std::string_view attribute) const;
};

// Whether the text begins like DOT, so that what is wrong with it is to be said as of DOT.
bool is_dot(std::string_view text);

// InvalidArgument for all else, with the line: "not DOT: line 3: expected a name or a string, found \"]\"".
absl::StatusOr<DotFile> parse_dot(std::string_view text);

// "line 3": where `part`, a view into `text`, begins.
std::string place_of(std::string_view text, std::string_view part);

}  // namespace cgrt::inspect
