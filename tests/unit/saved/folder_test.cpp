#include "cgrt/saved/folder.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cgrt/inspect/json.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/saved/bundles.h"

namespace cgrt::saved {
namespace {

namespace fs = std::filesystem;

using cgrt::testing::add_objects_of_small_bundle;
using cgrt::testing::content_of;
using cgrt::testing::kScaleImage;
using cgrt::testing::pattern;
using cgrt::testing::ScratchPath;
using cgrt::testing::set_content;
using cgrt::testing::small_graph;
using cgrt::testing::small_manifest;
using cgrt::testing::StatusIs;
using cgrt::testing::write_small_bundle;

// Of the small bundle: places inside of it.
std::string place(const char* folder, Hash hash) { return std::string(folder) + "/" + to_string(hash); }
std::string code_place() { return place("code", small_manifest().modules[0].code); }
std::string piece_place() { return place("memory", *small_manifest().graphs[0].memory[0].hash); }
std::string expected_place() { return place("memory", small_manifest().graphs[1].expected.hashes); }
std::string graph_place(const std::string& name) {
  return "graphs/" + name + "." + to_string(small_manifest().graphs[0].file) + ".cgrt.json";
}

struct Read {
  absl::Status graph, code, piece, expected;
};
Read read_of(const Folder& folder) {
  const SavedGraph& decode = *folder.find_graph("decode");
  std::vector<std::byte> piece(4096);
  return {folder.read_graph(decode).status(), folder.read_code(folder.manifest().modules[0]).status(),
          folder.read_piece(decode.memory[0], piece), folder.read_expected(decode.expected).status()};
}

std::set<std::string> files_in(const std::string& path) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    names.insert(fs::relative(entry.path(), path).string());
  }
  return names;
}

TEST_CASE("a bundle read back is the one written", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());

  const absl::StatusOr<Folder> folder = Folder::open(path.string());

  REQUIRE_OK(folder);
  CHECK(folder->path() == path.string());
  CHECK(folder->manifest() == small_manifest());
  const SavedGraph* decode = folder->find_graph("decode");
  REQUIRE(decode != nullptr);
  CHECK(folder->find_graph("encode") == nullptr);
  const absl::StatusOr<ir::GraphIr> graph = folder->read_graph(*decode);
  REQUIRE_OK(graph);
  CHECK(*graph == small_graph());
  const absl::StatusOr<std::string> code = folder->read_code(folder->manifest().modules[0]);
  REQUIRE_OK(code);
  CHECK(*code == kScaleImage);
  const absl::StatusOr<std::vector<std::uint64_t>> expected = folder->read_expected(decode->expected);
  REQUIRE_OK(expected);
  CHECK(*expected == std::vector<std::uint64_t>{11, 22, 33});
  CHECK(folder->verify().empty());
}

TEST_CASE("pieces are read into memory of the caller's", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  const std::vector<Piece>& pieces = folder->find_graph("decode")->memory;

  std::vector<std::byte> content(4096, std::byte{9}), zeros(8192, std::byte{9}), shorter(100);
  REQUIRE_OK(folder->read_piece(pieces[0], content));
  REQUIRE_OK(folder->read_piece(pieces[1], zeros));

  CHECK(content == pattern(4096, 1));
  CHECK(zeros == std::vector<std::byte>(8192));
  CHECK_THAT(folder->read_piece(pieces[0], shorter),
             StatusIs(absl::StatusCode::kInvalidArgument, "A piece of 4096 bytes is to be read into 100."));
}

TEST_CASE("a graph without what is expected has no file of it", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);

  const auto expected = folder->read_expected(folder->find_graph("prefill")->expected);

  REQUIRE_OK(expected);
  CHECK(expected->empty());
}

TEST_CASE("files of a bundle are for their owner alone", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());

  std::vector<std::string> all = {path.string()};
  for (const std::string& name : files_in(path.string())) all.push_back(path / name);

  CHECK(all.size() == 12);  // the bundle, three folders, the manifest, two graphs, the code, four of memory
  for (const std::string& name : all) {
    struct stat status = {};
    REQUIRE(::lstat(name.c_str(), &status) == 0);
    INFO(name);
    CHECK((status.st_mode & 07777) == (S_ISDIR(status.st_mode) ? 0700 : 0600));
  }
}

