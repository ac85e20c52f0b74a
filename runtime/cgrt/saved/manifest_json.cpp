// to_json and manifest_from_json: bundle_schema.md describes the file.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/json_cursor.h"
#include "cgrt/inspect/json_members.h"
#include "cgrt/saved/folder.h"

namespace cgrt::saved {
namespace {

using inspect::JsonCursor;
using inspect::member_unless;
using inspect::read_optional;
using inspect::read_parsed;
using inspect::read_required;

// The last member of the file: the hash of all that stands before its line.
constexpr std::string_view kHashBegin = "  \"hash\": \"", kHashEnd = "\"\n}\n";
constexpr std::size_t kHashDigits = 32;

template <class Value>
void member_if(JsonWriter& json, std::string_view key, const std::optional<Value>& value) {
  if (value.has_value()) json.member(key, *value);
}

std::string address_text(std::uint64_t address) { return absl::StrCat("0x", absl::Hex(address)); }

std::optional<std::uint64_t> parse_address(std::string_view text) {
  constexpr std::string_view kPrefix = "0x";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  std::uint64_t address = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), address, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return address;
}

void write(JsonWriter& json, const Range& range) {
  json.begin_array(JsonLayout::kOneLine);
  json.value(range.block);
  json.value(range.offset);
  json.value(range.bytes);
  json.end_array();
}

void write_ranges(JsonWriter& json, std::string_view key, const std::vector<Range>& ranges) {
  json.key(key);
  json.begin_array();
  for (const Range& range : ranges) write(json, range);
  json.end_array();
}

void write(JsonWriter& json, const Machine& machine) {
  const Machine standard;
  json.begin_object(JsonLayout::kOneLine);
  json.member("device", machine.device);
  json.key("compute_capability");
  json.begin_array();
  json.value(machine.major);
  json.value(machine.minor);
  json.end_array();
  json.member("multiprocessors", machine.multiprocessors);
  json.member("driver", machine.driver);
  member_unless(json, "stack_bytes", machine.stack_bytes, standard.stack_bytes);
  member_unless(json, "printf_bytes", machine.printf_bytes, standard.printf_bytes);
  member_unless(json, "heap_bytes", machine.heap_bytes, standard.heap_bytes);
  json.end_object();
}

void write(JsonWriter& json, const Module& module, std::size_t id) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("id", id);
  json.member("code", to_string(module.code));
  json.member("bytes", module.bytes);
  json.end_object();
}

void write(JsonWriter& json, const Block& block, std::size_t id) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("id", id);
  json.member("kind", ir::to_string(block.kind));
  json.member("address", address_text(block.address));
  json.member("bytes", block.bytes);
  if (!block.variable.empty()) {
    json.member("variable", block.variable);
    json.member("module", block.module);
  }
  json.end_object();
}

void write(JsonWriter& json, const Kernel& kernel, std::size_t id) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("id", id);
  json.member("symbol", kernel.symbol);
  json.member("module", kernel.module);
  member_if(json, "max_dynamic_shared_bytes", kernel.max_dynamic_shared_bytes);
  member_if(json, "preferred_carveout_percent", kernel.preferred_carveout_percent);
  member_unless(json, "allows_large_clusters", kernel.allows_large_clusters, false);
  json.end_object();
}

void write(JsonWriter& json, const Slices& slices, std::size_t) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("node", slices.node);
  json.member("source_rows", slices.source_rows);
  json.member("destination_rows", slices.destination_rows);
  json.end_object();
}

void write(JsonWriter& json, const Piece& piece, std::size_t) {
  json.begin_object(JsonLayout::kOneLine);
  json.key("range");
  write(json, piece.range);
  if (piece.hash.has_value()) json.member("hash", to_string(*piece.hash));
  json.end_object();
}

void write(JsonWriter& json, const Buffer& buffer, std::size_t) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("name", buffer.name);
  json.key("range");
  write(json, buffer.range);
  member_unless(json, "dtype", buffer.dtype, std::string());
  if (!buffer.shape.empty()) {
    json.key("shape");
    json.begin_array();
    for (const std::uint64_t size : buffer.shape) json.value(size);
    json.end_array();
  }
  json.end_object();
}

void write(JsonWriter& json, const AddressWords& words) {
  json.begin_object();
  json.member("offsets", to_string(words.offsets));
  json.key("blocks");
  json.begin_array();
  for (const auto& [block, count] : words.blocks) {
    json.begin_array(JsonLayout::kOneLine);
    json.value(block);
    json.value(count);
    json.end_array();
  }
  json.end_array();
  json.end_object();
}

void write(JsonWriter& json, const SavedGraph& graph, std::size_t);

template <class Item>
void write_list(JsonWriter& json, std::string_view key, const std::vector<Item>& items) {
  json.key(key);
  json.begin_array();
  for (std::size_t i = 0; i < items.size(); ++i) write(json, items[i], i);
  json.end_array();
}

template <class Item>
void write_list_if_any(JsonWriter& json, std::string_view key, const std::vector<Item>& items) {
  if (!items.empty()) write_list(json, key, items);
}

