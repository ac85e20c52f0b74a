#include "cgrt/inspect/driver_nodes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/kernel_name.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

struct Word {
  const char* text;
  ir::NodeKind kind;
};
constexpr Word kWords[] = {
    {"KERNEL", ir::NodeKind::kKernel},
    {"MEMCPY", ir::NodeKind::kMemcpy},
    {"MEMSET", ir::NodeKind::kMemset},
    {"HOST", ir::NodeKind::kHost},
    {"GRAPH", ir::NodeKind::kChildGraph},
    {"CHILD_GRAPH", ir::NodeKind::kChildGraph},
    {"EMPTY", ir::NodeKind::kEmpty},
    {"EVENT_WAIT", ir::NodeKind::kEventWait},
    {"WAIT_EVENT", ir::NodeKind::kEventWait},
    {"EVENT_RECORD", ir::NodeKind::kEventRecord},
    {"RECORD_EVENT", ir::NodeKind::kEventRecord},
    {"EXT_SEMAS_SIGNAL", ir::NodeKind::kSemaphoreSignal},
    {"EXT_SEMAS_WAIT", ir::NodeKind::kSemaphoreWait},
    {"MEM_ALLOC", ir::NodeKind::kMemAlloc},
    {"MEM_FREE", ir::NodeKind::kMemFree},
    {"BATCH_MEM_OP", ir::NodeKind::kBatchMemOp},
    {"CONDITIONAL", ir::NodeKind::kConditional},
};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 2 for "graph_2".
std::optional<std::uint64_t> parse_graph(std::string_view text) {
  constexpr std::string_view kPrefix = "graph_";
  return text.starts_with(kPrefix) ? parse_number(text.substr(kPrefix.size())) : std::nullopt;
}

absl::Status offence(std::string_view what, std::string_view value, const char* wanted) {
  constexpr std::size_t kShown = 60;
  return absl::InvalidArgumentError(absl::StrCat(ir::printable(what.substr(0, kShown)), " is \"",
                                                 ir::printable(value.substr(0, kShown)),
                                                 value.size() > kShown ? "...\"" : "\"", ", and is to be ", wanted));
}

// A row that is not there leaves `out` as it is, and so does a value of nothing.
template <class Integer>
absl::Status read_number(const DriverLabel& label, std::string_view key, Integer& out) {
  const std::string_view text = label.value(key);
  if (text.empty()) return absl::OkStatus();
  const std::optional<std::uint64_t> value = parse_number(text);
  if (!value.has_value()) return offence(key, text, "a number below 2^64");
  if (*value > std::numeric_limits<Integer>::max()) return offence(key, text, "a number below 2^32");
  out = static_cast<Integer>(*value);
  return absl::OkStatus();
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_number(std::string_view& text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// "8", "{8,32}", "{1,4,8}" or the same in parentheses.
bool take_dim(std::string_view& text, ir::Dim3& out) {
  const char close = take(text, '{') ? '}' : take(text, '(') ? ')' : '\0';
  out = {};
  if (!take_number(text, out.x)) return false;
  if (close == '\0') return true;
  if (take(text, ',') && !take_number(text, out.y)) return false;
  if (take(text, ',') && !take_number(text, out.z)) return false;
  return take(text, close);
}

// The rows of attributes were named in several ways: "cluster dim", "clusterDim".
std::string plain_key(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c != ' ' && c != '_') out += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return out;
}

absl::Status read_property(const DriverLabel& label, const char* key, ir::AccessProperty& out) {
  const std::string_view text = label.value(key);
  if (text.empty() || text == "N") return absl::OkStatus();
  if (text != "S" && text != "P") return offence(key, text, "N, S or P");
  out = text == "S" ? ir::AccessProperty::kStreaming : ir::AccessProperty::kPersisting;
  return absl::OkStatus();
}

// One operand of a copy.
struct End {
  std::uint64_t address = 0, pitch = 0, rows = 0, x = 0, y = 0, z = 0;

  absl::Status read(const DriverLabel& label, const std::string& pointer, const std::string& position) {
    CGRT_RETURN_IF_ERROR(read_number(label, pointer + ".ptr", address));
    CGRT_RETURN_IF_ERROR(read_number(label, pointer + ".pitch", pitch));
    CGRT_RETURN_IF_ERROR(read_number(label, pointer + ".ysize", rows));
    CGRT_RETURN_IF_ERROR(read_number(label, position + ".x", x));
    CGRT_RETURN_IF_ERROR(read_number(label, position + ".y", y));
    return read_number(label, position + ".z", z);
  }
  // Numbers that no copy has wrap around.
  std::uint64_t begin() const { return address + x + (z * rows + y) * pitch; }
  std::uint64_t extent(const ir::MemcpyParams& copy) const {
    const std::uint64_t rows_before_last = copy.height - 1 + (copy.depth - 1) * std::max(rows, copy.height);
    return rows_before_last * pitch + copy.width_bytes;
  }
};

ir::MemoryKind memory_of(char letter) {
  return letter == 'D'   ? ir::MemoryKind::kDevice
         : letter == 'H' ? ir::MemoryKind::kHost
         : letter == 'A' ? ir::MemoryKind::kArray
                         : ir::MemoryKind::kUnknown;
}

// The name of a kernel, with its launch where that is there: beside the number of the node, or in a row of its own.
std::string symbol_of(const DriverLabel& label) {
  if (!label.is_record()) return label.lines[0];
  const DriverLabel::Row* id = label.row("ID");
  if (id != nullptr && id->values.size() > 1) return id->values[1];
  for (const DriverLabel::Row& row : label.rows) {
    for (const std::string& value : row.values) {
      if (value.starts_with("_Z") || value.ends_with(">>>")) return value;
    }
  }
  return std::string(label.value("name"));
}

// Calls `visit` for each address, in the order in which a node mentions them.
template <class Visit>
void visit_pointers(ir::Node& node, Visit visit) {
  if (auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
    if (kernel->attributes.access_policy.bytes != 0) visit(kernel->attributes.access_policy.base);
  } else if (auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
    if (copy->destination.has_value()) visit(*copy->destination);
    if (copy->source.has_value()) visit(*copy->source);
  } else if (auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
    visit(set->destination);
  } else if (auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
    visit(alloc->address);
  } else if (auto* free = std::get_if<ir::MemFreeParams>(&node.params)) {
    visit(free->address);
  }
}

}  // namespace