TEST_CASE("what is there already is not written again, unless it is damaged", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const std::string kept = path / expected_place(), damaged = path / piece_place();
  struct stat before = {}, after = {};
  REQUIRE(::stat(kept.c_str(), &before) == 0);
  std::string content = content_of(damaged);
  content[17] = static_cast<char>(content[17] + 1);
  set_content(damaged, content);

  write_small_bundle(path.string());

  REQUIRE(::stat(kept.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  CHECK(folder->verify().empty());
}

TEST_CASE("a bundle that is written again and interrupted stays as it was", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());

  {
    absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
    REQUIRE_OK(writer);
    ir::GraphIr other = small_graph();
    other.nodes.pop_back();
    other.edges.pop_back();
    REQUIRE_OK(writer->add_graph("decode", other));
    REQUIRE_OK(writer->add_memory(pattern(4096, 7)));
  }

  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  CHECK(folder->manifest() == small_manifest());
  CHECK(folder->verify().empty());
}

TEST_CASE("a folder with an interrupted first write has no bundle, and can be written to", "[saved][folder]") {
  const ScratchPath path("bundle");
  {
    absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
    REQUIRE_OK(writer);
    add_objects_of_small_bundle(*writer);
  }
  set_content(path / "memory/.unfinished-1-1", "half");

  CHECK_THAT(Folder::open(path.string()).status(),
             StatusIs(absl::StatusCode::kNotFound, path / "manifest.json: cannot be opened"));
  write_small_bundle(path.string());
  CHECK_OK(Folder::open(path.string()));
}

TEST_CASE("a manifest that does not fit to its files is not written", "[saved][folder]") {
  const ScratchPath path("bundle");
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);
  add_objects_of_small_bundle(*writer);
  Manifest invalid = small_manifest(), without_graph = small_manifest(), without_piece = small_manifest(),
           without_kernel = small_manifest();
  invalid.graphs[0].launch = 0;
  without_graph.graphs[0].name = "encode";
  without_piece.graphs[0].memory[0].hash->low ^= 1;
  without_kernel.graphs[0].node_kernels.clear();

  CHECK_THAT(writer->finish(invalid), StatusIs(absl::StatusCode::kInvalidArgument, "is of launch 0"));
  CHECK_THAT(writer->finish(without_graph), StatusIs(absl::StatusCode::kDataLoss, ": is not there, and the manifest"));
  CHECK_THAT(writer->finish(without_piece), StatusIs(absl::StatusCode::kDataLoss, ": is not there, and the manifest"));
  CHECK_THAT(writer->finish(without_kernel),
             StatusIs(absl::StatusCode::kInvalidArgument, "has 1 kernel node, and the manifest kernels of 0."));

  CHECK_FALSE(fs::exists(path / "manifest.json"));
  CHECK_OK(writer->finish(small_manifest()));
}

TEST_CASE("only names that can be files become graphs", "[saved][folder]") {
  const ScratchPath path("bundle");
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);

  CHECK_THAT(writer->add_graph("../decode", small_graph()).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "\"../decode\" is no name of a graph"));
  CHECK(files_in(path.string()) == std::set<std::string>{"graphs", "code", "memory"});
}

TEST_CASE("what no manifest names can be deleted, and nothing else is", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);
  REQUIRE_OK(writer->add_memory(pattern(512, 9)));
  set_content(path / "memory/.unfinished-1-1", "half");
  set_content(path / "code/notes.txt", "of the owner");
  Manifest manifest = small_manifest();
  manifest.graphs.pop_back();
  REQUIRE_OK(writer->finish(manifest));

  REQUIRE_OK(writer->remove_unused(manifest));

  CHECK(files_in(path.string()) == std::set<std::string>{"manifest.json", "graphs", "code", "memory", code_place(),
                                                         piece_place(), graph_place("prefill"), "code/notes.txt"});
  CHECK_OK(writer->add_memory(pattern(512, 9)));
  CHECK(files_in(path.string()).contains(place("memory", hash_of(pattern(512, 9)))));
}

TEST_CASE("folders of others are not written to", "[saved][folder]") {
  const ScratchPath path("bundle");
  fs::create_directory(path.string());
  set_content(path / "thesis.tex", "");
  CHECK_THAT(FolderWriter::create(path.string()).status(),
             StatusIs(absl::StatusCode::kAlreadyExists, "holds \"thesis.tex\", which is none of a bundle's"));

  fs::rename(path / "thesis.tex", path / "manifest.json");
  CHECK_THAT(FolderWriter::create(path.string()).status(),
             StatusIs(absl::StatusCode::kAlreadyExists, "holds a manifest that cannot be read"));

  fs::remove(path / "manifest.json");
  CHECK_OK(FolderWriter::create(path.string()));
  CHECK_THAT(FolderWriter::create(path / "no/folder").status(),
             StatusIs(absl::StatusCode::kNotFound, "no/folder: cannot be made"));
  set_content(path / "file", "");
  CHECK_THAT(FolderWriter::create(path / "file").status(),
             StatusIs(absl::StatusCode::kFailedPrecondition, "file: cannot be opened as a folder"));
}

