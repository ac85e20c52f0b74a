// graphdump show: a graph as text, JSON or a picture.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include "cgrt/base/text_file.h"
#include "cgrt/inspect/dot.h"
#include "cgrt/inspect/html.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/text.h"
#include "cgrt/saved/text.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

// The picture that Graphviz draws of a graph in DOT. Files and not pipes: dot reads all before it writes, and what it
// writes is printed as the other formats are.
absl::StatusOr<std::string> svg_of(const std::string& dot) {
  const File in(std::tmpfile()), out(std::tmpfile());
  if (in == nullptr || out == nullptr || std::fwrite(dot.data(), 1, dot.size(), in.get()) != dot.size() ||
      std::fflush(in.get()) != 0) {
    return cgrt::file_error(errno, "a temporary file for dot", "cannot be written");
  }
  std::rewind(in.get());

  char program[] = "dot", format[] = "-Tsvg";
  char* const arguments[] = {program, format, nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, program, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return absl::NotFoundError(
        "Graphviz draws the picture, and its program dot is not on PATH: install the package graphviz");
  }
  if (error != 0) return cgrt::file_error(error, "dot", "cannot be run");

  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(WIFEXITED(status) ? "dot failed with exit status " + std::to_string(WEXITSTATUS(status))
                                                 : "dot ended by signal " + std::to_string(WTERMSIG(status)));
  }
  std::rewind(out.get());
  return cgrt::read_text(out.get(), "the output of dot");
}

std::string text_of(const cgrt::ir::GraphIr& graph, const ShowOptions& options) {
  return cgrt::inspect::to_text(graph, {.fold = !options.all, .short_names = !options.full_names});
}

// What is in a bundle, and its graph where there is one.
int show_bundle(const ShowOptions& options) {
  const absl::StatusOr<cgrt::saved::Folder> folder = cgrt::saved::Folder::open(options.file);
  if (!folder.ok()) return fail(folder.status());
  absl::StatusOr<std::string> text = cgrt::saved::to_text(*folder);
  if (!text.ok()) return fail(text.status());
  if (folder->manifest().graphs.size() == 1) {
    const absl::StatusOr<cgrt::ir::GraphIr> graph = folder->read_graph(folder->manifest().graphs[0]);
    if (!graph.ok()) return fail(graph.status());
    text->append("\n").append(text_of(*graph, options));
  }
  return print(*text, "", kOk);
}

}  // namespace

int show(const ShowOptions& options) {
  if (options.format == "text" && is_bundle(options.file)) return show_bundle(options);
  const absl::StatusOr<cgrt::ir::GraphIr> graph = read_graph(options.file);
  if (!graph.ok()) return fail(graph.status());
  if (options.format == "json") return print(cgrt::inspect::to_json(*graph), "", kOk);
  if (options.format == "dot") return print(cgrt::inspect::to_dot(*graph), "", kOk);
  if (options.format == "svg") {
    const absl::StatusOr<std::string> picture = svg_of(cgrt::inspect::to_dot(*graph));
    return picture.ok() ? print(*picture, "", kOk) : fail(picture.status());
  }
  if (options.format == "html") return print(cgrt::inspect::to_html(*graph), "", kOk);
  return print(text_of(*graph, options), "", kOk);
}

}  // namespace graphdump
