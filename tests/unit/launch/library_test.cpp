// Loaded kernels: what is left when they are given up, and what the library costs.
#include "cgrt/launch/library.h"

#include <elf.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/launch/image.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

TEST_CASE("a library is unloaded with its last copy, and with the last graph that may run its kernels", "[library]") {
  Simulator simulator;
  driver::Instrument instrument;
  const DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 256);
  std::optional<Graph> graph = *Graph::create(DeviceRef(0));
  {
    Library library = *Library::load(DeviceRef(0), loaded_ptx());
    const Library copy = library;
    library = Library();
    CHECK(instrument.count("cuLibraryUnload") == 0);
    const auto scale = *copy.kernel<loaded_scale>("scale");
    for (int i = 0; i < 3; ++i) {
      CHECK_OK(graph->add_kernel({}, kConfig, scale, x.as<float>(), x.as<float>(), 1.0f, 1));
    }
    CHECK(instrument.count("cuUserObjectCreate") == 1);  // for the graph, not for each node
  }
  CHECK(instrument.count("cuLibraryUnload") == 0);

  graph.reset();
  collect_released();

  CHECK(instrument.count("cuLibraryUnload") == 1);
}

TEST_CASE("an executable gives up what a node ran before, when launches in flight have ended", "[library]") {
  Simulator simulator;
  driver::Instrument instrument;
  const DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 256);
  Graph graph = *Graph::create(DeviceRef(0));
  std::optional<KernelNode> node;
  {
    const Library library = *Library::load(DeviceRef(0), loaded_ptx());
    node =
        *graph.add_kernel({}, kConfig, *library.kernel<loaded_scale>("scale"), x.as<float>(), x.as<float>(), 1.0f, 1);
  }
  std::optional<GraphExec> exec = *instantiate(graph);
  const auto set_to_new = [&] {
    const Library library = *Library::load(DeviceRef(0), loaded_ptx());
    CHECK_OK(exec->set_params(*node, kConfig, *library.kernel<loaded_scale>("scale"), x.as<float>(), x.as<float>(),
                              1.0f, 1));
  };
  for (int i = 0; i < 5; ++i) set_to_new();
  CHECK(instrument.count("cuLibraryUnload") == 3);  // the one before the last goes with the next set

  const Stream stream = *Stream::create(DeviceRef(0));
  simulator.hold(stream.ref().get());
  CHECK_OK(exec->launch(stream));
  for (int i = 0; i < 3; ++i) set_to_new();
  CHECK(instrument.count("cuLibraryUnload") == 4);
  simulator.release(stream.ref().get());
  exec.reset();
  CHECK(instrument.count("cuLibraryUnload") == 8);
}

