// Files that somebody broke on purpose: each gives a graph or an error, never a crash. Worth most
// under the sanitizers.

#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "cgrt/inspect/json.h"
#include "cgrt/inspect/text.h"
#include "cgrt/ir/diff.h"
#include "cgrt/ir/validate.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::inspect {
namespace {

std::string golden(const std::string& name) {
  std::ifstream file(std::string(CGRT_TEST_DATA_DIR) + "/golden/" + name, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  REQUIRE_FALSE(text.empty());
  return text;
}

// What a tool does with a file. True when it was a graph.
bool survives(const std::string& text, const ir::GraphIr& original) {
  const absl::StatusOr<ir::GraphIr> graph = from_json(text);
  if (!graph.ok()) {
    REQUIRE_FALSE(graph.status().message().empty());
    return false;
  }
  REQUIRE(to_text(*graph).substr(0, 6) == "graph:");
  const absl::StatusOr<ir::GraphIr> again = from_json(to_json(*graph));
  REQUIRE_OK(again);
  REQUIRE(*again == *graph);
  (void)ir::first_difference(original, *graph);
  (void)ir::differences(original, *graph);
  return true;
}

TEST_CASE("a golden file with any one byte changed gives a graph or an error", "[inspect][json][hostile]") {
  const std::string text = golden(GENERATE("fork_join.cgrt.json", "structures.cgrt.json", "conditional.cgrt.json"));
  const ir::GraphIr original = from_json(text).value();
  int graphs = 0, errors = 0;

  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {static_cast<char>(text[i] ^ 1), static_cast<char>(text[i] ^ 0x80), '9', '"', '-', '\0'}) {
      std::string mutant = text;
      mutant[i] = byte;
      ++(survives(mutant, original) ? graphs : errors);
    }
  }

  CHECK(graphs > 0);  // a changed digit or letter of a name
  CHECK(errors > 0);
}

TEST_CASE("a golden file with tokens replaced gives a graph or an error", "[inspect][json][hostile]") {
  const std::string text =
      golden(GENERATE("chain.cgrt.json", "nested.cgrt.json", "structures.cgrt.json", "conditional.cgrt.json"));
  const ir::GraphIr original = from_json(text).value();
  const std::array<std::string, 13> tokens = {
      "null", "1e300", "-1",   "1e400", "4294967296", "18446744073709551616", "-0",
      "[]",   "{}",    "\"\"", "true",  "0.5",        "[[[[[[]]]]]]"};

  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    for (const std::string& token : tokens) survives(std::string(text).replace(i, 1, token), original);
  }
  SUCCEED();
}

TEST_CASE("a golden file with pieces cut and doubled gives a graph or an error", "[inspect][json][hostile]") {
  const std::string text = golden("fork_join.cgrt.json");
  const ir::GraphIr original = from_json(text).value();
  std::mt19937 random(1);  // NOLINT: the same pieces every run

  for (int i = 0; i < 2000; ++i) {
    std::string mutant = text;
    const std::size_t at = random() % mutant.size();
    const std::size_t length = random() % 64;
    if (i % 2 == 0) {
      mutant.erase(at, length);
    } else {
      mutant.insert(random() % mutant.size(), text.substr(at, length));
    }
    survives(mutant, original);
  }
  SUCCEED();
}

}  // namespace
}  // namespace cgrt::inspect
