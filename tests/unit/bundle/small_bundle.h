// A bundle for tests, written as plain data, and what it says of itself. On the simulator its kernels run the host
// bodies of tests' kernels.
//
//   SmallBundle small;
//   small.graph.nodes.push_back(...);   // what is to be another
//   small.write();
//   Simulator simulator; SmallBundle::provide(simulator);
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/saved/folder.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cgrt_bundle_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path;
};

inline constexpr std::uint64_t kRegionBytes = std::uint64_t{32} << 20;

// Where `regions` regions of 32 MB are free in this process, far from those that malloc takes for its threads.
inline std::uint64_t free_addresses(std::uint64_t regions) {
  const std::uint64_t bytes = (regions + 1) * kRegionBytes;
  void* const wanted = reinterpret_cast<void*>(std::uint64_t{0x7eb000000000});  // no sanitizer has it either
  void* const found = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(found != MAP_FAILED);
  munmap(found, bytes);
  return (reinterpret_cast<std::uint64_t>(found) + kRegionBytes - 1) / kRegionBytes * kRegionBytes;
}

inline constexpr char kPtxImage[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 16 .b8 table[4096];
.visible .entry scale(.param .u64 scale_0, .param .u64 scale_1, .param .f32 scale_2, .param .u32 scale_3)
{ ret; }
.visible .entry pair(.param .u64 pair_0, .param .align 8 .b8 pair_1[16], .param .u64 pair_2)
{ ret; }
.visible .entry cluster(.param .u64 cluster_0)
{ ret; }
)";

// Block 0 is 8 KB of a device: x in its first page, y in the second. Block 1 is a page of pinned memory, z. The graph
// "step" sets y to 1, scales the 64 floats of x by 2 into y, and copies y to z. Floats of x are 0, 1, 2, ...
class SmallBundle {
 public:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr int kCount = 64;

  SmallBundle() : address_(free_addresses(4)) {
    manifest.machine = {.device = "NVIDIA H200", .major = 9, .minor = 0, .multiprocessors = 132, .driver = 13000};
    manifest.blocks = {{.kind = ir::MemoryKind::kDevice, .address = address_, .bytes = 2 * kPage},
                       {.kind = ir::MemoryKind::kPinnedHost, .address = address_ + 2 * kRegionBytes, .bytes = kPage}};
    saved.name = "step";
    saved.kernels = {{.symbol = "scale"}};
    saved.node_kernels = {0};
    saved.allocations = {{0, 0, kPage}, {0, kPage, kPage}, {1, 0, kPage}};
    saved.inputs = {{.name = "x", .range = {0, 0, kCount * 4}, .dtype = "float32", .shape = {8, 8}}};
    saved.outputs = {{.name = "z", .range = {1, 0, kCount * 4}}};
    graph.allocations = {{ir::MemoryKind::kDevice, 0, kPage},
                         {ir::MemoryKind::kDevice, 0, kPage},
                         {ir::MemoryKind::kPinnedHost, -1, kPage}};
    graph.functions = {{.name = "scale", .parameters = {{0, 8}, {8, 8}, {16, 4}, {20, 4}}}};
    graph.nodes.push_back(
        {.kind = ir::NodeKind::kMemset,
         .device = 0,
         .params = ir::MemsetParams{.destination = {1, 0}, .value = 1, .element_bytes = 4, .width = 1024}});
    graph.nodes.push_back({.kind = ir::NodeKind::kKernel, .device = 0, .params = scale({1, 0}, {0, 0}, 2)});
    graph.nodes.push_back({.kind = ir::NodeKind::kMemcpy,
                           .device = 0,
                           .params = ir::MemcpyParams{
                               .destination = ir::Pointer{2, 0}, .source = ir::Pointer{1, 0}, .width_bytes = kPage}});
    graph.edges = {{0, 1}, {1, 2}};
    x.assign(kPage / 4, 0);
    y_after.assign(kPage / 4, 0);
    for (std::size_t i = 0; i < kPage / 4; ++i) {
      const bool is_scaled = i < kCount;
      if (is_scaled) x[i] = static_cast<float>(i);
      const std::uint32_t one = 1;
      if (is_scaled) {
        y_after[i] = 2 * x[i];
      } else {
        std::memcpy(&y_after[i], &one, sizeof(one));
      }
    }
  }