std::optional<ir::NodeKind> DriverNodes::kind_of(const DriverLabel& label, std::string_view shape, std::string& word) {
  word = label.is_record() ? label.kind : label.lines[0];
  if (!label.is_record() && shape == "octagon") return ir::NodeKind::kKernel;
  const auto is_word = [&](const Word& one) { return word == one.text; };
  const auto* found = std::find_if(std::begin(kWords), std::end(kWords), is_word);
  if (found != std::end(kWords)) return found->kind;
  if (parse_graph(word).has_value()) return ir::NodeKind::kChildGraph;
  return std::nullopt;
}

std::vector<std::uint64_t> DriverNodes::graphs_inside(const DriverLabel& label) {
  std::vector<std::uint64_t> graphs;
  const auto add = [&](const std::string& text) {
    for (const absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(" ,;()[]"), absl::SkipEmpty())) {
      if (const auto graph = parse_graph({part.data(), part.size()})) graphs.push_back(*graph);
    }
  };
  for (const std::string& line : label.lines) add(line);
  for (const DriverLabel::Row& row : label.rows) {
    add(row.key);
    for (const std::string& value : row.values) add(value);
  }
  return graphs;
}

absl::Status DriverNodes::add(const DriverLabel& label, ir::NodeKind kind, std::uint32_t body) {
  ir::Node node{.kind = kind, .body = body};
  switch (kind) {
    case ir::NodeKind::kKernel:
      CGRT_RETURN_IF_ERROR(read_kernel(label, node.params.emplace<ir::KernelParams>()));
      break;
    case ir::NodeKind::kMemcpy: CGRT_RETURN_IF_ERROR(read_memcpy(label, node)); break;
    case ir::NodeKind::kMemset: CGRT_RETURN_IF_ERROR(read_memset(label, node)); break;
    case ir::NodeKind::kEventWait:
    case ir::NodeKind::kEventRecord: read_event(label, node); break;
    case ir::NodeKind::kMemAlloc:
    case ir::NodeKind::kMemFree: CGRT_RETURN_IF_ERROR(read_memory(label, node)); break;
    default: break;
  }
  graph_.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status DriverNodes::read_kernel(const DriverLabel& label, ir::KernelParams& out) {
  constexpr std::string_view kOpen = "<<<", kClose = ">>>";
  std::string symbol = symbol_of(label);
  const std::size_t sizes = symbol.ends_with(kClose) ? symbol.rfind(kOpen) : std::string::npos;
  if (sizes != std::string::npos) {
    const std::size_t begin = sizes + kOpen.size();
    CGRT_RETURN_IF_ERROR(
        read_sizes(std::string_view(symbol).substr(begin, symbol.size() - kClose.size() - begin), out));
    symbol.resize(sizes);
  } else {
    out.grid = out.block = {0, 0, 0};
  }
  if (symbol.empty()) return absl::InvalidArgumentError("the label does not name the kernel");
  const auto [known, is_new] = known_functions_.try_emplace(symbol);
  if (is_new) known->second = functions_.add({.name = kernel_name(symbol), .parameters = {}, .has_parameters = false});
  out.function = known->second;
  return read_attributes(label, out.attributes);
}

absl::Status DriverNodes::read_sizes(std::string_view sizes, ir::KernelParams& out) {
  std::string_view rest = sizes;
  const bool is_read = take_dim(rest, out.grid) && take(rest, ',') && take_dim(rest, out.block) && take(rest, ',') &&
                       take_number(rest, out.shared_bytes) && rest.empty();
  return is_read ? absl::OkStatus() : offence("the launch", sizes, "a grid, a block and bytes of shared memory");
}

absl::Status DriverNodes::read_attributes(const DriverLabel& label, ir::LaunchAttributes& out) {
  std::uint32_t cooperative = 0;
  CGRT_RETURN_IF_ERROR(read_number(label, "cooperative", cooperative));
  out.cooperative = cooperative != 0;
  if (const std::string_view text = label.value("priority"); !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.priority);
    if (error != std::errc() || end != text.data() + text.size()) return offence("priority", text, "a number");
  }
  for (const DriverLabel::Row& row : label.rows) {
    const std::string key = plain_key(row.key);
    const bool is_preferred = key.starts_with("preferredclusterdim");
    if ((!is_preferred && !key.starts_with("clusterdim")) || row.values.empty()) continue;
    ir::Dim3 cluster;
    std::string_view rest = row.values[0];
    if (!take_dim(rest, cluster) || !rest.empty()) return offence(row.key, row.values[0], "like (2,1,1)");
    if (cluster == ir::Dim3{0, 0, 0}) cluster = {};
    (is_preferred ? out.preferred_cluster : out.cluster) = cluster;
  }
  ir::AccessPolicyWindow& window = out.access_policy;
  CGRT_RETURN_IF_ERROR(read_number(label, "accessPolicyWindow.num_bytes", window.bytes));
  if (window.bytes == 0) return absl::OkStatus();
  std::uint64_t base = 0;
  CGRT_RETURN_IF_ERROR(read_number(label, "accessPolicyWindow.base_ptr", base));
  // Its bytes may be of several allocations.
  window.base = pointer_to({.address = base});
  const std::string_view ratio = label.value("accessPolicyWindow.hitRatio");
  if (!ratio.empty() &&
      (!absl::SimpleAtof({ratio.data(), ratio.size()}, &window.hit_ratio) || !std::isfinite(window.hit_ratio))) {
    return offence("accessPolicyWindow.hitRatio", ratio, "a number");
  }
  CGRT_RETURN_IF_ERROR(read_property(label, "accessPolicyWindow.hitProp", window.hit));
  return read_property(label, "accessPolicyWindow.missProp", window.miss);
}

