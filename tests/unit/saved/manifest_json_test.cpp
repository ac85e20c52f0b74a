#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cgrt/saved/folder.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/saved/bundles.h"

namespace cgrt::saved {
namespace {

using cgrt::testing::small_manifest;
using cgrt::testing::StatusIs;

// `text` with the hash that it should have.
std::string with_hash(std::string text) {
  const std::string begin = "  \"hash\": \"";
  const std::size_t at = text.rfind(begin);
  REQUIRE(at != std::string::npos);
  const std::string_view hashed = std::string_view(text).substr(0, at);
  return text.replace(at + begin.size(), 32, to_string(hash_of(std::as_bytes(std::span(hashed)))));
}

// The manifest with the first `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_json(small_manifest());
  const std::size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return with_hash(text.replace(at, from.size(), to));
}

void check_refused(const std::string& text, const std::string& message) {
  CHECK_THAT(manifest_from_json(text).status(), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

TEST_CASE("a manifest read back equals the one written", "[saved][json]") {
  const Manifest manifest = small_manifest();

  const absl::StatusOr<Manifest> again = manifest_from_json(to_json(manifest));

  REQUIRE_OK(again);
  CHECK(*again == manifest);
  CHECK(to_json(*again) == to_json(manifest));
}

TEST_CASE("an empty manifest is one, too", "[saved][json]") {
  const absl::StatusOr<Manifest> again = manifest_from_json(to_json(Manifest{}));

  REQUIRE_OK(again);
  CHECK(*again == Manifest{});
}

TEST_CASE("the manifest is written as the schema's description says", "[saved][json]") {
  const std::string text = to_json(small_manifest());

  for (const char* line : {
           "  \"schema\": \"cgrt-bundle\",\n  \"version\": 1,\n",
           "  \"machine\": {\"device\": \"test device\", \"compute_capability\": [9, 0], \"multiprocessors\": 132, "
           "\"driver\": 13000, \"stack_bytes\": 1024, \"printf_bytes\": 1048576, \"heap_bytes\": 8388608},\n",
           "    {\"id\": 1, \"kind\": \"device\", \"address\": \"0x210000000000\", \"bytes\": 64, \"variable\": "
           "\"table\", \"module\": 0},\n",
           "        {\"id\": 0, \"symbol\": \"_Z5scalePfS_f\", \"module\": 0}\n",
           "        {\"id\": 0, \"symbol\": \"_Z5scalePfS_f\", \"module\": 0, \"max_dynamic_shared_bytes\": 65536, "
           "\"preferred_carveout_percent\": -1, \"allows_large_clusters\": true}\n",
           "      \"node_kernels\": [0],\n",
           "        {\"range\": [0, 4096, 8192]},\n",
           "        {\"name\": \"token\", \"range\": [0, 0, 8], \"dtype\": \"int64\", \"shape\": [1]}\n",
           "        {\"name\": \"scores\", \"range\": [2, 0, 8]}\n",
       }) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("keys that a reader does not know are skipped", "[saved][json]") {
  const absl::StatusOr<Manifest> read =
      manifest_from_json(changed("\"modules\": [", "\"colour\": {\"red\": [1]},\n  \"modules\": ["));

  REQUIRE_OK(read);
  CHECK(*read == small_manifest());
}

TEST_CASE("a manifest of another schema or version is refused by name", "[saved][json]") {
  check_refused(changed("cgrt-bundle", "cgrt-graph"), "schema: expected the string \"cgrt-bundle\", found the string");
  check_refused(changed("\"version\": 1", "\"version\": 2"), "is of version 2; this reader knows versions 1 to 1");
  check_refused(changed("\"version\": 1", "\"version\": 0"), "is of version 0");
  check_refused("{}", "the key \"schema\" is missing");
  check_refused("[]", "expected an object, found an array of 0");
  check_refused("", "not JSON: line 1, column 1");
}

TEST_CASE("a manifest that was changed has another hash", "[saved][json]") {
  std::string text = to_json(small_manifest());
  const std::size_t at = text.find("0x210000000000");

  text[at + 4] = '2';

  CHECK_THAT(manifest_from_json(text).status(),
             StatusIs(absl::StatusCode::kDataLoss, ": it is damaged, or was changed by hand"));
}

TEST_CASE("a manifest ends with its hash", "[saved][json]") {
  const std::string text = to_json(small_manifest());

  std::string without = text.substr(0, text.rfind(",\n  \"hash\"")) + "\n}\n";
  check_refused(without, "does not end with the line of its hash");
  check_refused(text + "\n", "does not end with the line of its hash");
  check_refused(text.substr(0, text.size() / 2), "not JSON: line ");
}

TEST_CASE("values that a manifest cannot have are refused with their path", "[saved][json]") {
  check_refused(changed("\"kind\": \"pinned host\"", "\"kind\": \"flash\""),
                "blocks[2].kind: expected a kind of memory, found the string \"flash\"");
  for (const char* address : {"\"7f0000000000\"", "\"0x\"", "\"0x7g\"", "\"0x10000000000000000\"", "\"0x-1\"", "1"}) {
    check_refused(changed("\"0x200000000000\"", address), "blocks[0].address: expected a");
  }
  check_refused(changed("\"id\": 1", "\"id\": 2"), "blocks[1]: has the id 2; ids are positions");
  check_refused(changed("\"code\": \"", "\"code\": \"0"),
                "modules[0].code: expected 32 hexadecimal digits in lower case, found the string");
  check_refused(changed("[9, 0]", "[9]"), "machine.compute_capability: expected 2 integers, found an array of 1");
  check_refused(changed("{\"range\": [0, 0, 4096]", "{\"range\": [0, 0]"),
                "graphs[0].memory[0].range: expected a block, an offset and a number of bytes, found an array of 2");
  check_refused(changed("\"bytes\": 64", "\"bytes\": -64"), "blocks[1].bytes: expected an integer from 0 to ");
  check_refused(changed("\"bytes\": 64", "\"bytes\": 1e30"), "blocks[1].bytes: expected an integer from 0 to ");
  check_refused(changed("\"launch\": 3", "\"launch\": \"3\""), "graphs[1].launch: expected an integer");
  check_refused(changed(", \"module\": 0}\n      ]", "}\n      ]"),
                "graphs[0].kernels[0]: the key \"module\" is missing");
  check_refused(changed(", \"variable\": \"table\", \"module\": 0", ", \"variable\": \"table\""),
                "blocks[1]: the key \"module\" is missing");
  check_refused(changed("\"max_dynamic_shared_bytes\": 65536", "\"max_dynamic_shared_bytes\": null"),
                "graphs[1].kernels[0].max_dynamic_shared_bytes: expected an integer");
}

TEST_CASE("what is read is valid", "[saved][json]") {
  check_refused(changed("\"node_kernels\": [0]", "\"node_kernels\": [1]"),
                "graph \"prefill\": kernel node 0 runs kernel 1; the graph has 1 kernel.");
}

}  // namespace
}  // namespace cgrt::saved
