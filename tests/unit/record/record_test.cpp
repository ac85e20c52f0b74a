#include "cgrt/record/record.h"

#include <string>

#include "support/catch.h"

namespace cgrt::record {
namespace {

// The example of the record format in the repository's own documents.
Record example() {
  return {.program = "graphbench",
          .command = "graphbench --json h200.json",
          .commit = "abc123",
          .measures = {"runtime/cgrt/exec", "tools/graphbench"},
          .date = "2026-11-21",
          .device = "NVIDIA H200",
          .driver = "580.159",
          .cuda = "13.0",
          .rows = {{.name = "exec_launch",
                    .params = {{"nodes", 1000}},
                    .unit = "us",
                    .median = 2.41,
                    .p95 = 2.6,
                    .samples = 101,
                    .baseline = "raw cuGraphLaunch",
                    .baseline_median = 2.39,
                    .speedup = 0.99,
                    .spread = 0.02},
                   {.name = "nodes_made", .unit = "count", .median = 12345, .p95 = 12345, .samples = 1}}};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a record as JSON has one row a line and no baseline where there is none", "[record]") {
  CHECK(to_json(example()) == R"({
  "schema": "cgrt-record-1",
  "program": "graphbench",
  "command": "graphbench --json h200.json",
  "commit": "abc123",
  "measures": ["runtime/cgrt/exec", "tools/graphbench"],
  "date": "2026-11-21",
  "device": "NVIDIA H200",
  "driver": "580.159",
  "cuda": "13.0",
  "simulated": false,
  "rows": [
    {"name": "exec_launch", "params": {"nodes": 1000}, "unit": "us", "median": 2.41, "p95": 2.6, "samples": 101, "baseline": "raw cuGraphLaunch", "baseline_median": 2.39, "speedup": 0.99, "spread": 0.02},
    {"name": "nodes_made", "params": {}, "unit": "count", "median": 12345, "p95": 12345, "samples": 1}
  ]
}
)");
}

TEST_CASE("figures are written with five digits", "[record]") {
  Record record = example();
  record.rows[0].median = 2.4149999999;
  record.rows[0].p95 = 123456.7;

  CHECK(contains(to_json(record), R"("median": 2.415, "p95": 123460,)"));
}

TEST_CASE("of a simulated record the times are null in JSON and counts stay", "[record]") {
  Record record = example();
  record.simulated = true;

  const std::string json = to_json(record);

  CHECK(contains(json, R"("simulated": true)"));
  CHECK(contains(json, R"("unit": "us", "median": null, "p95": null, "samples": 101)"));
  CHECK(contains(json, R"("baseline_median": null, "speedup": null, "spread": null)"));
  CHECK(contains(json, R"("unit": "count", "median": 12345)"));
}

TEST_CASE("a table is aligned, with the machine in its heading", "[record]") {
  CHECK(to_table(example()) == R"(graphbench on NVIDIA H200, driver 580.159, CUDA 13.0, 2026-11-21, commit abc123

name         nodes  median    p95  unit   samples  baseline           baseline median  speedup  spread
exec_launch   1000    2.41    2.6  us         101  raw cuGraphLaunch             2.39     0.99    0.02
nodes_made           12345  12345  count        1
)");
}

TEST_CASE("a table without baselines has no columns for them", "[record]") {
  Record record = example();
  record.rows.erase(record.rows.begin());

  CHECK(contains(to_table(record), "\nname        median    p95  unit   samples\n"));
}

TEST_CASE("a column of the caller's stands at the end of a table", "[record]") {
  const std::string table = to_table(example(), {"verdict", {"ok", "no limit"}});

  CHECK(contains(table, "speedup  spread  verdict\n"));
  CHECK(contains(table, "   0.99    0.02  ok\n"));
  CHECK(contains(table, "  no limit\n"));
}

TEST_CASE("a simulated table says the word instead of times and rates", "[record]") {
  Record record = example();
  record.simulated = true;
  record.rows.push_back({.name = "copy", .unit = "GB/s", .median = 4296});
  record.rows.push_back({.name = "add", .unit = "ns/node", .median = 238});

  const std::string table = to_table(record);

  CHECK(contains(table, "simulated: no figure here is a time"));
  CHECK_FALSE(contains(table, "2.41"));
  CHECK_FALSE(contains(table, "4296"));
  CHECK_FALSE(contains(table, "238"));
  CHECK(contains(table, "12345"));
}

TEST_CASE("in CSV every parameter is a column and text is quoted where it must be", "[record]") {
  Record record = example();
  record.rows[1].params = {{"width", 8}};
  record.rows[1].name = "made, \"all\"";

  CHECK(to_csv(record) == R"(name,nodes,width,unit,median,p95,samples,baseline,baseline_median,speedup,spread
exec_launch,1000,,us,2.41,2.6,101,raw cuGraphLaunch,2.39,0.99,0.02
"made, ""all""",,8,count,12345,12345,1,,,,
)");
}

}  // namespace
}  // namespace cgrt::record
