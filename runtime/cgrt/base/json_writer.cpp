#include "cgrt/base/json_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cgrt {
namespace {

struct Sequence {
  std::size_t length;  // bytes to go on by, at least 1
  bool is_valid;
};

// The UTF-8 sequence at the start of `text` (table 3-7 of the Unicode standard). An invalid one is
// as long as its valid beginning, so that a cut character becomes one U+FFFD, not three.
Sequence utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4) return {1, false};

  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  unsigned char low = 0x80, high = 0xbf;  // of the second byte: no overlong form,
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xed) high = 0x9f;  // no surrogate,
  if (lead == 0xf4) high = 0x8f;  // nothing above U+10FFFF
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true};
}

void append_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  while (!text.empty()) {
    if (const auto plain = std::find_if_not(text.begin(), text.end(), is_plain); plain != text.begin()) {
      out.append(text.begin(), plain);
      text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
      continue;
    }
    const char c = text.front();
    const Sequence sequence = utf8_sequence(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if ((c >= 0 && c < 0x20) || c == 0x7f) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else if (sequence.is_valid) {
      out += text.substr(0, sequence.length);
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(sequence.length);
  }
  out += '"';
}

}  // namespace

void JsonWriter::key(std::string_view name) {
  separate();
  append_string(text_, name);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
  separate();
  append_string(text_, text);
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  raw({buffer, static_cast<std::size_t>(end - buffer)});
}

std::string JsonWriter::finish() && {
  text_ += '\n';
  return std::move(text_);
}

void JsonWriter::begin(char bracket, JsonLayout layout) {
  separate();
  text_ += bracket;
  const bool within_line = !open_.empty() && open_.back().layout == JsonLayout::kOneLine;
  open_.push_back({within_line ? JsonLayout::kOneLine : layout, true});
}

void JsonWriter::end(char bracket) {
  const Container closed = open_.back();
  open_.pop_back();
  if (!closed.is_empty && closed.layout == JsonLayout::kLines) {
    text_ += '\n';
    text_.append(2 * open_.size(), ' ');
  }
  text_ += bracket;
}

void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || open_.empty()) return;
  Container& container = open_.back();
  const bool is_first = std::exchange(container.is_empty, false);
  if (!is_first) text_ += ',';
  if (container.layout == JsonLayout::kLines) {
    text_ += '\n';
    text_.append(2 * open_.size(), ' ');
  } else if (!is_first) {
    text_ += ' ';
  }
}

void JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
}

}  // namespace cgrt
