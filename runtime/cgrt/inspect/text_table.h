// Aligned columns for texts. Internal to inspect/ and saved/.
//
//   Table<2> table;
//   table.add({"12", "kernel"});
//   table.append_to(out, Align::kRight);
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cgrt::inspect {

enum class Align { kLeft, kRight };

// Characters, not bytes: UTF-8's continuation bytes do not advance the terminal.
std::size_t width_of(std::string_view text);

// "1 node", "2 nodes"
std::string count_of(std::uint64_t count, const char* singular, const char* plural);

// Rows of cells, in columns two spaces apart. A column as wide as the widest of its cells, where
// cells above kMaxColumn do not count: one long template name must not push all rows off the screen.
template <std::size_t kColumns>
class Table {
 public:
  using Row = std::array<std::string, kColumns>;

  void add(Row row) { rows_.push_back(std::move(row)); }
  // A line of its own, not in columns.
  void add_line(std::string line) { lines_.emplace_back(rows_.size(), std::move(line)); }

  void append_to(std::string& out, Align first_column) const {
    constexpr std::size_t kMaxColumn = 60;
    std::array<std::size_t, kColumns> widths{};
    for (const Row& row : rows_) {
      for (std::size_t c = 0; c < kColumns; ++c) {
        const std::size_t width = width_of(row[c]);
        if (width <= kMaxColumn) widths[c] = std::max(widths[c], width);
      }
    }
    auto next = lines_.begin();
    const auto append_lines = [&](std::size_t rows) {
      for (; next != lines_.end() && next->first == rows; ++next) absl::StrAppend(&out, next->second, "\n");
    };
    std::size_t rows = 0;
    for (const Row& row : rows_) {
      append_lines(rows++);
      std::string line;
      for (std::size_t c = 0; c < kColumns; ++c) {
        const std::size_t width = width_of(row[c]);
        if (widths[c] == 0 && width == 0) continue;  // a column that no row uses
        const std::string padding(widths[c] - std::min(widths[c], width), ' ');
        const bool is_right = c == 0 && first_column == Align::kRight;
        absl::StrAppend(&line, is_right ? padding : "", row[c], is_right ? "" : padding, "  ");
      }
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&out, line, "\n");
    }
    append_lines(rows);
  }

 private:
  std::vector<Row> rows_;
  std::vector<std::pair<std::size_t, std::string>> lines_;  // each behind so many rows
};

}  // namespace cgrt::inspect
