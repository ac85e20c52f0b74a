// run.json: what is read from it, and files that somebody broke.
#include "cgrt/inspect/recorded_run.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::inspect {
namespace {

constexpr char kRun[] = R"({
  "schema": "cgrt-run-1",
  "processes": [
    {
      "program": "python3",
      "process": 803,
      "kernel_launches": 60,
      "notes": "",
      "graphs": [
        {"file": null, "why_no_file": "fewer nodes than --min-nodes", "nodes": 1, "launches": 2, "uploads": 0, "updates": 0, "refused_updates": 0, "set_params": 0, "thread": 803},
        {"file": "python3-803-1.cgrt.json", "nodes": 14, "launches": 10, "uploads": 1, "updates": 3, "refused_updates": 0, "set_params": 4, "thread": 803, "streams": ["0x55d0a0", "legacy"], "has_more_streams": true, "destroyed_before": 2, "memory": [18446744073709551615, 0], "has_user_objects": true, "host_data": [4], "stack_nodes": [5, 6]}
      ]
    }
  ]
})";

TEST_CASE("a run is read", "[inspect][json][run]") {
  const absl::StatusOr<RecordedRun> run = run_from_json(kRun);

  REQUIRE_OK(run);
  REQUIRE(run->processes.size() == 1);
  CHECK(run->processes[0].program == "python3");
  CHECK(run->processes[0].process == 803);
  REQUIRE(run->processes[0].execs.size() == 2);
  CHECK(run->processes[0].execs[0].file.empty());
  const RecordedExec& exec = run->processes[0].execs[1];
  CHECK(exec.number == 1);
  CHECK(exec.file == "python3-803-1.cgrt.json");
  CHECK(exec.nodes == 14);
  CHECK(exec.launches == 10);
  CHECK(exec.uploads == 1);
  CHECK(exec.updates == 3);
  CHECK(exec.set_params == 4);
  CHECK(exec.streams == std::vector<std::string>{"0x55d0a0", "legacy"});
  CHECK(exec.has_more_streams);
  CHECK(exec.destroyed_before == 2);
  CHECK(exec.memory == std::vector<std::uint64_t>{18446744073709551615u, 0});
  CHECK(exec.has_user_objects);
  CHECK(exec.host_data == std::vector<std::uint32_t>{4});
  CHECK(exec.stack_nodes == std::vector<std::uint32_t>{5, 6});
}

TEST_CASE("a run without what newer recorders tell is read", "[inspect][json][run]") {
  const absl::StatusOr<RecordedRun> run = run_from_json(
      R"({"schema": "cgrt-run-1", "processes": [{"program": "a", "process": 1, "graphs": [
        {"file": "a-1-0.cgrt.json", "nodes": 1, "launches": 2, "uploads": 0, "updates": 0, "set_params": 0}]}]})");

  REQUIRE_OK(run);
  CHECK(run->processes[0].execs[0].launches == 2);
  CHECK(run->processes[0].execs[0].streams.empty());
  CHECK(run->processes[0].execs[0].memory.empty());
}