absl::Status DriverNodes::read_memcpy(const DriverLabel& label, ir::Node& out) {
  ir::MemcpyParams copy;
  std::string kind(label.value("kind"));
  if (label.lines.size() > 1) {  // "(DtoD,4096)"
    const std::vector<std::string> parts = absl::StrSplit(label.lines[1], absl::ByAnyChar("(,)"), absl::SkipEmpty());
    if (parts.size() == 2) {
      kind = parts[0];
      copy.width_bytes = parse_number(parts[1]).value_or(0);
    }
  }
  CGRT_RETURN_IF_ERROR(read_number(label, "Extent.Width", copy.width_bytes));
  CGRT_RETURN_IF_ERROR(read_number(label, "Extent.Height", copy.height));
  CGRT_RETURN_IF_ERROR(read_number(label, "Extent.Depth", copy.depth));
  if (copy.width_bytes == 0 || copy.height == 0 || copy.depth == 0) return absl::OkStatus();  // not known, or nothing
  End source, destination;
  CGRT_RETURN_IF_ERROR(source.read(label, "srcPtr", "srcPos"));
  CGRT_RETURN_IF_ERROR(destination.read(label, "dstPtr", "dstPos"));
  const bool has_kinds = kind.size() >= 4 && kind.substr(1, 2) == "to";
  const auto operand = [&](const End& end, char letter) -> std::optional<ir::Pointer> {
    const ir::MemoryKind memory = has_kinds ? memory_of(letter) : ir::MemoryKind::kUnknown;
    if (memory == ir::MemoryKind::kArray) return std::nullopt;
    Operand one{.bytes = end.extent(copy), .kind = memory};
    if (end.address != 0) one.address = end.begin();
    return pointer_to(one);
  };
  copy.destination = operand(destination, has_kinds ? kind[3] : ' ');
  copy.source = operand(source, has_kinds ? kind[0] : ' ');
  if (copy.height > 1 || copy.depth > 1) {
    copy.destination_pitch = destination.pitch;
    copy.source_pitch = source.pitch;
  }
  out.params = copy;
  return absl::OkStatus();
}

