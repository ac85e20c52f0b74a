// A small bundle for tests, and scratch folders.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/inspect/json.h"
#include "cgrt/saved/folder.h"
#include "support/catch.h"
#include "support/scale_image.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::testing {

// A path with nothing there, and whatever is there at the end is deleted.
class ScratchPath {
 public:
  explicit ScratchPath(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("cgrt_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ScratchPath(const ScratchPath&) = delete;
  ScratchPath& operator=(const ScratchPath&) = delete;
  ~ScratchPath() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string string() const { return path_.string(); }
  std::string operator/(const std::string& inside) const { return (path_ / inside).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void set_content(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::vector<std::byte> pattern(std::size_t count, int seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i * 31 + i / 256 + static_cast<std::size_t>(seed));
  return bytes;
}

// Two graphs, small_graph() both, in device memory, a variable and pinned memory. The hashes are those of what
// write_small_bundle writes.
inline saved::Manifest small_manifest() {
  const auto hash_of = [](const std::vector<std::byte>& bytes) { return saved::hash_of(bytes); };
  const std::string graph = inspect::to_json(small_graph()), image = kScaleImage;
  saved::Manifest manifest;
  manifest.machine = {.device = "test device",
                      .major = 9,
                      .minor = 0,
                      .multiprocessors = 132,
                      .driver = 13000,
                      .stack_bytes = 1024,
                      .printf_bytes = 1 << 20,
                      .heap_bytes = 8 << 20};
  manifest.modules = {{.code = saved::hash_of(std::as_bytes(std::span(image))), .bytes = image.size()}};
  manifest.blocks = {
      {.kind = ir::MemoryKind::kDevice, .address = 0x200000000000, .bytes = 2 << 20},
      {.kind = ir::MemoryKind::kDevice, .address = 0x210000000000, .bytes = 64, .variable = "table", .module = 0},
      {.kind = ir::MemoryKind::kPinnedHost, .address = 0x220000000000, .bytes = 8192}};
  const std::vector<std::uint64_t> expected = {11, 22, 33};
  saved::SavedGraph decode{
      .name = "decode",
      .file = saved::hash_of(std::as_bytes(std::span(graph))),
      .launch = 3,
      .kernels = {{.symbol = "_Z5scalePfS_f",
                   .module = 0,
                   .max_dynamic_shared_bytes = 65536,
                   .preferred_carveout_percent = -1,
                   .allows_large_clusters = true}},
      .node_kernels = {0},
      .allocations = {{0, 0, 4096}, {2, 0, 4096}},
      .memory = {{{0, 0, 4096}, hash_of(pattern(4096, 1))},
                 {{0, 4096, 8192}, {}},
                 {{1, 0, 64}, hash_of(pattern(64, 2))},
                 {{2, 0, 8192}, hash_of(pattern(8192, 3))}},
      .expected = {{{0, 0, 4097}, {2, 0, 4096}}, saved::hash_of(std::as_bytes(std::span(expected)))},
      .inputs = {{"token", {0, 0, 8}, "int64", {1}}},
      .outputs = {{"logits", {0, 256, 1024}, "float32", {1, 256}}, {"scores", {2, 0, 8}, "", {}}},
      .changed_outside = {{0, 512, 16}},
      .dead = {{0, 16384, 4096}}};
  saved::SavedGraph prefill = decode;
  prefill.name = "prefill";
  prefill.launch = 1;
  prefill.kernels[0] = {.symbol = "_Z5scalePfS_f", .module = 0};
  prefill.memory.resize(1);
  prefill.expected = {};
  prefill.inputs = {};
  prefill.outputs = {};
  prefill.changed_outside = {};
  prefill.dead = {};
  manifest.graphs = {std::move(prefill), std::move(decode)};
  return manifest;
}

inline void add_objects_of_small_bundle(saved::FolderWriter& writer) {
  REQUIRE_OK(writer.add_code(kScaleImage));
  REQUIRE_OK(writer.add_memory(pattern(4096, 1)));
  REQUIRE_OK(writer.add_memory(pattern(64, 2)));
  REQUIRE_OK(writer.add_memory(pattern(8192, 3)));
  const std::vector<std::uint64_t> expected = {11, 22, 33};
  REQUIRE_OK(writer.add_expected(expected));
  for (const char* name : {"prefill", "decode"}) REQUIRE_OK(writer.add_graph(name, small_graph()));
}

inline void write_small_bundle(const std::string& path) {
  absl::StatusOr<saved::FolderWriter> writer = saved::FolderWriter::create(path);
  REQUIRE_OK(writer);
  add_objects_of_small_bundle(*writer);
  REQUIRE_OK(writer->finish(small_manifest()));
}

}  // namespace cgrt::testing
