#include "cgrt/ir/describe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cgrt::ir {
namespace {

const char* pointer_prefix(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice: return "device";
    case MemoryKind::kPinnedHost: return "pinned";
    case MemoryKind::kManaged: return "managed";
    case MemoryKind::kPageableHost:
    case MemoryKind::kHost: return "host";
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

std::string scalar(std::span<const std::uint8_t> bytes) {
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

// Bytes of the UTF-8 character at the front; 0 when there is none.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  if (length < 3) return length;
  // Too long a form (E0 80.., F0 80..), surrogates (ED A0..) and what lies above U+10FFFF (F4 90..).
  const auto second = static_cast<unsigned char>(text[1]);
  const bool is_wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90);
  return is_wrong ? 0 : length;
}

// False for what moves the cursor, ends the line or turns the direction of writing.
bool is_shown(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead >= 0x20 && lead != 0x7f;
  const auto second = static_cast<unsigned char>(character[1]);
  if (character.size() == 2) {
    const bool is_c1 = lead == 0xc2 && second < 0xa0;            // U+0080 to U+009F
    const bool is_arabic_mark = lead == 0xd8 && second == 0x9c;  // U+061C
    return !is_c1 && !is_arabic_mark;
  }
  if (lead != 0xe2 || character.size() != 3) return true;
  const auto third = static_cast<unsigned char>(character[2]);
  const bool is_mark = second == 0x80 && (third == 0x8e || third == 0x8f);     // U+200E, U+200F
  const bool is_separator = second == 0x80 && third >= 0xa8 && third <= 0xae;  // U+2028 to U+202E
  const bool is_isolate = second == 0x81 && third >= 0xa6 && third <= 0xa9;    // U+2066 to U+2069
  return !is_mark && !is_separator && !is_isolate;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text.substr(i));
    const std::string_view character = text.substr(i, std::max<std::size_t>(length, 1));
    if (length != 0 && is_shown(character)) {
      out += character;
    } else {
      for (const char byte : character) {
        absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
      }
    }
    i += character.size();
  }
  return out;
}

std::string node_label(const GraphIr& graph, std::uint32_t id) {
  if (id >= graph.nodes.size()) return absl::StrCat("node ", id);
  const Node& node = graph.nodes[id];
  const auto* kernel = std::get_if<KernelParams>(&node.params);
  if (kernel != nullptr) return absl::StrCat("node ", id, " \"", printable(function_of(graph, *kernel).name), "\"");
  const auto* conditional = std::get_if<ConditionalParams>(&node.params);
  return absl::StrCat("node ", id, " (", conditional != nullptr ? to_string(conditional->kind) : to_string(node.kind),
                      ")");
}

std::string body_label(const GraphIr& graph, std::uint32_t body) {
  if (body == 0 || body > graph.bodies.size()) return absl::StrCat("body ", body);
  const std::uint32_t owner = graph.bodies[body - 1].owner;
  const std::string of = absl::StrCat(" of ", node_label(graph, owner));
  if (owner >= graph.nodes.size() || graph.nodes[owner].kind != NodeKind::kConditional) return "child" + of;
  const auto before = std::count_if(graph.bodies.begin(), graph.bodies.begin() + (body - 1),
                                    [&](const Body& other) { return other.owner == owner; });
  const auto* conditional = std::get_if<ConditionalParams>(&graph.nodes[owner].params);
  if (conditional != nullptr && conditional->kind == ConditionalKind::kSwitch) return absl::StrCat("case ", before, of);
  if (conditional != nullptr && conditional->kind == ConditionalKind::kIf) return (before == 0 ? "then" : "else") + of;
  const auto all =
      std::count_if(graph.bodies.begin(), graph.bodies.end(), [&](const Body& other) { return other.owner == owner; });
  return (all == 1 ? "body" : absl::StrCat("body ", before)) + of;
}

std::string describe(const Dim3& dim) { return absl::StrCat("(", dim.x, ",", dim.y, ",", dim.z, ")"); }

std::string describe(const GraphIr& graph, const Pointer& value) {
  const bool known = value.allocation < graph.allocations.size();
  const MemoryKind kind = known ? graph.allocations[value.allocation].kind : MemoryKind::kUnknown;
  std::string text = absl::StrCat(pointer_prefix(kind), "#", value.allocation);
  if (value.offset != 0) absl::StrAppend(&text, "+0x", absl::Hex(value.offset));
  return text;
}

