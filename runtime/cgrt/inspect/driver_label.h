// DriverLabel: the label of a node in a DOT dump of the driver, as rows of keys and values. Internal to inspect/.
//
//   CGRT_ASSIGN_OR_RETURN(const DriverLabel label, parse_driver_label("{MEMSET\n| {{ID | dptr} | {2 | 0x7F00}}\n}"));
//   label.kind;          // MEMSET
//   label.value("dptr"); // 0x7F00
//
// The driver writes two forms. With the parameters of a kind, a record of Graphviz, fields in braces with bars between
// them. Names stand beside their values or in a field of their own above these, and groups of either in front:
//
//   {cooperative | 0}                                      cooperative
//   {{ID | dptr} | {2 | 0x7F00}}                           ID, dptr
//   {accessPolicyWindow | {base_ptr | num_bytes} | {0 | 0}} accessPolicyWindow.base_ptr, ...
//   {{srcPtr | dstPtr} | {pitch | ptr | pitch | ptr} | {0 | 0x7F00 | 0 | 0x7F40}}    srcPtr.pitch, ..., dstPtr.ptr
//   {{srcPos | {{x | 0} | {y | 0}}} | {dstPos | {{x | 0} | {y | 0}}}}                srcPos.x, ..., dstPos.y
//
// Without, lines: the number of the node, then the kind, or what the node runs.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cgrt::inspect {

struct DriverLabel {
  struct Row {
    std::string key;
    std::vector<std::string> values;
  };

  std::string kind;  // with "_" for " "; empty of a label that is no record
  std::vector<Row> rows;
  std::vector<std::string> lines;  // of a label that is no record, without the first

  bool is_record() const { return lines.empty(); }
  // Null when no row has that key.
  const Row* row(std::string_view key) const;
  // The first value of that row; empty when there is none.
  std::string_view value(std::string_view key) const;
};

// `text` is the value of the attribute, with its backslashes. InvalidArgument says what is wrong with it.
absl::StatusOr<DriverLabel> parse_driver_label(std::string_view text);

}  // namespace cgrt::inspect