TEST_CASE("what is no bundle is not opened", "[saved][folder]") {
  const ScratchPath path("bundle");
  CHECK_THAT(Folder::open(path.string()).status(),
             StatusIs(absl::StatusCode::kNotFound, ": cannot be opened as a folder: No such file"));

  fs::create_directory(path.string());
  CHECK_THAT(Folder::open(path.string()).status(),
             StatusIs(absl::StatusCode::kNotFound, "manifest.json: cannot be opened: No such file"));

  set_content(path / "manifest.json", "{}");
  CHECK_THAT(Folder::open(path.string()).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "manifest.json: the key \"schema\" is missing"));

  fs::remove(path / "manifest.json");
  fs::create_directory(path / "manifest.json");
  CHECK_THAT(Folder::open(path.string()).status(),
             StatusIs(absl::StatusCode::kDataLoss, "manifest.json: is no regular file"));

  fs::remove(path / "manifest.json");
  set_content(path / "manifest.json", "");
  fs::resize_file(path / "manifest.json", (std::uint64_t{1} << 30) + 1);  // nothing is on the disk
  CHECK_THAT(Folder::open(path.string()).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "manifest.json: has 1073741825 bytes; at most"));
}

// What reading says, and verify(), once `damage` has been done to a file.
void check_damage(const std::string& place, const std::string& message,
                  const std::function<void(const std::string&)>& damage) {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  damage(path / place);
  INFO(place);

  const Read read = read_of(*folder);

  const auto check = [&](const std::string& one, const absl::Status& status) {
    if (place != one) {
      CHECK_OK(status);
      return;
    }
    CHECK_THAT(status, StatusIs(absl::StatusCode::kDataLoss, (path / place) + ": " + message));
  };
  check(graph_place("decode"), read.graph);
  check(code_place(), read.code);
  check(piece_place(), read.piece);
  check(expected_place(), read.expected);
  const std::vector<std::string> found = folder->verify();
  REQUIRE(found.size() == 1);
  CHECK(found[0].find((path / place) + ": " + message) == 0);
}

std::vector<std::string> object_places() { return {code_place(), piece_place(), expected_place()}; }

TEST_CASE("a file that is missing is named", "[saved][folder]") {
  for (const std::string& place : object_places()) {
    check_damage(place, "is not there, and the manifest names it", [](const auto& file) { fs::remove(file); });
  }
  check_damage(graph_place("decode"), "is not there, and the manifest names it",
               [](const auto& file) { fs::remove(file); });
}

TEST_CASE("a file that is cut short or longer is named", "[saved][folder]") {
  for (const std::string& place : object_places()) {
    check_damage(place, "has 5 bytes, and the manifest says ", [](const auto& file) { fs::resize_file(file, 5); });
    // Longer than memory: nothing is taken for it.
    check_damage(place, "has 1099511627776 bytes, and the manifest says ",
                 [](const auto& file) { fs::resize_file(file, std::uint64_t{1} << 40); });
  }
  check_damage(graph_place("decode"), "has not the hash of its name: it is damaged",
               [](const auto& file) { fs::resize_file(file, 5); });
}

TEST_CASE("a file with other bytes is named", "[saved][folder]") {
  const auto flip = [](const std::string& file) {
    std::string content = content_of(file);
    content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
    set_content(file, content);
  };
  for (const std::string& place : object_places()) check_damage(place, "has the hash ", flip);
  check_damage(graph_place("decode"), "has not the hash of its name: it is damaged", flip);
}

TEST_CASE("other bytes are not noticed where nobody asks", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  set_content(path / piece_place(), std::string(4096, 'x'));
  std::vector<std::byte> content(4096);

  CHECK_OK(folder->read_piece(folder->manifest().graphs[0].memory[0], content, HashCheck::kSkip));

  CHECK(content == std::vector<std::byte>(4096, std::byte{'x'}));
}