std::string describe(const GraphIr& graph, const AccessPolicyWindow& window) {
  if (window.bytes == 0) return "none";
  return absl::StrCat(describe(graph, window.base), " ", window.bytes, " bytes, ", window.hit_ratio, " ",
                      to_string(window.hit), ", else ", to_string(window.miss));
}

std::string describe(const GraphIr& graph, const LaunchAttributes& attributes) {
  constexpr Dim3 kNone;
  std::vector<std::string> parts;
  if (attributes.cooperative) parts.emplace_back("cooperative");
  if (attributes.cluster != kNone) parts.push_back(absl::StrCat("cluster ", describe(attributes.cluster)));
  if (attributes.preferred_cluster != kNone) {
    parts.push_back(absl::StrCat("preferred cluster ", describe(attributes.preferred_cluster)));
  }
  if (attributes.cluster_scheduling != ClusterScheduling::kDefault) {
    parts.push_back(absl::StrCat("scheduling ", to_string(attributes.cluster_scheduling)));
  }
  if (attributes.priority != 0) parts.push_back(absl::StrCat("priority ", attributes.priority));
  if (attributes.is_remote_domain) parts.emplace_back("remote domain");
  if (attributes.shared_carveout_percent != 0) {
    parts.push_back(absl::StrCat("carveout ", attributes.shared_carveout_percent, "%"));
  }
  if (attributes.access_policy.bytes != 0) {
    parts.push_back(absl::StrCat("window ", describe(graph, attributes.access_policy)));
  }
  return absl::StrJoin(parts, " ");
}

std::string describe(const Edge& edge) {
  std::string text = absl::StrCat(edge.from, " -> ", edge.to);
  if (edge.type != EdgeType::kFull) absl::StrAppend(&text, ", ", to_string(edge.type));
  if (edge.from_port != 0 || edge.to_port != 0) {
    absl::StrAppend(&text, ", port ", edge.from_port, " to port ", edge.to_port);
  }
  return text;
}

std::string describe(const GraphIr& graph, const MemOp& operation) {
  const std::string address = describe(graph, operation.address);
  const char* relation = nullptr;
  switch (operation.kind) {
    case MemOpKind::kWrite: return absl::StrCat(address, " = ", operation.value, ", ", operation.bytes, " bytes");
    case MemOpKind::kWaitGreaterOrEqual: relation = ">="; break;
    case MemOpKind::kWaitEqual: relation = "=="; break;
    case MemOpKind::kWaitAnd: relation = "&"; break;
    case MemOpKind::kWaitNor: relation = "nor"; break;
  }
  return absl::StrCat("wait ", address, " ", relation != nullptr ? relation : "?", " ", operation.value, ", ",
                      operation.bytes, " bytes");
}

std::string describe(const SemaphoreValue& value) {
  return absl::StrCat("semaphore#", value.semaphore, ": ", value.value);
}

std::string describe(const GraphIr& graph, const Argument& argument) {
  constexpr std::size_t kShown = 16;
  if (const Pointer* pointer = argument.pointer(); pointer != nullptr) return describe(graph, *pointer);
  const std::size_t size = argument.bytes.size();
  if (size == 0) return "{}";
  if (size <= 8) return scalar(argument.bytes);
  const std::string shown(argument.bytes.begin(),
                          argument.bytes.begin() + static_cast<std::ptrdiff_t>(std::min(size, kShown)));
  std::string more = size > kShown ? absl::StrCat(".. ", size, " bytes") : "";
  constexpr std::size_t kPointersShown = 4;
  const std::size_t pointers = argument.pointers.size();
  for (std::size_t i = 0; i < std::min(pointers, kPointersShown); ++i) {
    const auto& [at, pointer] = argument.pointers[i];
    absl::StrAppend(&more, ", ", describe(graph, pointer), " at ", at - argument.parameter.offset);
  }
  if (pointers > kPointersShown) absl::StrAppend(&more, " and ", pointers - kPointersShown, " more");
  return absl::StrCat("{", absl::BytesToHexString(shown), more, "}");
}

}  // namespace cgrt::ir
