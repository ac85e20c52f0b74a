#include "cgrt/inspect/recorded_run.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/inspect/json_cursor.h"

namespace cgrt::inspect {

// In front of the names of all processes: one folder holds them.
using Names = std::set<std::string>;

// Null where no file was written.
static absl::Status read_file_name(const JsonCursor& exec, Names& names, std::string& out) {
  const std::optional<JsonCursor> cursor = exec.member("file");
  if (!cursor.has_value()) return exec.missing("file");
  if (std::holds_alternative<std::nullptr_t>(cursor->value().data)) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(read(*cursor, out));
  const bool is_plain = !out.empty() && out != "." && out != ".." && out.find_first_of({"/\0", 2}) == out.npos;
  if (!is_plain) return cursor->mismatch("the name of a file beside run.json, without folder");
  if (!names.insert(out).second) return cursor->error("the file is that of an earlier graph, too");
  return absl::OkStatus();
}

static absl::Status read_exec(const JsonCursor& cursor, Names& names, RecordedExec& out) {
  out.number = cursor.index();
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_file_name(cursor, names, out.file));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "nodes", out.nodes));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "launches", out.launches));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "uploads", out.uploads));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "updates", out.updates));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "set_params", out.set_params));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "streams", out.streams));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "has_more_streams", out.has_more_streams));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "destroyed_before", out.destroyed_before));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "memory", out.memory));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "has_user_objects", out.has_user_objects));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "host_data", out.host_data));
  return read_optional(cursor, "stack_nodes", out.stack_nodes);
}

static absl::Status read_process(const JsonCursor& cursor, Names& names, RecordedProcess& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "program", out.program));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "process", out.process));
  const std::optional<JsonCursor> graphs = cursor.member("graphs");
  if (!graphs.has_value()) return cursor.missing("graphs");
  CGRT_ASSIGN_OR_RETURN(const std::size_t length, graphs->expect_array());
  out.execs.resize(length);
  for (std::size_t i = 0; i < length; ++i) {
    CGRT_RETURN_IF_ERROR(read_exec(graphs->element(i), names, out.execs[i]));
  }
  return absl::OkStatus();
}

static absl::Status check_run_schema(const JsonCursor& root) {
  std::string schema;
  CGRT_RETURN_IF_ERROR(root.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(root, "schema", schema));
  if (schema == kRunSchema) return absl::OkStatus();
  return root.member("schema")->mismatch(absl::StrCat("\"", kRunSchema, "\""));
}

absl::StatusOr<RecordedRun> run_from_json(std::string_view text) {
  CGRT_ASSIGN_OR_RETURN(const JsonValue tree, parse_json(text));
  try {
    const JsonCursor root(tree);
    if (const absl::Status status = check_run_schema(root); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("not what graphdump run writes: ", status.message()));
    }
    const std::optional<JsonCursor> processes = root.member("processes");
    if (!processes.has_value()) return root.missing("processes");
    CGRT_ASSIGN_OR_RETURN(const std::size_t length, processes->expect_array());
    RecordedRun run;
    run.processes.resize(length);
    Names names;
    for (std::size_t i = 0; i < length; ++i) {
      CGRT_RETURN_IF_ERROR(read_process(processes->element(i), names, run.processes[i]));
    }
    return run;
  } catch (const std::exception&) {  // memory: the tree itself did fit
    return absl::ResourceExhaustedError("not enough memory for this run");
  }
}

absl::StatusOr<RecordedRun> read_run(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return file_error(errno, path, "cannot be opened");
  CGRT_ASSIGN_OR_RETURN(const std::string text, read_text(file.get(), path));
  absl::StatusOr<RecordedRun> run = run_from_json(text);
  if (run.ok()) return run;
  return absl::Status(run.status().code(), absl::StrCat(path, ": ", run.status().message()));
}

}  // namespace cgrt::inspect