TEST_CASE("an executable that dies in flight unloads its libraries behind its launches", "[library]") {
  Simulator simulator;
  driver::Instrument instrument;
  const PinnedBuffer x = *PinnedBuffer::create(DeviceRef(0), 256);
  const Stream stream = *Stream::create(DeviceRef(0));
  x.as<float>()[0] = 3.0f;
  Graph graph = *Graph::create(DeviceRef(0));
  std::optional<GraphExec> exec;
  {
    const Library first = *Library::load(DeviceRef(0), loaded_ptx());
    const KernelNode node =
        *graph.add_kernel({}, kConfig, *first.kernel<loaded_scale>("scale"), x.as<float>(), x.as<float>(), 1.0f, 1);
    exec = *instantiate(graph);
    const Library second = *Library::load(DeviceRef(0), loaded_ptx());
    CHECK_OK(
        exec->set_params(node, kConfig, *second.kernel<loaded_scale>("scale"), x.as<float>(), x.as<float>(), 2.0f, 1));
  }
  std::atomic<bool> may_run = false;
  CHECK_OK(launch_host(stream, [&] {
    while (!may_run) std::this_thread::yield();
  }));
  CHECK_OK(exec->launch(stream));
  std::thread destroying([&] { exec.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(instrument.count("cuLibraryUnload") == 0);
  may_run = true;
  destroying.join();
  CHECK(x.as<float>()[0] == 6.0f);
  CHECK(instrument.count("cuLibraryUnload") == 1);
}

TEST_CASE("an executable keeps the code of a child graph that a node was set to", "[library]") {
  Simulator simulator;
  driver::Instrument instrument;
  const PinnedBuffer x = *PinnedBuffer::create(DeviceRef(0), 256);
  const Stream stream = *Stream::create(DeviceRef(0));
  const auto child_of = [&](float factor) {
    const Library library = *Library::load(DeviceRef(0), loaded_ptx());
    Graph inner = *Graph::create(DeviceRef(0)), child = *Graph::create(DeviceRef(0));
    REQUIRE_OK(
        inner.add_kernel({}, kConfig, *library.kernel<loaded_scale>("scale"), x.as<float>(), x.as<float>(), factor, 1));
    REQUIRE_OK(child.add_child({}, inner));
    return child;
  };
  Graph graph = *Graph::create(DeviceRef(0));
  const ChildGraphNode node = *graph.add_child({}, child_of(2.0f));
  std::optional<GraphExec> exec = *instantiate(graph);

  CHECK_OK(exec->set_params(node, child_of(3.0f)));
  collect_released();

  CHECK(instrument.count("cuLibraryUnload") == 0);
  x.as<float>()[0] = 1.0f;
  CHECK_OK(exec->launch(stream));
  CHECK_OK(stream.ref().synchronize());
  CHECK(x.as<float>()[0] == 3.0f);

  for (int i = 0; i < 2; ++i) CHECK_OK(exec->set_params(node, child_of(4.0f)));
  collect_released();
  CHECK(instrument.count("cuLibraryUnload") == 1);
  exec.reset();
  graph = Graph();
  collect_released();
  CHECK(instrument.count("cuLibraryUnload") == 4);
}

TEST_CASE("copies of a conditional body keep the code of its kernels", "[library]") {
  Simulator simulator;
  driver::Instrument instrument;
  const PinnedBuffer x = *PinnedBuffer::create(DeviceRef(0), 256);
  const Stream stream = *Stream::create(DeviceRef(0));
  Graph cloned, around = *Graph::create(DeviceRef(0));
  {
    const Library library = *Library::load(DeviceRef(0), loaded_ptx());
    Graph graph = *Graph::create(DeviceRef(0));
    Conditional branch = *graph.add_if({}, *graph.add_conditional_handle(1));
    REQUIRE_OK(branch.bodies[0].add_kernel({}, kConfig, *library.kernel<loaded_scale>("scale"), x.as<float>(),
                                           x.as<float>(), 3.0f, 1));
    cloned = *branch.bodies[0].clone();
    REQUIRE_OK(around.add_child({}, branch.bodies[0]));
  }
  collect_released();

  CHECK(instrument.count("cuLibraryUnload") == 0);
  x.as<float>()[0] = 1.0f;
  for (const Graph* graph : {&cloned, &around}) {
    GraphExec exec = *instantiate(*graph);
    CHECK_OK(exec.launch(stream));
    CHECK_OK(stream.ref().synchronize());
  }
  CHECK(x.as<float>()[0] == 9.0f);

  cloned = Graph();
  around = Graph();
  collect_released();
  CHECK(instrument.count("cuLibraryUnload") == 1);
}

TEST_CASE("a kernel is one and the same, whoever asks for it", "[library]") {
  Simulator simulator;
  const Library library = *Library::load(DeviceRef(0), loaded_ptx());
  const KernelRef scale = *library.kernel<loaded_scale>("scale");

  std::vector<std::thread> threads;
  std::vector<const driver::KernelIdentity*> found(8);
  for (auto& one : found) {
    threads.emplace_back([&] { one = library.kernel<loaded_scale>("scale")->identity(); });
  }
  for (std::thread& thread : threads) thread.join();

  for (const auto* one : found) CHECK(one == scale.identity());
  CHECK(KernelRef(*library.kernel<float*, const float*, float, int>("scale")) == scale);
}

TEST_CASE("a kernel that was unloaded is refused by name, on the simulator", "[library]") {
  Simulator simulator;
  const Stream stream = *Stream::create(DeviceRef(0));
  const DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 256);
  CUgraph raw = nullptr;  // a capture that was begun elsewhere keeps nothing
  {
    const Library library = *Library::load(DeviceRef(0), loaded_ptx());
    const auto scale = *library.kernel<loaded_scale>("scale");
    REQUIRE(driver::api().StreamBeginCapture(stream.ref().get(), CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    REQUIRE_OK(launch(stream, kConfig, scale, x.as<float>(), x.as<float>(), 1.0f, 1));
    REQUIRE(driver::api().StreamEndCapture(stream.ref().get(), &raw) == CUDA_SUCCESS);
  }
  const Graph graph = *Graph::adopt(raw, DeviceRef(0));
  GraphExec exec = *instantiate(graph);

  CHECK_THAT(exec.launch(stream), StatusIs(absl::StatusCode::kUnimplemented, "kernel \"scale\" was unloaded"));
}

TEST_CASE("parameters are read from PTX as its calling convention lays them out", "[library]") {
  Simulator simulator;
  const std::string ptx =
      ".version 9.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k (\n.param .u8 a,\n.param .u64 .ptr .global .align 4 b,\n.param .align 16 .b8 c[24],\n"
      ".param .u16 d\n)\n.maxntid 32\n{ ret; }\n.visible .entry none()\n{ ret; }\n.visible .entry bare\n{ ret; }\n";
  const Library library = *Library::load(DeviceRef(0), ptx);

  const std::vector<KernelParameter> parameters = parameters_of(*library.kernel_ref("k"));

  REQUIRE(parameters.size() == 4);
  CHECK((parameters[0].offset == 0 && parameters[0].bytes == 1));
  CHECK((parameters[1].offset == 8 && parameters[1].bytes == 8));
  CHECK((parameters[2].offset == 16 && parameters[2].bytes == 24));
  CHECK((parameters[3].offset == 40 && parameters[3].bytes == 2));
  CHECK(parameters_of(*library.kernel_ref("none")).empty());
  CHECK(parameters_of(*library.kernel_ref("bare")).empty());
}

// The image with its head changed.
template <class Header, class Change>
std::string with_head(std::string_view image, Change change) {
  std::string changed(image);
  Header header;
  std::memcpy(&header, changed.data(), sizeof(header));
  change(header);
  std::memcpy(changed.data(), &header, sizeof(header));
  return changed;
}

TEST_CASE("an image that is cut short or has a damaged head is refused before the driver reads it", "[library]") {
  Simulator simulator;
  driver::Instrument instrument;
  const std::string_view cubin = loaded_cubin(), fatbin = loaded_fatbin();
  const std::uint64_t end = ~std::uint64_t{0};
  const std::string cut_short = "The image is cut short: it has ", damaged = "The image is damaged: it has ";
  const std::string too_much = ", and its head speaks of 2^64 or more.";
  // Program headers behind all else, as nvcc writes them.
  const std::string without_segments = with_head<Elf64_Ehdr>(cubin, [&](Elf64_Ehdr& header) {
    header.e_phoff = cubin.size();
    header.e_phnum = 6;
    header.e_phentsize = sizeof(Elf64_Phdr);
  });
  const std::string bytes = std::to_string(cubin.size()) + " bytes";
  const std::pair<std::string, std::string> images[] = {
      {without_segments, cut_short + bytes + ", and its head speaks of " + std::to_string(cubin.size() + 336) + "."},
      {std::string(cubin.substr(0, cubin.size() - 1)), cut_short},
      {std::string(fatbin.substr(0, fatbin.size() - 1)), cut_short},
      {with_head<Elf64_Ehdr>(cubin, [&](Elf64_Ehdr& header) { header.e_shoff = end - 63; }),
       damaged + bytes + too_much},
      {with_head<Elf64_Ehdr>(cubin,
                             [&](Elf64_Ehdr& header) {
                               header.e_phoff = end - 7;
                               header.e_phnum = 1;
                               header.e_phentsize = sizeof(Elf64_Phdr);
                             }),
       damaged + bytes + too_much},
      {with_head<internal::FatbinHeader>(fatbin, [&](internal::FatbinHeader& header) { header.bytes = end - 7; }),
       damaged + std::to_string(fatbin.size()) + " bytes" + too_much},
  };

  for (const auto& [image, message] : images) {
    CHECK_THAT(Library::load(DeviceRef(0), image).status(), StatusIs(absl::StatusCode::kInvalidArgument, message));
  }
  CHECK(instrument.count("cuLibraryLoadData") == 0);
  CHECK_OK(Library::load(DeviceRef(0), cubin));
  CHECK_OK(Library::load(DeviceRef(0), fatbin));
}

TEST_CASE("the simulator says of which images it cannot read parameters", "[library]") {
  Simulator simulator;
  const Library library = *Library::load(DeviceRef(0), loaded_cubin());

  CHECK_THAT(library.kernel_ref("scale").status(),
             StatusIs(absl::StatusCode::kUnimplemented, "reads the parameters of kernels from PTX alone"));
  CHECK_OK(library.kernel<float*, const float*, float, int>("scale"));
}

}  // namespace
}  // namespace cgrt::testing
