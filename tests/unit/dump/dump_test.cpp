#include "cgrt/dump/dump.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cgrt/cgrt.h"
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

TEST_CASE("a dump that cannot be written is no error of the program", "[dump]") {
  Simulator simulator;
  Graph graph = *Graph::create(DeviceRef(0));

  dump_graphs_to("/nonexistent/folder");
  CHECK_OK(instantiate(graph));
  dump_graphs_to("");
}

}  // namespace
}  // namespace cgrt::testing