void write(JsonWriter& json, const SavedGraph& graph, std::size_t) {
  json.begin_object();
  json.member("name", graph.name);
  json.member("file", to_string(graph.file));
  member_unless(json, "launch", graph.launch, std::uint64_t{1});
  write_list(json, "kernels", graph.kernels);
  json.key("node_kernels");
  json.begin_array(JsonLayout::kOneLine);
  for (const std::uint32_t kernel : graph.node_kernels) json.value(kernel);
  json.end_array();
  write_ranges(json, "allocations", graph.allocations);
  write_list_if_any(json, "slices", graph.slices);
  write_list(json, "memory", graph.memory);
  if (!graph.expected.ranges.empty()) {
    json.key("expected");
    json.begin_object();
    json.member("hashes", to_string(graph.expected.hashes));
    write_ranges(json, "ranges", graph.expected.ranges);
    json.end_object();
  }
  write_list_if_any(json, "inputs", graph.inputs);
  write_list_if_any(json, "outputs", graph.outputs);
  if (!graph.changed_outside.empty()) write_ranges(json, "changed_outside", graph.changed_outside);
  if (!graph.dead.empty()) write_ranges(json, "dead", graph.dead);
  member_unless(json, "movable", graph.is_movable, false);
  member_unless(json, "why_not_movable", graph.why_not_movable, std::string());
  if (!graph.addresses.blocks.empty()) {
    json.key("addresses");
    write(json, graph.addresses);
  }
  json.end_object();
}

}  // namespace

// The overloads of read() are not in an unnamed namespace: argument-dependent lookup from the templates of
// json_cursor.h would not find them there.

static absl::Status read(const JsonCursor& cursor, Hash& out) {
  return read_parsed(cursor, parse_hash, "32 hexadecimal digits in lower case", out);
}

static absl::Status read(const JsonCursor& cursor, Range& out) {
  const absl::StatusOr<std::size_t> length = cursor.expect_array();
  if (!length.ok() || *length != 3) return cursor.mismatch("a block, an offset and a number of bytes");
  CGRT_RETURN_IF_ERROR(inspect::read(cursor.element(0), out.block));
  CGRT_RETURN_IF_ERROR(inspect::read(cursor.element(1), out.offset));
  return inspect::read(cursor.element(2), out.bytes);
}

static absl::Status read(const JsonCursor& cursor, Machine& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "device", out.device));
  const std::optional<JsonCursor> capability = cursor.member("compute_capability");
  if (!capability.has_value()) return cursor.missing("compute_capability");
  const absl::StatusOr<std::size_t> length = capability->expect_array();
  if (!length.ok() || *length != 2) return capability->mismatch("2 integers");
  CGRT_RETURN_IF_ERROR(inspect::read(capability->element(0), out.major));
  CGRT_RETURN_IF_ERROR(inspect::read(capability->element(1), out.minor));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "multiprocessors", out.multiprocessors));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "driver", out.driver));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "stack_bytes", out.stack_bytes));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "printf_bytes", out.printf_bytes));
  return read_optional(cursor, "heap_bytes", out.heap_bytes);
}

// Of an element of a list: its position.
static absl::Status read_id(const JsonCursor& cursor) {
  std::size_t id = 0;
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "id", id));
  if (id == cursor.index()) return absl::OkStatus();
  return cursor.error(absl::StrCat("has the id ", id, "; ids are positions"));
}

static absl::Status read(const JsonCursor& cursor, Module& out) {
  CGRT_RETURN_IF_ERROR(read_id(cursor));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "code", out.code));
  return read_required(cursor, "bytes", out.bytes);
}

static absl::Status read(const JsonCursor& cursor, Block& out) {
  CGRT_RETURN_IF_ERROR(read_id(cursor));
  const std::optional<JsonCursor> kind = cursor.member("kind"), address = cursor.member("address");
  if (!kind.has_value()) return cursor.missing("kind");
  if (!address.has_value()) return cursor.missing("address");
  CGRT_RETURN_IF_ERROR(read_parsed(*kind, ir::parse_memory_kind, "a kind of memory", out.kind));
  CGRT_RETURN_IF_ERROR(read_parsed(*address, parse_address, "an address as \"0x7f0000000000\"", out.address));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "bytes", out.bytes));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "variable", out.variable));
  return out.variable.empty() ? absl::OkStatus() : read_required(cursor, "module", out.module);
}

template <class Value>
static absl::Status read_if_there(const JsonCursor& cursor, std::string_view key, std::optional<Value>& out) {
  const std::optional<JsonCursor> found = cursor.member(key);
  return found.has_value() ? inspect::read(*found, out.emplace()) : absl::OkStatus();
}

static absl::Status read(const JsonCursor& cursor, Kernel& out) {
  CGRT_RETURN_IF_ERROR(read_id(cursor));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "symbol", out.symbol));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "module", out.module));
  CGRT_RETURN_IF_ERROR(read_if_there(cursor, "max_dynamic_shared_bytes", out.max_dynamic_shared_bytes));
  CGRT_RETURN_IF_ERROR(read_if_there(cursor, "preferred_carveout_percent", out.preferred_carveout_percent));
  return read_optional(cursor, "allows_large_clusters", out.allows_large_clusters);
}

