#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/cubin.h"
#include "cgrt/bundle/pointers.h"
#include "cgrt/bundle/prepared.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::internal {
namespace {

std::string describe(const ir::GraphIr& graph, std::size_t n) {
  const ir::Node& node = graph.nodes[n];
  const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
  const std::string what = kernel != nullptr ? absl::StrCat("kernel \"", function_of(graph, *kernel).name, "\"")
                                             : std::string(to_string(node.kind));
  return absl::StrCat("Node ", n, " (", what, ")");
}

absl::Status cannot_save(const ir::GraphIr& graph, std::size_t n, std::string_view why) {
  return absl::UnimplementedError(absl::StrCat(describe(graph, n), " cannot be saved: ", std::string(why), "."));
}

// Empty: nodes of that kind can be replayed elsewhere.
std::string_view why_not(ir::NodeKind kind) {
  switch (kind) {
    case ir::NodeKind::kHost:
      return "what it calls is in this process. Do that work before or after the launch, or in a kernel";
    case ir::NodeKind::kConditional:
      return "conditional nodes are not supported. Launch their bodies as graphs of their own";
    case ir::NodeKind::kEventWait:
      return "the event is recorded outside of the graph. Let the stream wait for it before the launch";
    case ir::NodeKind::kSemaphoreSignal:
    case ir::NodeKind::kSemaphoreWait:
      return "its semaphore is of another process or API. Signal and wait in the stream, outside of the graph";
    default: return "";
  }
}

bool is_gone(const ir::Allocation& allocation) { return allocation.kind == ir::MemoryKind::kUnknown; }

// Reads what snapshot() does not tell.
class Preparer {
 public:
  Preparer(Saver::Prepared& out, const std::vector<CUgraphNode>& handles, const CodeOf& code_of, LoadedModules& modules)
      : out_(out), handles_(handles), code_of_(code_of), modules_(modules) {}

