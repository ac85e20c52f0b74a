#include "cgrt/dump/dump.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

TEST_CASE("every graph that is instantiated is written, and reads back as its snapshot", "[dump]") {
  Simulator simulator;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("cgrt-dump-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 256);
  Graph graph = *Graph::create(DeviceRef(0));
  {
    Scope scope("layer0");
    REQUIRE_OK(launch(graph.cursor(), {.grid = 1, .block = 32}, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, 1));
  }

  dump_graphs_to(folder.string());
  GraphExec first = *instantiate(graph);
  GraphExec second = *instantiate(graph);
  dump_graphs_to("");
  GraphExec third = *instantiate(graph);

  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    const absl::StatusOr<ir::GraphIr> read = inspect::read_file(entry.path().string());
    REQUIRE_OK(read);
    CHECK(*read == *snapshot(graph));
    CHECK(read->nodes.at(0).scope == "layer0");
  }
  CHECK(files == 2);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a dump overwrites no file, and one that fails leaves none", "[dump]") {
  Simulator simulator;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("cgrt-dump-again-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  Graph graph = *Graph::create(DeviceRef(0));
  CHECK_OK(graph.add_empty({}));
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) all.insert(entry.path().filename());
    return all;
  };
  dump_graphs_to(folder.string());
  CHECK_OK(instantiate(graph));
  const std::set<std::string> first = names();
  REQUIRE(first.size() == 1);
  // The next numbers are taken, as by another copy of the library.
  const std::string name = *first.begin(), head = name.substr(0, name.find_last_of('-') + 1);
  const int number = std::atoi(name.c_str() + head.size());
  for (int i = 1; i <= 3; ++i) {
    std::ofstream(folder / (head + std::to_string(number + i) + ".cgrt.json")) << "theirs";
  }

  CHECK_OK(instantiate(graph));

  CHECK(names().size() == 5);
  for (int i = 1; i <= 3; ++i) {
    std::string text;
    std::ifstream(folder / (head + std::to_string(number + i) + ".cgrt.json")) >> text;
    CHECK(text == "theirs");
  }
  {
    driver::Instrument instrument;
    instrument.fail_entry("cuGraphNodeGetDependencies", CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(instantiate(graph));
  }
  CHECK(names().size() == 5);
  dump_graphs_to("");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a dump that cannot be written is no error of the program", "[dump]") {
  Simulator simulator;
  Graph graph = *Graph::create(DeviceRef(0));

  dump_graphs_to("/nonexistent/folder");
  CHECK_OK(instantiate(graph));
  dump_graphs_to("");
}

}  // namespace
}  // namespace cgrt::testing
