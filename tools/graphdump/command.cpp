#include "command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/json.h"
#include "cgrt/ir/describe.h"
#include "cgrt/saved/folder.h"

namespace graphdump {

namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string names_of(const cgrt::saved::Manifest& manifest) {
  return absl::StrJoin(manifest.graphs, ", ",
                       [](std::string* out, const cgrt::saved::SavedGraph& graph) { *out += graph.name; });
}

absl::StatusOr<cgrt::ir::GraphIr> read_only_graph(const std::string& path) {
  CGRT_ASSIGN_OR_RETURN(const cgrt::saved::Folder folder, cgrt::saved::Folder::open(path));
  const std::vector<cgrt::saved::SavedGraph>& graphs = folder.manifest().graphs;
  if (graphs.size() == 1) return folder.read_graph(graphs[0]);
  if (graphs.empty()) return absl::NotFoundError(absl::StrCat(path, ": the bundle has no graphs"));
  return absl::InvalidArgumentError(absl::StrCat(path, ": the bundle has several graphs: ", names_of(folder.manifest()),
                                                 ". Name one: ", path, ":", graphs[0].name));
}

absl::StatusOr<cgrt::ir::GraphIr> read_named_graph(const std::string& path, const std::string& name) {
  CGRT_ASSIGN_OR_RETURN(const cgrt::saved::Folder folder, cgrt::saved::Folder::open(path));
  if (const cgrt::saved::SavedGraph* graph = folder.find_graph(name)) return folder.read_graph(*graph);
  return absl::NotFoundError(
      absl::StrCat(path, ": the bundle has no graph \"", name, "\"; it has ", names_of(folder.manifest())));
}

}  // namespace

absl::StatusOr<cgrt::ir::GraphIr> read_graph(const std::string& file) {
  if (file == "-") return cgrt::inspect::read_stream(stdin, "standard input");
  if (is_folder(file)) return read_only_graph(file);
  const std::size_t colon = file.rfind(':');
  if (colon != std::string::npos && is_folder(file.substr(0, colon))) {
    return read_named_graph(file.substr(0, colon), file.substr(colon + 1));
  }
  return cgrt::inspect::read_file(file);
}

bool is_bundle(const std::string& folder) {
  std::error_code ignored;
  return is_folder(folder) && fs::exists(fs::path(folder) / cgrt::saved::kManifestFile, ignored);
}

int print(const std::string& out, const std::string& err, ExitStatus status) {
  std::fwrite(err.data(), 1, err.size(), stderr);
  const bool is_written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  if (is_written || errno == EPIPE) return status;
  std::fprintf(stderr, "graphdump: standard output cannot be written: %s\n", std::strerror(errno));
  return kError;
}

int fail(std::string_view sentence) {
  return print("", absl::StrCat("graphdump: ", cgrt::ir::printable(sentence), "\n"), kError);
}

int fail(const absl::Status& status) {
  return fail(std::string_view(status.message().data(), status.message().size()));
}

void Lines::add(const std::string& line) {
  ++count_;
  if (limit_ == 0 || count_ <= limit_) absl::StrAppend(&text_, line, "\n");
}

std::string Lines::finish() && {
  if (limit_ != 0 && count_ > limit_) {
    absl::StrAppend(&text_, "and ", cgrt::counted(count_ - limit_, "line"), " more: --limit 0 prints all\n");
  }
  return std::move(text_);
}

}  // namespace graphdump
