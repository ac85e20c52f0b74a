// JsonWriter: JSON as a stream, the same bytes for the same calls.
//
//   JsonWriter json;
//   json.begin_object();
//   json.member("schema", "cgrt-record-1");
//   json.key("rows");
//   json.begin_array();
//   json.begin_object(JsonLayout::kOneLine);
//   json.member("name", "exec_launch");
//   json.member("median", 2.41);
//   json.end_object();
//   json.end_array();
//   json.end_object();
//   std::string text = std::move(json).finish();
//
// Gives, indented by two spaces and ended by a newline:
//   {
//     "schema": "cgrt-record-1",
//     "rows": [
//       {"name": "exec_launch", "median": 2.41}
//     ]
//   }
//
// Doubles are the shortest text that reads back as the same value; JSON has no infinity and no NaN,
// so these become null. Bytes that are not UTF-8 become U+FFFD. Keys in objects, none in arrays and
// as many ends as begins are the caller's duty.
// Not thread-safe.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cgrt {

// Everything within a kOneLine container is on that line too.
enum class JsonLayout { kLines, kOneLine };

class JsonWriter {
 public:
  void begin_object(JsonLayout layout = JsonLayout::kLines) { begin('{', layout); }
  void end_object() { end('}'); }
  void begin_array(JsonLayout layout = JsonLayout::kLines) { begin('[', layout); }
  void end_array() { end(']'); }

  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(double number);
  void value(std::same_as<bool> auto flag) { raw(flag ? "true" : "false"); }
  void value(char) = delete;  // a string or a number?
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) void value(Integer number);
  void null() { raw("null"); }

  template <class Value>
  void member(std::string_view name, const Value& content) {
    key(name);
    value(content);
  }

  // The text so far and a final newline.
  std::string finish() &&;

 private:
  struct Container {
    JsonLayout layout;
    bool is_empty;
  };

  void begin(char bracket, JsonLayout layout);
  void end(char bracket);
  void separate();  // comma, newline and indentation before a key or an element
  void raw(std::string_view text);

  std::string text_;
  std::vector<Container> open_;
  bool after_key_ = false;
};

template <std::integral Integer>
requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) void JsonWriter::value(Integer number) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  raw({buffer, static_cast<std::size_t>(end - buffer)});
}

}  // namespace cgrt
