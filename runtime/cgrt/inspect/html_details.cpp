#include "cgrt/inspect/html_details.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "cgrt/inspect/short_name.h"
#include "cgrt/inspect/text_table.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

DetailRow row_of(const ir::GraphIr& graph, const char* name, const ir::Pointer& pointer) {
  return {name, describe(graph, pointer), pointer.allocation};
}

NodeDetails details_of(const ir::GraphIr&, const ir::NoParams&) { return {}; }

NodeDetails details_of(const ir::GraphIr& graph, const ir::KernelParams& params) {
  const ir::LaunchAttributes standard;
  const ir::LaunchAttributes& attributes = params.attributes;
  NodeDetails out;
  out.title = ir::printable(short_name(function_of(graph, params).name));
  if (ir::has_sizes(params)) {
    out.note = absl::StrCat(describe(params.grid), " x ", describe(params.block));
    out.rows = {{"grid", describe(params.grid)},
                {"block", describe(params.block)},
                {"dynamic shared memory", count_of(params.shared_bytes, "byte", "bytes")}};
  }
  if (attributes.cooperative) out.rows.push_back({"cooperative", "yes"});
  if (attributes.cluster != standard.cluster) out.rows.push_back({"cluster", describe(attributes.cluster)});
  if (attributes.preferred_cluster != standard.preferred_cluster) {
    out.rows.push_back({"preferred cluster", describe(attributes.preferred_cluster)});
  }
  if (attributes.cluster_scheduling != standard.cluster_scheduling) {
    out.rows.push_back({"cluster scheduling", to_string(attributes.cluster_scheduling)});
  }
  if (attributes.priority != 0) out.rows.push_back({"priority", absl::StrCat(attributes.priority)});
  if (attributes.is_remote_domain) out.rows.push_back({"memory synchronization domain", "remote"});
  if (attributes.shared_carveout_percent != 0) {
    out.rows.push_back({"shared memory carveout", absl::StrCat(attributes.shared_carveout_percent, "%")});
  }
  if (const auto& window = attributes.access_policy; window.bytes != 0) {
    out.rows.push_back({"access policy window", describe(graph, window), window.base.allocation});
  }
  if (!function_of(graph, params).has_parameters) out.rows.push_back({"arguments", "not known"});
  out.arguments = arguments_of(graph, params);
  for (const ir::InnerPointer& inner : params.pointers) out.uses.emplace_back(inner.pointer.allocation, Access::kTouch);
  return out;
}

NodeDetails details_of(const ir::GraphIr& graph, const ir::MemcpyParams& params) {
  NodeDetails out;
  const std::string rows = params.height != 1 || params.depth != 1 ? absl::StrCat(params.height, " x ") : "";
  const std::string slices = params.depth != 1 ? absl::StrCat(params.depth, " x ") : "";
  out.note = absl::StrCat(slices, rows, count_of(params.width_bytes, "byte", "bytes"));
  const auto end = [&](const char* name, const std::optional<ir::Pointer>& pointer, Access access) {
    out.rows.push_back(pointer.has_value() ? row_of(graph, name, *pointer) : DetailRow{name, "array"});
    if (pointer.has_value()) out.uses.emplace_back(pointer->allocation, access);
  };
  end("destination", params.destination, Access::kWrite);
  end("source", params.source, Access::kRead);
  out.rows.push_back({"size", out.note});
  if (params.destination_pitch != 0 || params.source_pitch != 0) {
    out.rows.push_back({"destination pitch", absl::StrCat(params.destination_pitch)});
    out.rows.push_back({"source pitch", absl::StrCat(params.source_pitch)});
  }
  return out;
}

NodeDetails details_of(const ir::GraphIr& graph, const ir::MemsetParams& params) {
  NodeDetails out;
  const std::string rows = params.height != 1 ? absl::StrCat(params.height, " x ") : "";
  out.note = absl::StrCat(rows, params.width, " x ", count_of(params.element_bytes, "byte", "bytes"));
  out.rows = {row_of(graph, "destination", params.destination),
              {"value", absl::StrCat("0x", absl::Hex(params.value))},
              {"size", out.note}};
  if (params.pitch != 0) out.rows.push_back({"pitch", absl::StrCat(params.pitch)});
  out.uses.emplace_back(params.destination.allocation, Access::kWrite);
  return out;
}

NodeDetails details_of(const ir::GraphIr&, const ir::EventParams& params) {
  NodeDetails out;
  out.note = absl::StrCat("event#", params.event);
  out.rows = {{"event", out.note}};
  return out;
}

NodeDetails details_of(const ir::GraphIr&, const ir::ConditionalParams& params) {
  NodeDetails out;
  out.title = ir::to_string(params.kind);
  out.note = absl::StrCat("handle#", params.handle);
  out.rows = {{"conditional", out.title},
              {"handle", out.note},
              {"at launch", params.at_launch.has_value() ? absl::StrCat(*params.at_launch) : "as it was"}};
  return out;
}

NodeDetails details_of(const ir::GraphIr& graph, const ir::MemAllocParams& params) {
  NodeDetails out;
  out.note = count_of(params.bytes, "byte", "bytes");
  out.rows = {row_of(graph, "address", params.address), {"size", out.note}};
  out.uses.emplace_back(params.address.allocation, Access::kAllocate);
  return out;
}

NodeDetails details_of(const ir::GraphIr& graph, const ir::MemFreeParams& params) {
  NodeDetails out;
  out.note = describe(graph, params.address);
  out.rows = {row_of(graph, "address", params.address)};
  out.uses.emplace_back(params.address.allocation, Access::kFree);
  return out;
}

NodeDetails details_of(const ir::GraphIr& graph, const ir::BatchMemOpParams& params) {
  NodeDetails out;
  out.note = count_of(params.operations.size(), "operation", "operations");
  for (const ir::MemOp& operation : params.operations) {
    const bool is_write = operation.kind == ir::MemOpKind::kWrite;
    out.rows.push_back({is_write ? "write" : "wait", describe(graph, operation), operation.address.allocation});
    out.uses.emplace_back(operation.address.allocation, is_write ? Access::kWrite : Access::kRead);
  }
  return out;
}

NodeDetails details_of(const ir::GraphIr&, const ir::SemaphoreParams& params) {
  NodeDetails out;
  out.note = count_of(params.semaphores.size(), "semaphore", "semaphores");
  for (const ir::SemaphoreValue& value : params.semaphores) out.rows.push_back({"value", describe(value)});
  return out;
}

}  // namespace

const char* to_string(Access access) {
  switch (access) {
    case Access::kRead: return "read";
    case Access::kWrite: return "write";
    case Access::kAllocate: return "allocate";
    case Access::kFree: return "free";
    case Access::kTouch: break;
  }
  return "touch";
}

NodeDetails details_of(const ir::GraphIr& graph, const ir::Node& node) {
  NodeDetails out = std::visit([&](const auto& params) { return details_of(graph, params); }, node.params);
  std::sort(out.uses.begin(), out.uses.end());
  out.uses.erase(std::unique(out.uses.begin(), out.uses.end()), out.uses.end());
  return out;
}

}  // namespace cgrt::inspect
