#include "cgrt/inspect/driver_label.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cgrt/base/status_macros.h"

namespace cgrt::inspect {
namespace {

constexpr std::size_t kMaxDepth = 16;  // of fields

std::string trimmed(const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); }

// The character that "\c" stands for. Graphviz has three ends of lines, for left, right and centre.
char escaped(char c) { return c == 'n' || c == 'l' || c == 'r' ? '\n' : c; }

// A field: a text, or a list of fields.
struct Field {
  std::string text;
  std::vector<Field> fields;
  bool is_list = false;
};

bool is_text_list(const Field& field) {
  const auto is_list = [](const Field& one) { return one.is_list; };
  return field.is_list && !field.fields.empty() && std::none_of(field.fields.begin(), field.fields.end(), is_list);
}

class RecordParser {
 public:
  // The list of fields within the outer braces.
  absl::StatusOr<Field> run(std::string_view text) && {
    open_.emplace_back();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\\' && i + 1 < text.size()) {
        CGRT_RETURN_IF_ERROR(append(escaped(text[++i])));
      } else if (c == '{' && !is_in_text()) {
        CGRT_RETURN_IF_ERROR(open());
      } else if (c == '}' && literal_ == 0) {
        if (open_.size() == 1) return offence("a \"}\" without its \"{\"");
        end_field();
        close();
      } else if (c == '|' && literal_ == 0) {
        end_field();
      } else {
        if (c == '{') ++literal_;
        if (c == '}') --literal_;
        CGRT_RETURN_IF_ERROR(append(c));
      }
    }
    if (literal_ != 0 || open_.size() != 1) return offence("a \"{\" that is not closed");
    end_field();
    Field all = std::move(open_[0].list);
    while (all.fields.size() == 1 && all.fields[0].is_list) all = Field(std::move(all.fields[0]));
    return all;
  }

 private:
  struct Open {
    Field list;
    Field next;  // the field that is being read
  };

  // Braces in the middle of a text are of the text: "scale<<<{8,32},32,0>>>".
  bool is_in_text() const { return literal_ != 0 || !absl::StripAsciiWhitespace(open_.back().next.text).empty(); }

  absl::Status append(char c) {
    Field& field = open_.back().next;
    if (field.is_list) {
      if (absl::ascii_isspace(static_cast<unsigned char>(c))) return absl::OkStatus();
      return offence("text behind a \"}\"");
    }
    field.text += c;
    return absl::OkStatus();
  }

  absl::Status open() {
    if (open_.back().next.is_list) return offence("a \"{\" behind a \"}\"");
    if (open_.size() > kMaxDepth) return offence(absl::StrCat("fields nested deeper than ", kMaxDepth, " levels"));
    open_.emplace_back();
    return absl::OkStatus();
  }

  void end_field() {
    auto& [list, next] = open_.back();
    next.text = trimmed(next.text);
    list.fields.push_back(std::exchange(next, {}));
  }

  void close() {
    Field list = std::move(open_.back().list);
    list.is_list = true;
    open_.pop_back();
    open_.back().next = std::move(list);
  }

  static absl::Status offence(const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("the label has ", what));
  }

  std::vector<Open> open_;
  std::size_t literal_ = 0;  // "{" of the text that are not closed yet
};

bool begins_with_digit(const Field& field) {
  return !field.text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(field.text[0]));
}

// Names and the values below them.
void add_columns(const std::string& group, const Field& names, const Field& values,
                 std::vector<DriverLabel::Row>& rows) {
  for (std::size_t i = 0; i < names.fields.size(); ++i) {
    rows.push_back({group + names.fields[i].text, {values.fields[i].text}});
  }
}

bool are_columns(const Field& names, const Field& values) {
  return is_text_list(names) && is_text_list(values) && names.fields.size() == values.fields.size();
}

// Groups of longer names than any that is looked for are left out: each of their rows would have a copy of the name.
constexpr std::size_t kMaxGroup = 100;

// Recursion ends with the depth of fields.
void add_rows(const std::string& group, const Field& field, std::vector<DriverLabel::Row>& rows) {
  const std::vector<Field>& parts = field.fields;
  if (parts.empty()) return;
  if (!parts[0].is_list) {
    const std::string key = group + parts[0].text;
    if (key.size() > kMaxGroup) return;
    if (parts.size() == 3 && are_columns(parts[1], parts[2])) return add_columns(key + ".", parts[1], parts[2], rows);
    DriverLabel::Row row{key, {}};
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (!parts[i].is_list) row.values.push_back(parts[i].text);
    }
    rows.push_back(std::move(row));
    for (const Field& part : parts) add_rows(key + ".", part, rows);
    return;
  }
  if (parts.size() == 2 && are_columns(parts[0], parts[1])) {
    const bool are_pairs = parts[0].fields.size() == 2 && begins_with_digit(parts[0].fields[1]);  // {x | 0} | {y | 0}
    if (!are_pairs) return add_columns(group, parts[0], parts[1], rows);
  }
  if (parts.size() == 3 && is_text_list(parts[0]) && are_columns(parts[1], parts[2])) {
    const std::size_t groups = parts[0].fields.size(), columns = parts[1].fields.size();
    if (columns > groups && columns % groups == 0) {
      for (std::size_t i = 0; i < columns; ++i) {
        const std::string& name = parts[0].fields[i / (columns / groups)].text;
        if (name.size() > kMaxGroup) continue;
        rows.push_back({absl::StrCat(group, name, ".", parts[1].fields[i].text), {parts[2].fields[i].text}});
      }
      return;
    }
  }
  for (const Field& part : parts) add_rows(group, part, rows);
}

absl::StatusOr<DriverLabel> parse_record(std::string_view text) {
  CGRT_ASSIGN_OR_RETURN(const Field record, RecordParser().run(text));
  const Field* first = &record;
  while (!first->fields.empty()) first = &first->fields[0];
  if (first->text.empty()) return absl::InvalidArgumentError("the label does not begin with the kind of the node");
  DriverLabel label;
  label.kind = absl::StrReplaceAll(first->text, {{" ", "_"}});
  for (const Field& field : record.fields) add_rows("", field, label.rows);
  return label;
}

absl::StatusOr<DriverLabel> parse_lines(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    plain += is_escape ? escaped(text[++i]) : text[i];
  }
  DriverLabel label;
  for (const absl::string_view line : absl::StrSplit(plain, '\n')) {
    if (const absl::string_view part = absl::StripAsciiWhitespace(line); !part.empty()) label.lines.emplace_back(part);
  }
  if (label.lines.size() < 2) {
    return absl::InvalidArgumentError("the label is neither a record nor the number of the node and what it is");
  }
  label.lines.erase(label.lines.begin());
  return label;
}

}  // namespace

const DriverLabel::Row* DriverLabel::row(std::string_view key) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.key == key; });
  return found != rows.end() ? &*found : nullptr;
}

std::string_view DriverLabel::value(std::string_view key) const {
  const Row* found = row(key);
  return found != nullptr && !found->values.empty() ? std::string_view(found->values[0]) : std::string_view();
}

absl::StatusOr<DriverLabel> parse_driver_label(std::string_view text) {
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace({text.data(), text.size()});
  return !begin.empty() && begin[0] == '{' ? parse_record(text) : parse_lines(text);
}

}  // namespace cgrt::inspect
