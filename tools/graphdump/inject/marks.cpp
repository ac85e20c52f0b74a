#include "inject/marks.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/ir/describe.h"
#include "cgrt/saved/manifest.h"

namespace graphdump {
namespace {

using Parts = std::vector<std::string>;

bool parse_number(const std::string& text, std::uint64_t& number) { return absl::SimpleAtoi(text, &number); }

bool parse_address(const std::string& text, std::uint64_t& address) {
  return text.starts_with("0x") && absl::SimpleHexAtoi(text, &address) && address != 0;
}

// What is wrong with what follows an address or operand, from `first` on: BYTES, or BYTES:DTYPE:SHAPE. Empty: nothing.
std::string parse_size(const Parts& parts, std::size_t first, cgrt::BufferMark& buffer) {
  if (parts.size() != first + 1 && parts.size() != first + 3) return "it has too few or too many parts";
  if (!parse_number(parts[first], buffer.bytes) || buffer.bytes == 0) return "its bytes are no number above 0";
  if (parts.size() == first + 1) return "";
  buffer.dtype = parts[first + 1];
  if (cgrt::ir::printable(buffer.dtype) != buffer.dtype) return "its type has characters that no name has";
  if (parts[first + 2].empty()) return "";  // of no dimensions
  for (const absl::string_view extent : absl::StrSplit(parts[first + 2], 'x')) {
    if (!parse_number(std::string(extent), buffer.shape.emplace_back())) return "its shape is not as 4x128";
  }
  return "";
}

absl::Status refuse(std::string_view what, std::string_view text, std::string_view why, std::string_view form) {
  return absl::InvalidArgumentError(absl::StrCat("The ", std::string(what), " \"", cgrt::ir::printable(text),
                                                 "\" is not understood: ", std::string(why), ". It is ",
                                                 std::string(form), "."));
}

std::string parse_buffer(const Parts& parts, cgrt::BufferMark& buffer) {
  if (parts.size() < 5) return "it has too few parts";
  buffer.name = parts[2];
  if (!cgrt::saved::is_name(buffer.name)) return "its name is not of letters, digits, '_', '-' and '.'";
  if (!parse_address(parts[3], buffer.address)) return "its address is not as 0x7f3a00000000";
  return parse_size(parts, 4, buffer);
}

}  // namespace

absl::StatusOr<std::optional<Mark>> parse_mark(std::string_view text) {
  if (!text.starts_with("cgrt:")) return std::optional<Mark>();
  const Parts parts = absl::StrSplit(absl::string_view(text.data(), text.size()), ':');
  Mark mark;
  if (parts[1] == "input" || parts[1] == "output") {
    mark.kind = parts[1] == "input" ? Mark::Kind::kInput : Mark::Kind::kOutput;
    if (const std::string wrong = parse_buffer(parts, mark.buffer); !wrong.empty()) {
      return refuse("mark", text, wrong, absl::StrCat("cgrt:", parts[1], ":NAME:0xADDRESS:BYTES[:DTYPE:SHAPE]"));
    }
    return std::optional(std::move(mark));
  }
  if (text == "cgrt:dead:clear") {
    mark.kind = Mark::Kind::kNoneDead;
    return std::optional(std::move(mark));
  }
  mark.kind = Mark::Kind::kDead;
  const bool is_dead = parts[1] == "dead" && parts.size() == 4 && parse_address(parts[2], mark.dead.address) &&
                       parse_number(parts[3], mark.dead.bytes);
  if (is_dead) return std::optional(std::move(mark));
  return refuse("mark", text, "no such mark is known",
                "cgrt:input:..., cgrt:output:..., cgrt:dead:0xADDRESS:BYTES or cgrt:dead:clear");
}

absl::StatusOr<cgrt::BufferMark> parse_operand(std::string_view text) {
  constexpr char kForm[] = "NAME=NODE:OPERAND[+OFFSET][:BYTES[:DTYPE:SHAPE]]";
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return refuse("operand", text, "it has no =", kForm);
  cgrt::BufferMark buffer{.name = std::string(text.substr(0, equals))};
  if (!cgrt::saved::is_name(buffer.name)) {
    return refuse("operand", text, "its name is not of letters, digits, '_', '-' and '.'", kForm);
  }
  const Parts parts = absl::StrSplit(absl::string_view(text.data() + equals + 1, text.size() - equals - 1), ':');
  if (parts.size() < 2) return refuse("operand", text, "it has too few parts", kForm);
  cgrt::OperandPlace& place = buffer.place.emplace();
  const std::pair<std::string, std::string> operand = absl::StrSplit(parts[1], absl::MaxSplits('+', 1));
  const bool has_offset = parts[1].find('+') != std::string::npos;
  if (!absl::SimpleAtoi(parts[0], &place.node) || !absl::SimpleAtoi(operand.first, &place.operand) ||
      (has_offset && !parse_number(operand.second, place.offset))) {
    return refuse("operand", text, "its node, operand or offset is no number", kForm);
  }
  if (parts.size() == 2) return buffer;
  if (const std::string wrong = parse_size(parts, 2, buffer); !wrong.empty()) {
    return refuse("operand", text, wrong, kForm);
  }
  return buffer;
}

}  // namespace graphdump
