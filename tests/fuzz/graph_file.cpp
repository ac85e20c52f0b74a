// libFuzzer over graphdump's readers, of JSON and of the driver's DOT, and all that looks at what they have read. Not
// part of the build:
//
//   tests/fuzz/run.sh SECONDS

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/emit.h"
#include "cgrt/inspect/html.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/lint.h"
#include "cgrt/inspect/stats.h"
#include "cgrt/inspect/text.h"
#include "cgrt/inspect/timing.h"
#include "cgrt/ir/diff.h"

// No text of the graph ends the element that it is in, or begins another.
static void check_page(std::string_view page) {
  std::size_t scripts = 0;
  for (const std::string_view tag : {"<script", "</script"}) {
    for (std::size_t at = page.find(tag); at != page.npos; at = page.find(tag, at + 1)) ++scripts;
  }
  if (scripts != 4) std::abort();  // the graph's, and the page's own
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cgrt;
  const absl::StatusOr<ir::GraphIr> graph =
      inspect::from_text(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!graph.ok()) return 0;
  inspect::to_text(*graph);
  inspect::to_text(*graph, {.fold = false, .short_names = false});
  inspect::to_dot(*graph);
  inspect::to_stats_text(*graph);
  inspect::to_stats_json(*graph);
  inspect::to_timing_text(*graph);
  inspect::to_program(*graph);
  for (const inspect::Finding& finding : inspect::lint(*graph)) inspect::to_text(finding);
  check_page(inspect::to_html(*graph));
  const std::string text = inspect::to_json(*graph);
  const absl::StatusOr<ir::GraphIr> again = inspect::from_json(text);
  // What was not UTF-8 is written otherwise: the second time nothing changes.
  if (!again.ok() || inspect::to_json(*again) != text) std::abort();
  if (!ir::differences(*again, *again).empty()) std::abort();
  return 0;
}