  absl::Status run() {
    for (std::size_t n = 0; n < handles_.size(); ++n) {
      const ir::Node& node = out_.graph.nodes[n];
      if (const std::string_view why = why_not(node.kind); !why.empty()) return cannot_save(out_.graph, n, why);
      if (node.kind == ir::NodeKind::kKernel) CGRT_RETURN_IF_ERROR(read_kernel(n));
      if (node.kind == ir::NodeKind::kMemcpy) CGRT_RETURN_IF_ERROR(read_copy(n));
      if (node.kind == ir::NodeKind::kMemAlloc) add_own(n);
      if (node.kind == ir::NodeKind::kMemFree) CGRT_RETURN_IF_ERROR(free_own(n));
      if (node.kind == ir::NodeKind::kBatchMemOp && std::get<ir::BatchMemOpParams>(node.params).operations.empty()) {
        return cannot_save(out_.graph, n, "barriers and flushes of memory operations are not supported");
      }
    }
    if (out_.context == nullptr) {  // no kernel says in which context they run
      CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetCurrent(&out_.context), "cuCtxGetCurrent"));
      if (out_.context == nullptr) {
        return absl::FailedPreconditionError(
            "A graph without kernels is saved in the context that is current, and there is none. Make its context "
            "current.");
      }
    }
    CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(out_.context).device());
    out_.device = device.ordinal();
    return check_devices();
  }

 private:
  absl::Status read_kernel(std::size_t n) {
    const driver::Api& api = driver::api();
    CUDA_KERNEL_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(api.GraphKernelNodeGetParams(handles_[n], &params), "cuGraphKernelNodeGetParams"));
    if (out_.context == nullptr) out_.context = params.ctx;
    if (params.ctx != out_.context) {
      return cannot_save(out_.graph, n, "it runs in another context than the kernels before it, and a bundle has one");
    }
    const void* const key = params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
    auto known = kernels_.find(key);
    if (known == kernels_.end()) {
      CGRT_ASSIGN_OR_RETURN(const std::uint32_t kernel, add_kernel(n, params));
      known = kernels_.emplace(key, kernel).first;
    }
    out_.node_kernels.push_back(known->second);
    return absl::OkStatus();
  }

  // Its number in Prepared::kernels.
  absl::StatusOr<std::uint32_t> add_kernel(std::size_t n, const CUDA_KERNEL_NODE_PARAMS& params) {
    const driver::Api& api = driver::api();
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(params.ctx));
    CUfunction function = params.func;
    if (function == nullptr) {
      CGRT_RETURN_IF_ERROR(driver::to_status(api.KernelGetFunction(&function, params.kern), "cuKernelGetFunction"));
    }
    const char* symbol = nullptr;
    CGRT_RETURN_IF_ERROR(driver::to_status(api.FuncGetName(&symbol, function), "cuFuncGetName"));
    saved::Kernel kernel{.symbol = symbol};
    const absl::StatusOr<std::string_view> image = code_of_(function, kernel.symbol);
    if (!image.ok()) return driver::prefix(image.status(), absl::StrCat("The code of ", describe(out_.graph, n)));
    const absl::StatusOr<std::uint32_t> module = modules_.add(function, *image);
    if (!module.ok()) return driver::prefix(module.status(), absl::StrCat("The code of ", describe(out_.graph, n)));
    kernel.module = *module;
    CGRT_RETURN_IF_ERROR(check_code(n, modules_[*module], kernel.symbol));
    CGRT_RETURN_IF_ERROR(read_attributes(function, kernel));
    const auto found = std::find(out_.kernels.begin(), out_.kernels.end(), kernel);
    const auto number = static_cast<std::uint32_t>(found - out_.kernels.begin());
    if (found == out_.kernels.end()) out_.kernels.push_back(std::move(kernel));
    return number;
  }

  absl::Status check_code(std::size_t n, const LoadedModule& module, const std::string& symbol) const {
    const Cubin::Function* const code = module.cubin != nullptr ? module.cubin->find(symbol) : nullptr;
    if (code == nullptr) return absl::OkStatus();
    if (code->uses_textures) {
      return cannot_save(out_.graph, n,
                         "it uses textures or surfaces, whose handles are those of this process. Read and write memory "
                         "in their place");
    }
    if (code->uses_heap) {
      return cannot_save(out_.graph, n,
                         "it uses the device's heap (malloc, free), whose memory is not known. Allocate memory before "
                         "the launch");
    }
    return absl::OkStatus();
  }

  static absl::Status read_attributes(CUfunction function, saved::Kernel& kernel) {
    constexpr int kDefaultShared = 48 << 10;  // of a block, with what is static
    const auto ask = [&](CUfunction_attribute attribute) -> absl::StatusOr<int> {
      int value = 0;
      CGRT_RETURN_IF_ERROR(
          driver::to_status(driver::api().FuncGetAttribute(&value, attribute, function), "cuFuncGetAttribute"));
      return value;
    };
    CGRT_ASSIGN_OR_RETURN(const int fixed, ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    CGRT_ASSIGN_OR_RETURN(const int shared, ask(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
    CGRT_ASSIGN_OR_RETURN(const int carveout, ask(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
    CGRT_ASSIGN_OR_RETURN(const int large, ask(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
    if (shared != std::max(kDefaultShared - fixed, 0)) {
      kernel.max_dynamic_shared_bytes = static_cast<std::uint32_t>(shared);
    }
    if (carveout != CU_SHAREDMEM_CARVEOUT_DEFAULT) kernel.preferred_carveout_percent = carveout;
    kernel.allows_large_clusters = large != 0;
    return absl::OkStatus();
  }

  absl::Status read_copy(std::size_t n) {
    const auto& copy = std::get<ir::MemcpyParams>(out_.graph.nodes[n].params);
    if (!copy.destination.has_value() || !copy.source.has_value()) {
      return cannot_save(out_.graph, n, "it copies from or into an array. Copy from or into linear memory");
    }
    CUDA_MEMCPY3D params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphMemcpyNodeGetParams(handles_[n], &params), "cuGraphMemcpyNodeGetParams"));
    if (copy.depth > 1) {
      out_.slices.push_back({static_cast<std::uint32_t>(n), params.srcHeight, params.dstHeight});
    }
    for (const auto& [pointer, pitch, rows] : {std::tuple{*copy.destination, copy.destination_pitch, params.dstHeight},
                                               {*copy.source, copy.source_pitch, params.srcHeight}}) {
      if (out_.graph.allocations[pointer.allocation].kind != ir::MemoryKind::kPageableHost) continue;
      const std::uint64_t bytes = ((copy.depth - 1) * rows + copy.height - 1) * pitch + copy.width_bytes;
      out_.host_operands.push_back({out_.ids[pointer.allocation].start + pointer.offset, bytes});
    }
    return absl::OkStatus();
  }

  void add_own(std::size_t n) {
    const auto& alloc = std::get<ir::MemAllocParams>(out_.graph.nodes[n].params);
    out_.own.push_back({out_.ids[alloc.address.allocation].start + alloc.address.offset, alloc.bytes, false});
  }

  absl::Status free_own(std::size_t n) {
    const ir::Pointer& freed = std::get<ir::MemFreeParams>(out_.graph.nodes[n].params).address;
    const CUdeviceptr address = out_.ids[freed.allocation].start + freed.offset;
    const auto found = std::find_if(out_.own.begin(), out_.own.end(),
                                    [&](const OwnMemory& one) { return one.address == address && !one.is_freed; });
    if (found == out_.own.end()) return cannot_save(out_.graph, n, "it frees memory that another graph allocates");
    found->is_freed = true;
    return absl::OkStatus();
  }

  absl::Status check_devices() const {
    const ir::GraphIr& graph = out_.graph;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const auto elsewhere = [&](int device) { return device >= 0 && device != out_.device; };
      std::optional<std::uint32_t> other, gone;
      const auto look_at = [&](const ir::Pointer& pointer) {
        const ir::Allocation& allocation = graph.allocations[pointer.allocation];
        if (elsewhere(allocation.device)) other = allocation.device;
        if (is_gone(allocation)) gone = pointer.allocation;
      };
      if (const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[n].params); kernel != nullptr) {
        for (const ir::InnerPointer& one : kernel->pointers) look_at(one.pointer);
      }
      visit_operands(graph.nodes[n], look_at);
      if (elsewhere(graph.nodes[n].device)) other = graph.nodes[n].device;
      if (other.has_value()) {
        return cannot_save(graph, n,
                           absl::StrCat("it uses device ", *other, " and the graph device ", out_.device,
                                        ", and a bundle has one device"));
      }
      if (gone.has_value()) return cannot_save(graph, n, "the driver does not know memory that it uses");
    }
    return absl::OkStatus();
  }

  Saver::Prepared& out_;
  const std::vector<CUgraphNode>& handles_;
  const CodeOf& code_of_;
  LoadedModules& modules_;
  absl::flat_hash_map<const void*, std::uint32_t> kernels_;  // by function
};

const ir::Pointer* operand_of(const ir::GraphIr& graph, const OperandPlace& place) {
  const ir::Node& node = graph.nodes[place.node];
  if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params); kernel != nullptr) {
    const std::vector<ir::Argument> arguments = arguments_of(graph, *kernel);
    return place.operand < arguments.size() ? arguments[place.operand].pointer() : nullptr;
  }
  const ir::Pointer* found = nullptr;
  std::uint32_t number = 0;
  visit_operands(node, [&](const ir::Pointer& pointer) {
    if (number++ == place.operand) found = &pointer;
  });
  return found;
}

