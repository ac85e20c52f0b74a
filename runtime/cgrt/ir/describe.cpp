#include "cgrt/ir/describe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace cgrt::ir {
namespace {

const char* pointer_prefix(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice: return "device";
    case MemoryKind::kPinnedHost: return "pinned";
    case MemoryKind::kManaged: return "managed";
    case MemoryKind::kPageableHost: return "host";
    case MemoryKind::kArray: return "array";
    case MemoryKind::kUnknown: break;
  }
  return "unknown";
}

// Outside of this range a bit pattern is more often an address, a hash or a mask than a number.
bool is_plausible(double value) { return std::abs(value) >= 1e-6 && std::abs(value) <= 1e9; }

template <class Float>
std::string decimal(Float value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string scalar(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t bits = 0;  // the GPU is little-endian
  for (std::size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | bytes[i];

  if (bytes.size() == 4) {
    const auto integer = static_cast<std::int32_t>(bits);
    const auto real = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::abs(static_cast<std::int64_t>(integer)) < (1 << 28)) return absl::StrCat(integer);
    if (is_plausible(real)) return decimal(real) + "f";
  } else if (bytes.size() == 8) {
    constexpr std::int64_t kSmall = std::int64_t{1} << 40;
    const auto integer = static_cast<std::int64_t>(bits);
    const auto real = std::bit_cast<double>(bits);
    if (integer > -kSmall && integer < kSmall) return absl::StrCat(integer);
    if (is_plausible(real)) return decimal(real);
  } else if (bytes.size() <= 2) {
    return absl::StrCat(bits);
  }
  return absl::StrCat("0x", absl::Hex(bits));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too; UTF-8 writes them as C2 80 to C2 9F.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&out, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else if (c1) {
      absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(text[++i]), absl::kZeroPad2));
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string node_label(const GraphIr& graph, std::uint32_t id) {
  if (id >= graph.nodes.size()) return absl::StrCat("node ", id);
  const Node& node = graph.nodes[id];
  const auto* kernel = std::get_if<KernelParams>(&node.params);
  if (kernel != nullptr) return absl::StrCat("node ", id, " \"", printable(kernel->function), "\"");
  return absl::StrCat("node ", id, " (", to_string(node.kind), ")");
}

std::string describe(const Dim3& dim) { return absl::StrCat("(", dim.x, ",", dim.y, ",", dim.z, ")"); }

std::string describe(const GraphIr& graph, const Pointer& value) {
  const bool known = value.allocation < graph.allocations.size();
  const MemoryKind kind = known ? graph.allocations[value.allocation].kind : MemoryKind::kUnknown;
  std::string text = absl::StrCat(pointer_prefix(kind), "#", value.allocation);
  if (value.offset != 0) absl::StrAppend(&text, "+0x", absl::Hex(value.offset));
  return text;
}

std::string describe(const GraphIr& graph, const Argument& argument) {
  constexpr std::size_t kShown = 16;
  if (argument.pointer.has_value()) return describe(graph, *argument.pointer);
  const std::size_t size = argument.bytes.size();
  if (size == 0) return "{}";
  if (size <= 8) return scalar(argument.bytes);
  const std::string shown(argument.bytes.begin(), argument.bytes.begin() + std::min(size, kShown));
  const std::string more = size > kShown ? absl::StrCat(".. ", size, " bytes") : "";
  return absl::StrCat("{", absl::BytesToHexString(shown), more, "}");
}

}  // namespace cgrt::ir
