#include "cgrt/inspect/json_cursor.h"

#include <cmath>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

struct Describe {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(std::uint64_t number) const { return absl::StrCat(number); }
  std::string operator()(std::int64_t number) const { return absl::StrCat(number); }
  std::string operator()(double number) const { return absl::StrCat("the number ", number); }
  std::string operator()(const std::string& text) const {
    constexpr std::size_t kShown = 40;
    const std::string shown = ir::printable(std::string_view(text).substr(0, kShown));
    return absl::StrCat("the string \"", shown, text.size() > kShown ? "...\"" : "\"");
  }
  std::string operator()(const JsonValue::Array& array) const { return absl::StrCat("an array of ", array.size()); }
  std::string operator()(const JsonValue::Object&) const { return "an object"; }
};

}  // namespace

JsonCursor JsonCursor::element(std::size_t index) const {
  JsonCursor out(std::get<JsonValue::Array>(value_->data)[index]);
  out.parent_ = this;
  out.index_ = index;
  return out;
}

std::optional<JsonCursor> JsonCursor::member(std::string_view key) const {
  for (const JsonMember& member : std::get<JsonValue::Object>(value_->data)) {
    if (member.key != key) continue;
    JsonCursor out(member.value);
    out.parent_ = this;
    out.key_ = member.key;
    return out;
  }
  return std::nullopt;
}

absl::Status JsonCursor::expect_object() const {
  return std::holds_alternative<JsonValue::Object>(value_->data) ? absl::OkStatus() : mismatch("an object");
}

absl::StatusOr<std::size_t> JsonCursor::expect_array() const {
  const auto* array = std::get_if<JsonValue::Array>(&value_->data);
  if (array == nullptr) return mismatch("an array");
  return array->size();
}

absl::Status JsonCursor::error(const std::string& what) const {
  const std::string where = path();
  return absl::InvalidArgumentError(where.empty() ? what : absl::StrCat(where, ": ", what));
}

absl::Status JsonCursor::missing(std::string_view key) const {
  return error(absl::StrCat("the key \"", std::string(key), "\" is missing"));
}

absl::Status JsonCursor::mismatch(const std::string& expected) const {
  return error(absl::StrCat("expected ", expected, ", found ", std::visit(Describe{}, value_->data)));
}

std::string JsonCursor::path() const {
  if (parent_ == nullptr) return "";
  const std::string before = parent_->path();
  const bool is_member = std::holds_alternative<JsonValue::Object>(parent_->value_->data);
  if (!is_member) return absl::StrCat(before, "[", index_, "]");
  return absl::StrCat(before, before.empty() ? "" : ".", ir::printable(key_));
}

absl::Status read(const JsonCursor& cursor, bool& out) {
  const bool* flag = std::get_if<bool>(&cursor.value().data);
  if (flag == nullptr) return cursor.mismatch("true or false");
  out = *flag;
  return absl::OkStatus();
}

absl::Status read(const JsonCursor& cursor, std::string& out) {
  const auto* text = std::get_if<std::string>(&cursor.value().data);
  if (text == nullptr) return cursor.mismatch("a string");
  out = *text;
  return absl::OkStatus();
}

absl::Status read(const JsonCursor& cursor, double& out) {
  const auto& data = cursor.value().data;
  if (const auto* real = std::get_if<double>(&data)) return out = *real, absl::OkStatus();
  if (const auto* natural = std::get_if<std::uint64_t>(&data)) {
    return out = static_cast<double>(*natural), absl::OkStatus();
  }
  if (const auto* negative = std::get_if<std::int64_t>(&data)) {
    return out = static_cast<double>(*negative), absl::OkStatus();
  }
  return cursor.mismatch("a number");
}

absl::Status read(const JsonCursor& cursor, float& out) {
  double number = 0;
  CGRT_RETURN_IF_ERROR(read(cursor, number));
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  if (!(std::abs(number) <= kLargest)) return cursor.mismatch(absl::StrCat("a number up to ", kLargest));
  out = static_cast<float>(number);
  return absl::OkStatus();
}

absl::Status read_integer(const JsonCursor& cursor, std::int64_t lowest, std::uint64_t highest, std::uint64_t& bits) {
  if (const auto* number = std::get_if<std::uint64_t>(&cursor.value().data); number != nullptr && *number <= highest) {
    bits = *number;
    return absl::OkStatus();
  }
  if (const auto* number = std::get_if<std::int64_t>(&cursor.value().data); number != nullptr && *number >= lowest) {
    bits = static_cast<std::uint64_t>(*number);
    return absl::OkStatus();
  }
  return cursor.mismatch(absl::StrCat("an integer from ", lowest, " to ", highest));
}

}  // namespace cgrt::inspect