// Those named by an operand get its address.
absl::Status resolve(const Saver::Prepared& graph, const char* what, std::vector<BufferMark>& marks) {
  std::set<std::string> names;
  for (BufferMark& mark : marks) {
    const std::string where = absl::StrCat("The ", what, " \"", mark.name, "\"");
    if (!saved::is_name(mark.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " has a name that none can have: use 1 to 100 letters, digits, '_', '-' and '.'."));
    }
    if (!names.insert(mark.name).second) return absl::InvalidArgumentError(absl::StrCat(where, " is named twice."));
    if (!mark.place.has_value()) continue;
    if (mark.place->node >= graph.graph.nodes.size()) {
      return absl::InvalidArgumentError(absl::StrCat(where, " is of node ", mark.place->node, ", and the graph has ",
                                                     graph.graph.nodes.size(), " nodes."));
    }
    const ir::Pointer* const pointer = operand_of(graph.graph, *mark.place);
    if (pointer == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where, " is operand ", mark.place->operand, " of node ",
                                                     mark.place->node, ", which is no address."));
    }
    mark.address = graph.ids[pointer->allocation].start + pointer->offset + mark.place->offset;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::uint32_t> LoadedModules::add(CUfunction function, std::string_view image) {
  const driver::Api& api = driver::api();
  CUmodule handle = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(api.FuncGetModule(&handle, function), "cuFuncGetModule"));
  const saved::Hash code = saved::hash_of(std::as_bytes(std::span(image)));
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const bool is_same = modules_[i].variables.empty() || modules_[i].handle == handle;
    if (modules_[i].code == code && is_same) return static_cast<std::uint32_t>(i);
  }
  if (image.size() > saved::kMaxCodeBytes) {
    return absl::UnimplementedError(
        absl::StrCat("It has ", image.size(), " bytes, and a module of a bundle at most ", saved::kMaxCodeBytes, "."));
  }
  LoadedModule module{.image = std::make_shared<const std::string>(image), .code = code, .handle = handle};
  if (is_cubin(image)) {
    CGRT_ASSIGN_OR_RETURN(Cubin cubin, Cubin::read(*module.image));
    module.cubin = std::make_shared<const Cubin>(std::move(cubin));
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<std::string> names, variables_in(image));
  for (const std::string& name : names) {
    LoadedModule::Variable variable{name, 0, 0, nullptr};
    std::size_t bytes = 0;
    const CUresult result = api.ModuleGetGlobal(&variable.address, &bytes, handle, name.c_str());
    if (result == CUDA_ERROR_NOT_FOUND) continue;  // the compiler's own, as texts of printf
    CGRT_RETURN_IF_ERROR(driver::to_status(result, "cuModuleGetGlobal"));
    variable.bytes = bytes;
    if (module.cubin != nullptr) variable.in_image = module.cubin->find_variable(name);
    if (bytes != 0) module.variables.push_back(std::move(variable));
  }
  const auto number = static_cast<std::uint32_t>(modules_.size());
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    variables_.insert_or_assign(module.variables[i].address, std::pair{number, i});
  }
  modules_.push_back(std::move(module));
  return number;
}