static absl::Status read(const JsonCursor& cursor, Slices& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "node", out.node));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "source_rows", out.source_rows));
  return read_required(cursor, "destination_rows", out.destination_rows);
}

static absl::Status read(const JsonCursor& cursor, Piece& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "range", out.range));
  const std::optional<JsonCursor> hash = cursor.member("hash");
  return hash.has_value() ? read(*hash, out.hash.emplace()) : absl::OkStatus();
}

static absl::Status read(const JsonCursor& cursor, ExpectedMemory& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "hashes", out.hashes));
  return read_required(cursor, "ranges", out.ranges);
}

static absl::Status read(const JsonCursor& cursor, AddressWords::InBlock& out) {
  const absl::StatusOr<std::size_t> length = cursor.expect_array();
  if (!length.ok() || *length != 2) return cursor.mismatch("a block and a number of addresses");
  CGRT_RETURN_IF_ERROR(inspect::read(cursor.element(0), out.block));
  return inspect::read(cursor.element(1), out.count);
}

static absl::Status read(const JsonCursor& cursor, AddressWords& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "offsets", out.offsets));
  return read_required(cursor, "blocks", out.blocks);
}

static absl::Status read(const JsonCursor& cursor, Buffer& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "name", out.name));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "range", out.range));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "dtype", out.dtype));
  return read_optional(cursor, "shape", out.shape);
}

static absl::Status read(const JsonCursor& cursor, SavedGraph& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "name", out.name));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "file", out.file));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "launch", out.launch));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "kernels", out.kernels));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "node_kernels", out.node_kernels));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "allocations", out.allocations));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "slices", out.slices));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "memory", out.memory));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "expected", out.expected));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "inputs", out.inputs));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "outputs", out.outputs));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "changed_outside", out.changed_outside));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "dead", out.dead));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "movable", out.is_movable));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "why_not_movable", out.why_not_movable));
  return read_optional(cursor, "addresses", out.addresses);
}

static absl::Status read_head(const JsonCursor& root) {
  std::string schema;
  int version = 0;
  CGRT_RETURN_IF_ERROR(root.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(root, "schema", schema));
  if (schema != kBundleSchema) {
    return root.member("schema")->mismatch(absl::StrCat("the string \"", kBundleSchema, "\""));
  }
  CGRT_RETURN_IF_ERROR(read_required(root, "version", version));
  if (version >= 1 && version <= kBundleVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("is of version ", version, "; this reader knows versions 1 to ", kBundleVersion));
}

static absl::Status check_hash(std::string_view text) {
  constexpr std::size_t kLine = kHashBegin.size() + kHashDigits + kHashEnd.size();
  if (text.size() < kLine || !text.substr(text.size() - kLine).starts_with(kHashBegin) || !text.ends_with(kHashEnd)) {
    return absl::InvalidArgumentError("does not end with the line of its hash");
  }
  const std::string_view hashed = text.substr(0, text.size() - kLine);
  const std::string_view digits = text.substr(hashed.size() + kHashBegin.size(), kHashDigits);
  const std::string found = to_string(hash_of(std::as_bytes(std::span(hashed))));
  if (found == digits) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("has the hash ", found, " and says ", std::string(digits),
                                          ": it is damaged, or was changed by hand"));
}

std::string to_json(const Manifest& manifest) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kBundleSchema);
  json.member("version", kBundleVersion);
  json.key("machine");
  write(json, manifest.machine);
  write_list(json, "modules", manifest.modules);
  write_list(json, "blocks", manifest.blocks);
  write_list(json, "graphs", manifest.graphs);
  json.end_object();
  std::string text = std::move(json).finish();
  constexpr std::string_view kEnd = "\n}\n";
  text.replace(text.size() - kEnd.size(), kEnd.size(), ",\n");
  const std::string hash = to_string(hash_of(std::as_bytes(std::span(text))));
  return text.append(kHashBegin).append(hash).append(kHashEnd);
}

absl::StatusOr<Manifest> manifest_from_json(std::string_view text) {
  CGRT_ASSIGN_OR_RETURN(const inspect::JsonValue tree, inspect::parse_json(text));
  const JsonCursor root(tree);
  CGRT_RETURN_IF_ERROR(read_head(root));
  CGRT_RETURN_IF_ERROR(check_hash(text));
  Manifest manifest;
  CGRT_RETURN_IF_ERROR(read_required(root, "machine", manifest.machine));
  CGRT_RETURN_IF_ERROR(read_required(root, "modules", manifest.modules));
  CGRT_RETURN_IF_ERROR(read_required(root, "blocks", manifest.blocks));
  CGRT_RETURN_IF_ERROR(read_required(root, "graphs", manifest.graphs));
  CGRT_RETURN_IF_ERROR(validate(manifest));
  return manifest;
}

}  // namespace cgrt::saved
