// What is wrong with a graph, or may be: `graphdump lint`.
//
//   for (const inspect::Finding& finding : inspect::lint(graph)) {
//     std::printf("%s: %s\n", finding.rule->id.data(), finding.text.c_str());
//   }
//
//   race: node 0 (memset) and node 2 (memcpy) are not ordered, and both touch device#0 [0, 4096); node 0 writes.
//
// An error is certain, a warning may be one, a note is worth knowing. docs/lint.md says what each rule looks at.
//
// What is certain: memcpy, memset and batch memory operations say which bytes they touch. What is not: a kernel gets
// addresses, and nothing says whether it reads or writes there, or how far. A rule about kernels is a warning.
// A programmatic edge counts as an order, as if its end waited before it touches memory; programmatic-wait says where.
// An edge out of the ports 1 and 2 that is not programmatic does not: its end starts while its start still runs.
//
// Work grows with the graph, and where it could grow with its square there is a limit: at most 2^27 nodes and edges
// looked at to find what is ordered (about a second), and 2^22 rows of memory and pairs of nodes. What lies beyond is
// a finding of the rule not-checked.
//
// The same findings on every run. Thread-safe: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

enum class Severity : std::uint8_t { kNote, kWarning, kError };

// One rule may find things of several severities; `highest` is the most that it finds.
struct Rule {
  std::string_view id;  // "pageable-operand": does not change
  Severity highest = Severity::kNote;
  std::string_view what;    // "a memcpy from or to pageable host memory"
  std::string_view remedy;  // a sentence
};

// All of them, most severe first.
std::span<const Rule> rules();

// Null when there is none.
const Rule* find_rule(std::string_view id);

struct Finding {
  const Rule* rule = nullptr;
  Severity severity = Severity::kNote;
  std::vector<std::uint32_t> nodes = {};  // what it is about, all of them; the text names the first few
  std::string text = {};                  // a sentence or more, with labels and values
};

// Most severe first, then in the order of the rules. Of a graph that is not valid one: of the rule not-valid.
std::vector<Finding> lint(const ir::GraphIr& graph);

// "error race: ... Add an edge between them."
std::string to_text(const Finding& finding);

const char* to_string(Severity severity);  // "note", "warning", "error"

// How many findings of each severity; by its value.
std::array<std::size_t, 3> count_by_severity(std::span<const Finding> findings);

// What a file that was looked at gave, for to_lint_json.
struct LintedFile {
  std::string name;
  std::vector<Finding> findings = {};
  std::vector<std::string> broken_budgets = {};  // sentences of inspect/budget.h
};

// {schema, files [{file, errors, warnings, notes, findings [{rule, severity, nodes, text, remedy}],
// broken_budgets [text]}]}
std::string to_lint_json(std::span<const LintedFile> files);

inline constexpr char kGraphLintSchema[] = "cgrt-graph-lint-1";

}  // namespace cgrt::inspect