absl::Status DriverNodes::read_memset(const DriverLabel& label, ir::Node& out) {
  ir::MemsetParams set;
  std::uint64_t address = 0;
  CGRT_RETURN_IF_ERROR(read_number(label, "dptr", address));
  CGRT_RETURN_IF_ERROR(read_number(label, "value", set.value));
  CGRT_RETURN_IF_ERROR(read_number(label, "elementSize", set.element_bytes));
  CGRT_RETURN_IF_ERROR(read_number(label, "width", set.width));
  CGRT_RETURN_IF_ERROR(read_number(label, "height", set.height));
  CGRT_RETURN_IF_ERROR(read_number(label, "pitch", set.pitch));
  if (set.width == 0 || set.height == 0) return absl::OkStatus();  // not known, or nothing
  if (set.element_bytes != 1 && set.element_bytes != 2 && set.element_bytes != 4) {
    return offence("elementSize", label.value("elementSize"), "1, 2 or 4");
  }
  if (set.height == 1) set.pitch = 0;
  Operand operand{.bytes = (set.height - 1) * set.pitch + set.width * set.element_bytes};
  if (address != 0) operand.address = address;
  set.destination = pointer_to(operand);
  out.params = set;
  return absl::OkStatus();
}

void DriverNodes::read_event(const DriverLabel& label, ir::Node& out) {
  for (const DriverLabel::Row& row : label.rows) {
    if (!plain_key(row.key).starts_with("event") || row.values.empty()) continue;
    const auto number = static_cast<std::uint32_t>(events_.size());
    out.params = ir::EventParams{events_.try_emplace(row.values[0], number).first->second};
    return;
  }
}

absl::Status DriverNodes::read_memory(const DriverLabel& label, ir::Node& out) {
  std::uint64_t address = 0, bytes = 0;
  for (const char* key : {"dptr", "ptr", "address"}) CGRT_RETURN_IF_ERROR(read_number(label, key, address));
  for (const char* key : {"bytesize", "bytes", "size"}) CGRT_RETURN_IF_ERROR(read_number(label, key, bytes));
  if (address == 0) return absl::OkStatus();
  if (out.kind == ir::NodeKind::kMemFree) {
    out.params = ir::MemFreeParams{pointer_to({.address = address})};
  } else if (bytes != 0) {
    const Operand operand{address, bytes, ir::MemoryKind::kDevice, bytes};
    out.params = ir::MemAllocParams{pointer_to(operand), bytes};
  }
  return absl::OkStatus();
}

ir::Pointer DriverNodes::pointer_to(const Operand& operand) {
  operands_.push_back(operand);
  return {static_cast<std::uint32_t>(operands_.size() - 1), 0};
}

void DriverNodes::finish() {
  std::vector<std::uint32_t> order;  // of operands, by address; none in front
  order.resize(operands_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return operands_[a].address < operands_[b].address; });
  struct Group {
    std::uint64_t begin = 0, last = 0;  // bytes
    ir::Allocation allocation;
    std::optional<std::uint32_t> id;
  };
  std::vector<Group> groups;
  std::vector<std::size_t> group_of(operands_.size());
  bool is_placed = false;  // the last group
  for (const std::uint32_t one : order) {
    const Operand& operand = operands_[one];
    const std::uint64_t begin = operand.address.value_or(0);
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - begin;
    const std::uint64_t last = begin + std::min(std::max<std::uint64_t>(operand.bytes, 1) - 1, room);
    if (groups.empty() || !is_placed || begin > groups.back().last) groups.push_back({begin, last, {}, {}});
    is_placed = operand.address.has_value();
    Group& group = groups.back();
    group.last = std::max(group.last, last);
    if (group.allocation.kind == ir::MemoryKind::kUnknown) group.allocation.kind = operand.kind;
    if (begin == group.begin) group.allocation.bytes = std::max(group.allocation.bytes, operand.allocation_bytes);
    group_of[one] = groups.size() - 1;
  }
  for (ir::Node& node : graph_.nodes) {
    visit_pointers(node, [&](ir::Pointer& pointer) {
      const Operand& operand = operands_[pointer.allocation];
      Group& group = groups[group_of[pointer.allocation]];
      if (!group.id.has_value()) {
        group.id = static_cast<std::uint32_t>(graph_.allocations.size());
        if (group.last - group.begin >= group.allocation.bytes) group.allocation.bytes = 0;  // more than the node's
        graph_.allocations.push_back(group.allocation);
      }
      pointer = {*group.id, operand.address.value_or(0) - group.begin};
    });
  }
}

}  // namespace cgrt::inspect
