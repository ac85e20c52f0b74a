#include "cgrt/record/record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cgrt/base/json_writer.h"

namespace cgrt::record {
namespace {

constexpr char kRecordSchema[] = "cgrt-record-1";

// "us", "ns/node", "GB/s".
bool is_device_time(std::string_view unit) {
  const std::string_view what = unit.substr(0, unit.find('/'));
  return what == "ns" || what == "us" || what == "ms" || what == "s" || unit.ends_with("/s");
}

bool is_hidden(const Record& record, const Row& row) { return record.simulated && is_device_time(row.unit); }

bool has_baseline(const Row& row) { return !row.baseline.empty(); }

std::string digits(double value, int precision) {
  char buffer[64];
  const std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, precision);
  return std::string(buffer, end.ptr);
}

// Clocks do not give more than five digits, and a file of seventeen is one that nobody reads.
double rounded(double value) {
  const std::string text = digits(value, 5);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

// For people: four digits, and no exponent where a figure of this library has none.
std::string to_text(double value) {
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e15) return absl::StrCat(std::llround(value));
  return digits(value, 4);
}

std::string figure(const Record& record, const Row& row, double value) {
  return is_hidden(record, row) ? "simulated" : to_text(value);
}

void write_figure(JsonWriter& json, const Record& record, const Row& row, std::string_view key, double value) {
  json.key(key);
  if (is_hidden(record, row)) return json.null();
  json.value(rounded(value));
}

void write(JsonWriter& json, const Record& record, const Row& row) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("name", row.name);
  json.key("params");
  json.begin_object();
  for (const auto& [name, value] : row.params) json.member(name, value);
  json.end_object();
  json.member("unit", row.unit);
  write_figure(json, record, row, "median", row.median);
  write_figure(json, record, row, "p95", row.p95);
  json.member("samples", row.samples);
  if (has_baseline(row)) {
    json.member("baseline", row.baseline);
    write_figure(json, record, row, "baseline_median", row.baseline_median);
    write_figure(json, record, row, "speedup", row.speedup);
    write_figure(json, record, row, "spread", row.spread);
  }
  json.end_object();
}

// In the order in which rows first name them.
std::vector<std::string> parameter_names(const Record& record) {
  std::vector<std::string> names;
  for (const Row& row : record.rows) {
    for (const auto& [name, value] : row.params) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::string parameter(const Row& row, const std::string& name) {
  for (const auto& [key, value] : row.params) {
    if (key == name) return absl::StrCat(value);
  }
  return "";
}

using Cells = std::vector<std::string>;

// Text to the left, figures to the right; no line ends in blanks.
std::string aligned(const std::vector<Cells>& lines, const std::vector<bool>& is_figure) {
  std::vector<std::size_t> widths(is_figure.size(), 0);
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - line[i].size(), ' ');
      absl::StrAppend(&text, i == 0 ? "" : "  ", is_figure[i] ? padding : "", line[i], is_figure[i] ? "" : padding);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string heading(const Record& record) {
  std::string text = record.program;
  const auto add = [&](const char* before, const std::string& part) {
    if (!part.empty()) absl::StrAppend(&text, before, part);
  };
  add(" on ", record.device);
  add(", driver ", record.driver);
  add(", CUDA ", record.cuda);
  add(", ", record.date);
  add(", commit ", record.commit);
  if (record.simulated) text += ", simulated: no figure here is a time";
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csv_line(const Cells& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) absl::StrAppend(&line, i == 0 ? "" : ",", csv_cell(cells[i]));
  return line + '\n';
}

}  // namespace

std::string to_json(const Record& record) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kRecordSchema);
  json.member("program", record.program);
  json.member("command", record.command);
  json.member("commit", record.commit);
  json.key("measures");
  json.begin_array(JsonLayout::kOneLine);
  for (const std::string& path : record.measures) json.value(path);
  json.end_array();
  json.member("date", record.date);
  json.member("device", record.device);
  json.member("driver", record.driver);
  json.member("cuda", record.cuda);
  json.member("simulated", record.simulated);
  json.key("rows");
  json.begin_array();
  for (const Row& row : record.rows) write(json, record, row);
  json.end_array();
  json.end_object();
  return std::move(json).finish();
}

std::string to_table(const Record& record, const TableColumn& extra) {
  const std::vector<std::string> parameters = parameter_names(record);
  const bool any_baseline = std::any_of(record.rows.begin(), record.rows.end(), has_baseline);
  Cells head = {"name"};
  std::vector<bool> is_figure = {false};
  const auto column = [&](const std::string& name, bool figures) {
    head.push_back(name);
    is_figure.push_back(figures);
  };
  for (const std::string& name : parameters) column(name, true);
  for (const char* name : {"median", "p95"}) column(name, true);
  column("unit", false);
  column("samples", true);
  if (any_baseline) {
    column("baseline", false);
    for (const char* name : {"baseline median", "speedup", "spread"}) column(name, true);
  }
  if (!extra.heading.empty()) column(extra.heading, false);

  std::vector<Cells> lines = {head};
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    const Row& row = record.rows[i];
    Cells line = {row.name};
    for (const std::string& name : parameters) line.push_back(parameter(row, name));
    line.insert(line.end(),
                {figure(record, row, row.median), figure(record, row, row.p95), row.unit, absl::StrCat(row.samples)});
    if (has_baseline(row)) {
      line.insert(line.end(), {row.baseline, figure(record, row, row.baseline_median), figure(record, row, row.speedup),
                               figure(record, row, row.spread)});
    } else if (any_baseline) {
      line.resize(line.size() + 4);
    }
    if (!extra.heading.empty()) line.push_back(i < extra.cells.size() ? extra.cells[i] : "");
    lines.push_back(std::move(line));
  }
  return absl::StrCat(heading(record), "\n\n", aligned(lines, is_figure));
}

std::string to_csv(const Record& record) {
  const std::vector<std::string> parameters = parameter_names(record);
  Cells head = {"name"};
  head.insert(head.end(), parameters.begin(), parameters.end());
  head.insert(head.end(), {"unit", "median", "p95", "samples", "baseline", "baseline_median", "speedup", "spread"});
  std::string text = csv_line(head);
  for (const Row& row : record.rows) {
    const auto cell = [&](double value) {
      return is_hidden(record, row) ? std::string("simulated") : digits(value, 5);
    };
    Cells line = {row.name};
    for (const std::string& name : parameters) line.push_back(parameter(row, name));
    line.insert(line.end(), {row.unit, cell(row.median), cell(row.p95), absl::StrCat(row.samples), row.baseline});
    if (has_baseline(row)) line.insert(line.end(), {cell(row.baseline_median), cell(row.speedup), cell(row.spread)});
    line.resize(head.size());
    text += csv_line(line);
  }
  return text;
}

}  // namespace cgrt::record