TEST_CASE("a run that is broken is refused with the place", "[inspect][json][run]") {
  struct Broken {
    const char *text, *with, *error;
  };
  const auto [text, with, error] = GENERATE(
      Broken{"cgrt-run-1", "cgrt-run-2",
             "not what graphdump run writes: schema: expected \"cgrt-run-1\", found the string \"cgrt-run-2\""},
      Broken{"\"schema\"", "\"scheme\"", "not what graphdump run writes: the key \"schema\" is missing"},
      Broken{"\"processes\"", "\"process\"", "the key \"processes\" is missing"},
      Broken{"\"graphs\"", "\"graph\"", "processes[0]: the key \"graphs\" is missing"},
      Broken{"\"process\": 803", "\"process\": -9223372036854775809",
             "processes[0].process: expected an integer from -9223372036854775808 to 9223372036854775807, found the "
             "number -9.22337e+18"},
      Broken{"\"program\": \"python3\"", "\"program\": 3", "processes[0].program: expected a string, found 3"},
      Broken{"\"file\": null, ", "", "processes[0].graphs[0]: the key \"file\" is missing"},
      Broken{"python3-803-1.cgrt.json", "../etc/passwd",
             "processes[0].graphs[1].file: expected the name of a file beside run.json, without folder, found the "
             "string \"../etc/passwd\""},
      Broken{"python3-803-1.cgrt.json", "..",
             "processes[0].graphs[1].file: expected the name of a file beside run.json, without folder, found the "
             "string \"..\""},
      Broken{"python3-803-1.cgrt.json", "a\\u0000b",
             "processes[0].graphs[1].file: expected the name of a file beside run.json, without folder, found the "
             "string \"a\\x00b\""},
      Broken{"\"python3-803-1.cgrt.json\"", "\"\"",
             "processes[0].graphs[1].file: expected the name of a file beside run.json, without folder, found the "
             "string \"\""},
      Broken{"\"file\": null", "\"file\": \"python3-803-1.cgrt.json\"",
             "processes[0].graphs[1].file: the file is that of an earlier graph, too"},
      Broken{"\"launches\": 10", "\"launches\": 18446744073709551616",
             "processes[0].graphs[1].launches: expected an integer from 0 to 18446744073709551615, found the number "
             "1.84467e+19"},
      Broken{"\"launches\": 10", "\"launches\": -1",
             "processes[0].graphs[1].launches: expected an integer from 0 to 18446744073709551615, found -1"},
      Broken{"[4]", "[4294967296]",
             "processes[0].graphs[1].host_data[0]: expected an integer from 0 to 4294967295, found 4294967296"},
      Broken{"[5, 6]", "5", "processes[0].graphs[1].stack_nodes: expected an array, found 5"},
      Broken{"\"legacy\"", "null", "processes[0].graphs[1].streams[1]: expected a string, found null"},
      Broken{"\"has_more_streams\": true", "\"has_more_streams\": 1",
             "processes[0].graphs[1].has_more_streams: expected true or false, found 1"},
      Broken{"\"process\": 803,", "\"process\": 803, \"process\": 803,",
             "processes[0]: key \"process\" appears twice"});
  INFO(with);

  const absl::StatusOr<RecordedRun> run = run_from_json(absl::StrReplaceAll(kRun, {{text, with}}));

  REQUIRE_FALSE(run.ok());
  CHECK(run.status().message() == error);
}

TEST_CASE("a run that is cut off anywhere, or nested deeply, is refused", "[inspect][json][run][hostile]") {
  const std::string text = kRun;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const absl::StatusOr<RecordedRun> run = run_from_json(std::string_view(text).substr(0, length));
    REQUIRE_FALSE(run.ok());
    REQUIRE(absl::StartsWith(run.status().message(), "not JSON: line "));
  }
  const std::string deep = absl::StrReplaceAll(text, {{"[4]", std::string(100000, '[')}});
  CHECK(run_from_json(deep).status().message() == "processes[0].graphs: nested deeper than 64 levels");
}

TEST_CASE("a run with any one byte changed gives a run or an error", "[inspect][json][run][hostile]") {
  int runs = 0, errors = 0;
  const std::string text = kRun;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {static_cast<char>(text[i] ^ 1), static_cast<char>(text[i] ^ 0x80), '9', '"', '-', '\0'}) {
      std::string mutant = text;
      mutant[i] = byte;
      const absl::StatusOr<RecordedRun> run = run_from_json(mutant);
      REQUIRE(run.ok() == run.status().message().empty());
      ++(run.ok() ? runs : errors);
    }
  }
  CHECK(runs > 0);
  CHECK(errors > 0);
}

TEST_CASE("a run that is not there is refused by name", "[inspect][run]") {
  CHECK(read_run("/nowhere/run.json").status().message() ==
        "/nowhere/run.json: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace cgrt::inspect