  // What the simulator runs for the kernels of kPtxImage.
  static void provide(Simulator& simulator) {
    simulator.provide("scale", *scale_kernel().identity());
    simulator.provide("pair", *pair_kernel().identity());
    simulator.provide("cluster", *cluster_kernel().identity());
  }

  static ir::KernelParams scale(ir::Pointer out, ir::Pointer in, float factor) {
    ir::KernelParams kernel{.grid = {1, 1, 1}, .block = {kCount, 1, 1}};
    kernel.arguments.resize(24);
    kernel.pointers = {{0, out}, {8, in}};
    const int count = kCount;
    std::memcpy(kernel.arguments.data() + 16, &factor, sizeof(factor));
    std::memcpy(kernel.arguments.data() + 20, &count, sizeof(count));
    return kernel;
  }

  template <class T>
  static std::span<const std::byte> bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
  }

  // What memory has in it at the entry of a launch, for `to`.
  void add_piece(saved::SavedGraph& to, saved::Range range, std::span<const std::byte> bytes) {
    const absl::StatusOr<saved::Hash> hash = writer().add_memory(bytes);
    REQUIRE_OK(hash);
    to.memory.push_back({range, *hash});
  }
  // What it has after it; pairs of a range and its bytes.
  void set_expected(saved::SavedGraph& to, std::vector<std::pair<saved::Range, std::span<const std::byte>>> memory) {
    std::vector<std::uint64_t> hashes;
    for (const auto& [range, bytes] : memory) {
      to.expected.ranges.push_back(range);
      for (std::size_t at = 0; at < bytes.size(); at += saved::kExpectedBytes) {
        hashes.push_back(saved::short_hash_of(bytes.subspan(at, std::min(bytes.size() - at, saved::kExpectedBytes))));
      }
    }
    const absl::StatusOr<saved::Hash> hash = writer().add_expected(hashes);
    REQUIRE_OK(hash);
    to.expected.hashes = *hash;
  }
  void add_graph(saved::SavedGraph graph_saved, const ir::GraphIr& ir) {
    const absl::StatusOr<saved::Hash> file = writer().add_graph(graph_saved.name, ir);
    REQUIRE_OK(file);
    graph_saved.file = *file;
    manifest.graphs.push_back(std::move(graph_saved));
  }
  void add_module(std::string_view image) {
    const absl::StatusOr<saved::Hash> code = writer().add_code(image);
    REQUIRE_OK(code);
    manifest.modules.push_back({*code, image.size()});
  }

  // The graph "step" with its memory, and whatever else was added.
  void write() {
    if (manifest.modules.empty()) add_module(kPtxImage);
    add_piece(saved, {0, 0, kPage}, bytes_of(x));
    saved.memory.push_back({{1, 0, kPage}, std::nullopt});
    set_expected(saved, {{{0, 0, kPage}, bytes_of(x)},
                         {{0, kPage, kPage}, bytes_of(y_after)},
                         {{1, 0, kPage}, bytes_of(expect_z.empty() ? y_after : expect_z)}});
    add_graph(saved, graph);
    finish();
  }
  void finish() { REQUIRE_OK(writer().finish(manifest)); }

  saved::FolderWriter& writer() {
    if (!writer_.has_value()) {
      absl::StatusOr<saved::FolderWriter> created = saved::FolderWriter::create(path());
      REQUIRE_OK(created);
      writer_ = *std::move(created);
    }
    return *writer_;
  }
  std::string path() const { return folder_.path + "/step.bundle"; }
  std::uint64_t address() const { return address_; }

  saved::Manifest manifest;
  saved::SavedGraph saved;
  ir::GraphIr graph;
  std::vector<float> x, y_after, expect_z;  // the last empty: as y

 private:
  TemporaryFolder folder_;
  std::uint64_t address_;
  std::optional<saved::FolderWriter> writer_;
};

}  // namespace cgrt::testing