std::optional<LoadedModules::Found> LoadedModules::find_variable(CUdeviceptr address) const {
  const auto after = variables_.upper_bound(address);
  if (after == variables_.begin()) return std::nullopt;
  const auto [module, i] = std::prev(after)->second;
  const LoadedModule::Variable& variable = modules_[module].variables[i];
  if (address - variable.address >= variable.bytes) return std::nullopt;
  return Found{module, &variable};
}

const Cubin::Variable* LoadedModules::in_image(const Place& place) const {
  const std::optional<Found> found = place.module.has_value() ? find_variable(place.start) : std::nullopt;
  return found.has_value() ? found->variable->in_image : nullptr;
}

bool LoadedModules::has_variables_in(CUdeviceptr start, std::uint64_t bytes) const {
  const auto first = variables_.lower_bound(start);
  return (first != variables_.end() && first->first < start + bytes) || find_variable(start).has_value();
}

const Place* find_place(const Places& places, CUdeviceptr address) {
  const auto after = places.upper_bound(address);
  if (after == places.begin()) return nullptr;
  const Place& place = std::prev(after)->second;
  return address < place.end() ? &place : nullptr;
}

absl::StatusOr<std::shared_ptr<Saver::Prepared>> prepare_graph(GraphRef graph, const std::string& name,
                                                               SavedMarks marks,
                                                               absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of,
                                                               const CodeOf& code_of, LoadedModules& modules) {
  auto prepared = std::make_shared<Saver::Prepared>();
  prepared->name = name;
  std::vector<CUgraphNode> handles;
  const auto list = [&](CUgraphNode node) {
    handles.push_back(node);
    return note_of(node);
  };
  CGRT_ASSIGN_OR_RETURN(prepared->graph, snapshot(graph, list, prepared->ids));
  CGRT_RETURN_IF_ERROR(Preparer(*prepared, handles, code_of, modules).run());
  CGRT_RETURN_IF_ERROR(resolve(*prepared, "input", marks.inputs));
  CGRT_RETURN_IF_ERROR(resolve(*prepared, "output", marks.outputs));
  prepared->inputs = std::move(marks.inputs);
  prepared->outputs = std::move(marks.outputs);
  return prepared;
}

}  // namespace cgrt::internal
