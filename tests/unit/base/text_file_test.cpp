#include "cgrt/base/text_file.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt {
namespace {

using testing::StatusIs;

TEST_CASE("a text file is replaced", "[base][file]") {
  const std::string path = "record_test_" + std::to_string(getpid()) + ".txt";
  REQUIRE_OK(write_text_file(path, "a longer text"));

  REQUIRE_OK(write_text_file(path, "short"));

  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  CHECK(content.str() == "short");
}

TEST_CASE("a file that cannot be written is named", "[base][file]") {
  CHECK_THAT(write_text_file("no_such_folder/a.json", ""),
             StatusIs(absl::StatusCode::kNotFound, "no_such_folder/a.json"));
  CHECK_THAT(write_text_file("/", ""), StatusIs(absl::StatusCode::kFailedPrecondition, "/: cannot be opened"));
}

TEST_CASE("a full disk is an error", "[base][file]") {
  CHECK_THAT(write_text_file("/dev/full", "text"), StatusIs(absl::StatusCode::kResourceExhausted, "/dev/full"));
}

TEST_CASE("the name of a file in a folder that is there has no error", "[base][file]") {
  CHECK(file_name_error("a.json") == "");
  CHECK(file_name_error("/tmp/a.json") == "");
}

TEST_CASE("a folder, no name and a folder that is not there are errors of a file's name", "[base][file]") {
  CHECK(file_name_error("/tmp") == "\"/tmp\" is not the name of a file");
  CHECK(file_name_error("/tmp/") == "\"/tmp/\" is not the name of a file");
  CHECK(file_name_error("") == "\"\" is not the name of a file");
  CHECK(file_name_error("nowhere/a.json") == "\"nowhere/a.json\" cannot be written: there is no folder nowhere");
}

}  // namespace
}  // namespace cgrt
