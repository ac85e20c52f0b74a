// tests/golden/step.bundle, byte for byte. CGRT_UPDATE_GOLDEN=1 rewrites it.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "cgrt/saved/folder.h"
#include "cgrt/saved/text.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/saved/bundles.h"

namespace cgrt::saved {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = std::string(CGRT_TEST_DATA_DIR) + "/golden/step.bundle";

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder).string()] = testing::content_of(entry.path().string());
  }
  return files;
}

TEST_CASE("the golden bundle is written as the bytes that are there", "[saved][golden]") {
  const testing::ScratchPath path("golden_bundle");
  if (std::getenv("CGRT_UPDATE_GOLDEN") != nullptr) {
    fs::remove_all(kGolden);
    testing::write_small_bundle(kGolden);
  }

  testing::write_small_bundle(path.string());

  CHECK(files_of(path.string()) == files_of(kGolden));
}

TEST_CASE("the golden bundle is shown as the expected text", "[saved][golden]") {
  const absl::StatusOr<Folder> folder = Folder::open(kGolden);
  REQUIRE_OK(folder);

  const absl::StatusOr<std::string> text = to_text(*folder);

  REQUIRE_OK(text);
  if (std::getenv("CGRT_UPDATE_GOLDEN") != nullptr) testing::set_content(kGolden + ".txt", *text);
  CHECK(*text == testing::content_of(kGolden + ".txt"));
  CHECK(summary(folder->manifest()) == "2 graphs, 1 module (188 bytes), 3 pieces of memory (12.4 kB)");
}

TEST_CASE("an empty bundle is shown, too", "[saved][text]") {
  const testing::ScratchPath path("empty_bundle");
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);
  REQUIRE_OK(writer->finish({}));
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);

  const absl::StatusOr<std::string> text = to_text(*folder);

  REQUIRE_OK(text);
  CHECK(text->find("0 graphs, 0 modules (0 bytes), 0 pieces of memory (0 bytes)\n") == 0);
}

}  // namespace
}  // namespace cgrt::saved
