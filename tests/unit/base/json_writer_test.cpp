#include "cgrt/base/json_writer.h"

#include <cstdint>
#include <limits>
#include <string>

#include "support/catch.h"

namespace cgrt {
namespace {

template <class Value>
std::string written(const Value& value) {
  JsonWriter json;
  json.value(value);
  std::string text = std::move(json).finish();
  text.pop_back();  // the newline
  return text;
}

TEST_CASE("containers are indented by lines, or kept on one line with all within", "[base][json]") {
  JsonWriter json;

  json.begin_object();
  json.member("schema", "cgrt-record-1");
  json.key("rows");
  json.begin_array();
  json.begin_object(JsonLayout::kOneLine);
  json.member("name", std::string("exec_launch"));
  json.key("params");
  json.begin_object();
  json.member("nodes", 1000);
  json.end_object();
  json.key("times");
  json.begin_array();
  json.value(2.41);
  json.value(2.5);
  json.end_array();
  json.end_object();
  json.begin_object(JsonLayout::kOneLine);
  json.end_object();
  json.end_array();
  json.key("notes");
  json.begin_array();
  json.end_array();
  json.member("simulated", false);
  json.key("baseline");
  json.null();
  json.end_object();

  CHECK(std::move(json).finish() == R"({
  "schema": "cgrt-record-1",
  "rows": [
    {"name": "exec_launch", "params": {"nodes": 1000}, "times": [2.41, 2.5]},
    {}
  ],
  "notes": [],
  "simulated": false,
  "baseline": null
}
)");
}

TEST_CASE("integers are written whole at both ends of their ranges", "[base][json]") {
  CHECK(written(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(written(std::uint8_t{7}) == "7");
}

TEST_CASE("doubles are the shortest text that reads back, and null when JSON has none", "[base][json]") {
  CHECK(written(0.1) == "0.1");
  CHECK(written(2.0) == "2");
  CHECK(written(1e300) == "1e+300");
  CHECK(written(1.0 / 3.0) == "0.3333333333333333");
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(std::numeric_limits<double>::quiet_NaN()) == "null");
}

TEST_CASE("literals are strings and flags are flags", "[base][json]") {
  const char* text = "x";

  CHECK(written(text) == "\"x\"");
  CHECK(written(true) == "true");
}

TEST_CASE("strings are escaped", "[base][json]") {
  CHECK(written(std::string("a\"b\\c\n\t\x01\x7f") + '\0') == R"("a\"b\\c\n\t\u0001\u007f\u0000")");
}

TEST_CASE("bytes that are not UTF-8 become one replacement character per broken sequence", "[base][json]") {
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  const std::string replaced = "\xef\xbf\xbd";

  CHECK(written("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == quoted("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
  CHECK(written("a\xff"
                "b") == quoted("a" + replaced + "b"));
  CHECK(written("\xe2\x82"
                "x") == quoted(replaced + "x"));                             // cut
  CHECK(written("\xe2\x82") == quoted(replaced));                            // cut by the end
  CHECK(written("\xc0\x80") == quoted(replaced + replaced));                 // overlong
  CHECK(written("\xed\xa0\x80") == quoted(replaced + replaced + replaced));  // surrogate
  CHECK(written("\xf4\x90\x80\x80") == quoted(replaced + replaced + replaced + replaced));
}

}  // namespace
}  // namespace cgrt
