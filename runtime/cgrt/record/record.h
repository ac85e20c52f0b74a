// Record: measured figures in the one format that all of cgrt's benchmarks and samples write, so
// that tables, plots and checks read one thing.
//
//   Record record{.program = "graphbench", .measures = {"runtime/cgrt/exec"}};
//   record.rows.push_back({.name = "exec_launch", .params = {{"nodes", 1000}}, .unit = "us", .median = 2.41});
//   CGRT_RETURN_IF_ERROR(write_text_file("h200.json", record::to_json(record)));
//
// Values; no thread contract beyond that. Formats are stable: the same record gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cgrt::record {

// `baseline` names it. `speedup` is baseline over own for times and own over baseline for rates: more is better.
// It is the median of the ratios of pairs measured alternately; `spread` is half the distance between the quartiles of
// those ratios over their median. Without a baseline the last three are 0 and are not written.
struct Row {
  std::string name = {};  // the `= {}` let rows be written with some fields only, without a warning
  std::vector<std::pair<std::string, std::int64_t>> params = {};
  std::string unit = {};
  double median = 0, p95 = 0;
  std::int64_t samples = 0;
  std::string baseline = {};
  double baseline_median = 0, speedup = 0, spread = 0;
};

struct Record {
  std::string program = {}, command = {}, commit = {};
  std::vector<std::string> measures = {};  // paths in the repository whose change makes the record old
  std::string date = {}, device = {}, driver = {}, cuda = {};
  bool simulated = false;
  std::vector<Row> rows = {};
};

// One row a line; figures have five digits. When simulated, every figure that would be a GPU time or
// comes from one (units ns, us, ms, s; ns/node; rates) is null here and the word "simulated" below.
std::string to_json(const Record& record);

// A column of the caller's, after the others: a cell per row of the record.
struct TableColumn {
  std::string heading = {};
  std::vector<std::string> cells = {};
};

// An aligned table: one line per row, a heading with device, driver and date.
std::string to_table(const Record& record, const TableColumn& extra = {});

// Comma-separated, one heading line; parameters become columns.
std::string to_csv(const Record& record);

}  // namespace cgrt::record
