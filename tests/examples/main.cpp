// examples simulator|gpu: runs the example at the head of every public header. Exit 0: all did what they say; 1: some
// did not; 77: no device. An example that this machine cannot run says why and counts as neither.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "cgrt/simulator/simulator.h"
#include "examples/examples.h"
#include "support/no_device.h"
#include "support/skip.h"

namespace cgrt::examples {
namespace {

struct Entry {
  const char* name;
  Example example;
};
std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

}  // namespace

Listed::Listed(const char* name, Example example) { entries().push_back({name, example}); }

absl::StatusOr<void*> Memory::make_bytes(std::size_t bytes, unsigned char value) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), bytes));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(fill8(stream, buffer.data(), value, bytes));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  buffers_.push_back(std::move(buffer));
  return buffers_.back().data();
}

absl::Status Memory::check_outputs() const {
  if (outputs_.empty()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  for (const void* output : outputs_) {
    unsigned char first = kPoison;
    CGRT_RETURN_IF_ERROR(copy(stream, &first, output, 1));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    if (first == kPoison) return absl::InternalError("an output was not written");
  }
  return absl::OkStatus();
}

absl::Status contains(const std::string& text, const std::string& part) {
  return absl::StrContains(text, part)
             ? absl::OkStatus()
             : absl::InternalError(absl::StrCat("this text\n", text, "should contain\n", part));
}

absl::Status runs(const Graph& graph, std::size_t nodes) {
  CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, snapshot(graph));
  CGRT_RETURN_IF_ERROR(equal(ir.nodes.size(), nodes));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.ref().synchronize();
}

absl::Status build_and_launch() {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(DeviceRef(0), sizeof(float)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(launch(graph.cursor(), {.grid = 1, .block = 32}, count_kernel(), buffer.as<float>(), 1));
  return runs(graph, 1);
}

}  // namespace cgrt::examples

int main(int argc, char** argv) {
  using namespace cgrt::examples;
  const std::string backend = argc == 2 ? argv[1] : "";
  if (backend != "simulator" && backend != "gpu") {
    std::fputs("usage: examples simulator|gpu\n", stderr);
    return 2;
  }
  std::unique_ptr<cgrt::Simulator> simulator;
  if (backend == "simulator") simulator = std::make_unique<cgrt::Simulator>();
  if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  // Some examples write files.
  std::string folder = std::filesystem::temp_directory_path() / "cgrt-examples-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr || chdir(folder.c_str()) != 0) {
    std::perror(folder.c_str());
    return 1;
  }
  int failed = 0, passed = 0, skipped = 0;
  const auto run = [&](bool has_own_simulator) {
    for (const Entry& entry : entries()) {
      if (has_own_simulator != absl::StartsWith(entry.name, "simulator")) continue;
      Memory memory;
      absl::Status status = entry.example(memory);
      if (cgrt::testing::is_skip(status)) {
        std::printf("skipped %s: %s\n", entry.name, std::string(status.message()).c_str());
        ++skipped;
        continue;
      }
      if (status.ok()) status = memory.check_outputs();
      status.ok() ? ++passed : ++failed;
      if (!status.ok()) std::printf("FAILED %s: %s\n", entry.name, status.ToString().c_str());
    }
  };
  run(false);
  if (simulator != nullptr) {
    simulator.reset();  // there is one at a time
    run(true);
  }
  std::filesystem::remove_all(folder);
  std::printf("examples on the %s: %d passed, %d failed, %d skipped\n", backend.c_str(), passed, failed, skipped);
  return failed == 0 && passed > 0 ? 0 : 1;
}
