// The files under tests/golden, byte for byte. CGRT_UPDATE_GOLDEN=1 rewrites them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/stats.h"
#include "cgrt/inspect/text.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::inspect {
namespace {

std::string golden(const std::string& file) { return std::string(CGRT_TEST_DATA_DIR) + "/golden/" + file; }

void check_file(const std::string& path, const std::string& expected) {
  if (std::getenv("CGRT_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << expected;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  INFO(path);
  CHECK(bytes == expected);
}

TEST_CASE("golden graphs are written as the bytes that were read, and as the expected texts", "[inspect][golden]") {
  const std::string name = GENERATE("empty", "chain", "fork_join", "nested", "structures", "conditional");

  const absl::StatusOr<ir::GraphIr> graph = read_file(golden(name + ".cgrt.json"));

  REQUIRE_OK(graph);
  check_file(golden(name + ".cgrt.json"), to_json(*graph));
  check_file(golden(name + ".txt"), to_text(*graph));
  check_file(golden(name + ".dot"), to_dot(*graph));
  check_file(golden(name + ".stats.txt"), to_stats_text(*graph));
  check_file(golden(name + ".stats.json"), to_stats_json(*graph));
}

TEST_CASE("golden dumps of the driver are shown as the expected texts", "[inspect][golden]") {
  const std::string name = GENERATE("driver_verbose", "driver_plain", "driver_captured", "driver_captured_plain",
                                    "driver_children", "driver_conditional");

  const absl::StatusOr<ir::GraphIr> graph = read_file(golden(name + ".dot"));

  REQUIRE_OK(graph);
  check_file(golden(name + ".txt"), to_text(*graph));
}

}  // namespace
}  // namespace cgrt::inspect