TEST_CASE("links, folders and pipes are no files of a bundle", "[saved][folder]") {
  const ScratchPath elsewhere("elsewhere");
  for (const std::string& place : {code_place(), piece_place(), expected_place(), graph_place("decode")}) {
    check_damage(place, "is a symbolic link; a bundle has none", [&](const std::string& file) {
      fs::remove(elsewhere.string());
      fs::rename(file, elsewhere.string());  // with the right content
      fs::create_symlink(elsewhere.string(), file);
    });
    check_damage(place, "is no regular file", [](const std::string& file) {
      fs::remove(file);
      fs::create_directory(file);
    });
    check_damage(place, "is no regular file", [](const std::string& file) {
      fs::remove(file);
      REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    });
  }
}

TEST_CASE("a folder of a bundle that is a link leads nowhere", "[saved][folder]") {
  const ScratchPath path("bundle"), elsewhere("elsewhere");
  write_small_bundle(path.string());
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  fs::rename(path / "memory", elsewhere.string());
  fs::create_directory_symlink(elsewhere.string(), path / "memory");

  CHECK_THAT(read_of(*folder).piece,
             StatusIs(absl::StatusCode::kFailedPrecondition, "memory: cannot be opened as a folder"));
  CHECK(folder->verify().size() == 4);
}

TEST_CASE("the bundle itself can be a link", "[saved][folder]") {
  const ScratchPath path("bundle"), link("link");
  write_small_bundle(path.string());
  fs::create_directory_symlink(path.string(), link.string());

  const absl::StatusOr<Folder> folder = Folder::open(link.string());

  REQUIRE_OK(folder);
  CHECK(folder->verify().empty());
}

TEST_CASE("all that is wrong is listed", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const absl::StatusOr<Folder> folder = Folder::open(path.string());
  REQUIRE_OK(folder);
  fs::remove(path / graph_place("prefill"));
  fs::remove(path / code_place());
  set_content(path / piece_place(), std::string(4096, 'x'));

  const std::vector<std::string> found = folder->verify();

  REQUIRE(found.size() == 3);
  CHECK(found[0] == (path / graph_place("prefill")) + ": is not there, and the manifest names it");
  CHECK(found[1] == (path / code_place()) + ": is not there, and the manifest names it");
  CHECK(found[2].find((path / piece_place()) + ": has the hash ") == 0);
}

TEST_CASE("a graph file with the right hash is parsed and validated all the same", "[saved][folder]") {
  const ScratchPath path("bundle");
  write_small_bundle(path.string());
  const auto with_graph = [&](const std::string& text) {
    Manifest manifest = small_manifest();
    manifest.graphs[0].file = hash_of(std::as_bytes(std::span(text)));
    set_content(path / ("graphs/prefill." + to_string(manifest.graphs[0].file) + ".cgrt.json"), text);
    set_content(path / "manifest.json", to_json(manifest));
    const absl::StatusOr<Folder> folder = Folder::open(path.string());
    REQUIRE_OK(folder);
    return folder->read_graph(folder->manifest().graphs[0]).status();
  };
  ir::GraphIr unplaced = small_graph();
  unplaced.allocations.push_back({.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = 16});

  CHECK_THAT(with_graph("digraph dot {}"), StatusIs(absl::StatusCode::kInvalidArgument, "cgrt.json: not JSON: line 1"));
  CHECK_THAT(with_graph(inspect::to_json(unplaced)),
             StatusIs(absl::StatusCode::kInvalidArgument,
                      ".cgrt.json: graph \"prefill\": has 3 allocations, and the manifest places of 2."));
}

TEST_CASE("a file that cannot be written to its end leaves nothing", "[saved][folder]") {
  const ScratchPath path("bundle");
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit low = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);

  const absl::Status status = writer->add_memory(pattern(4096, 1)).status();

  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(status, StatusIs(absl::StatusCode::kOutOfRange, ": cannot be written: File too large"));
  CHECK(files_in(path / "memory").empty());
  CHECK_OK(writer->add_memory(pattern(4096, 1)));
  CHECK(files_in(path / "memory").size() == 1);
}

TEST_CASE("a file whose folder is gone is not made", "[saved][folder]") {
  const ScratchPath path("bundle");
  absl::StatusOr<FolderWriter> writer = FolderWriter::create(path.string());
  REQUIRE_OK(writer);
  fs::remove(path / "memory");

  CHECK_THAT(writer->add_memory(pattern(64, 1)).status(),
             StatusIs(absl::StatusCode::kNotFound, "memory: cannot be opened as a folder"));

  CHECK(files_in(path.string()) == std::set<std::string>{"graphs", "code"});
  fs::create_directory(path / "memory");
  CHECK_OK(writer->add_memory(pattern(64, 1)));
  CHECK(files_in(path / "memory").size() == 1);
}

}  // namespace
}  // namespace cgrt::saved
