#include "cgrt/inspect/json_value.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

// Receives nlohmann's events: its own tree copies and destroys deep nesting recursively, and its
// parser keeps the last of two equal keys.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool flag) override { return add(flag); }
  bool number_integer(std::int64_t number) override {
    return number < 0 ? add(number) : add(static_cast<std::uint64_t>(number));  // "-0" arrives here
  }
  bool number_unsigned(std::uint64_t number) override { return add(number); }
  bool number_float(double number, const std::string&) override { return add(number); }
  bool string(std::string& text) override { return add(std::move(text)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(JsonValue::Object()); }
  bool start_array(std::size_t) override { return open(JsonValue::Array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    std::get<JsonValue::Object>(open_.back()->data).push_back({std::move(name), {}});
    return true;
  }

  bool end_object() override {
    // Sorted views, since a hostile object may have millions of keys.
    std::vector<std::string_view> names;
    for (const JsonMember& member : std::get<JsonValue::Object>(open_.back()->data)) names.push_back(member.key);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      return fail(absl::StrCat(path(open_.size() - 1), "key \"", ir::printable(*twice), "\" appears twice"));
    }
    return close();
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: ...; last read: '...'"
    std::string_view what = error.what();
    if (const auto at = what.find("line "); at != what.npos) {
      what.remove_prefix(at);
    } else if (const auto end = what.find("] "); end != what.npos) {
      what.remove_prefix(end + 2);
    }
    what = what.substr(0, what.find("; last read: "));
    return fail(absl::StrCat("not JSON: ", ir::printable(what)));
  }

  absl::StatusOr<JsonValue> finish(bool is_complete) && {
    if (is_complete) return std::move(root_);
    return absl::InvalidArgumentError(error_.empty() ? "not JSON" : error_);
  }

 private:
  template <class Data>
  bool add(Data data) {
    return place(std::move(data)) != nullptr;
  }

  template <class Container>
  bool open(Container empty) {
    if (open_.size() == kMaxJsonDepth) {
      constexpr std::size_t kPathLevels = 3;  // the whole path would fill lines
      return fail(absl::StrCat(path(kPathLevels), "nested deeper than ", kMaxJsonDepth, " levels"));
    }
    JsonValue* value = place(std::move(empty));
    // A container grows only at its end and only while its last element is closed, so the pointers
    // to open containers stay good.
    if (value != nullptr) open_.push_back(value);
    return value != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // Where the next value belongs; nullptr when there are too many.
  template <class Data>
  JsonValue* place(Data data) {
    if (++count_ > kMaxJsonValues) {
      fail(absl::StrCat(path(open_.size() - 1), "more than ", kMaxJsonValues, " values"));
      return nullptr;
    }
    JsonValue* value = &root_;
    if (!open_.empty()) {
      if (auto* array = std::get_if<JsonValue::Array>(&open_.back()->data)) {
        value = &array->emplace_back();
      } else {
        value = &std::get<JsonValue::Object>(open_.back()->data).back().value;
      }
    }
    value->data = std::move(data);
    return value;
  }

  // "nodes[3].grid: ", the way through the outermost `levels` open containers.
  std::string path(std::size_t levels) const {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) {
      if (const auto* array = std::get_if<JsonValue::Array>(&open_[i]->data)) {
        absl::StrAppend(&text, "[", array->size() - 1, "]");
      } else {
        const auto& object = std::get<JsonValue::Object>(open_[i]->data);
        absl::StrAppend(&text, text.empty() ? "" : ".", ir::printable(object.back().key));
      }
    }
    return text.empty() ? "" : text + ": ";
  }

  bool fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
    return false;
  }

  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::size_t count_ = 0;
  std::string error_;
};

}  // namespace

absl::StatusOr<JsonValue> parse_json(std::string_view text) {
  try {
    TreeBuilder builder;
    const bool is_complete = nlohmann::json::sax_parse(text, &builder);
    return std::move(builder).finish(is_complete);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("not enough memory to read ", text.size(), " bytes of JSON"));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", ir::printable(error.what())));
  }
}

}  // namespace cgrt::inspect
