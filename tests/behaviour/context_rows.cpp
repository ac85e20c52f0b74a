// Contexts that are not a device's primary one. The simulator has none of these: on it the rows do
// nothing (exemptions.h).
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "support/driver_entry.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

// Every target in `context`, with a stream of it.
absl::Status use(Notes& notes, CUcontext context, Stream stream) {
  std::vector<float> values(kCount, 1.0f);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, DeviceBuffer::create(context, kCount * sizeof(float)));
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), x.data(), values.data(), x.size_bytes()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(context));
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount));
    return launch(target, kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, kCount);
  };
  notes.status("eager", step(stream.ref()));
  notes.status("eager, bare handle", step(stream.ref().get()));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(context));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(step(cursor));
  for (const bool has_current : {false, true}) {  // nodes are made in another way when one is current
    std::optional<ScopedContext> current;
    if (has_current) {
      CGRT_ASSIGN_OR_RETURN(ScopedContext entered, ScopedContext::enter(context));
      current.emplace(std::move(entered));
    }
    CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 0.0f, kCount));
  }
  for (const Graph* graph : {&captured, &built}) {
    CGRT_RETURN_IF_ERROR(notes.graph("graph", *graph));
    std::size_t count = 8;
    CUgraphNode nodes[8];
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphGetNodes(graph->ref().get(), nodes, &count), "cuGraphGetNodes"));
    for (std::size_t i = 0; i < count; ++i) {
      CUDA_KERNEL_NODE_PARAMS params{};
      CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphKernelNodeGetParams(nodes[i], &params), "params"));
      notes.line(params.ctx == context ? "a node of the context" : "a node of another context");
    }
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    notes.status("launch", exec.launch(stream.ref()));
    notes.status("record", stream.ref().record(event.ref()));
    notes.status("set", exec.set_params(KernelNode(nodes[0]), kConfig, scale_kernel(), x.as<float>(), x.as<float>(),
                                        3.0f, kCount));
    notes.status("launch", exec.launch(stream.ref()));
    notes.status("synchronize", stream.ref().synchronize());
    notes.completion("event", event.ref().completion());
  }
  notes.status("occupancy", occupancy(scale_kernel(), context, Dim3(64), 0).status());
  CGRT_ASSIGN_OR_RETURN(const int max_blocks, max_cooperative_blocks(scale_kernel(), context, Dim3(1024), 0));
  notes.line("cooperative blocks: " + std::to_string(max_blocks));
  for (const int blocks : {max_blocks, max_blocks + 1}) {
    const LaunchConfig config{.grid = std::uint32_t(blocks), .block = 1024, .attributes = {.cooperative = true}};
    notes.status(blocks == max_blocks ? "a launch of as many" : "a launch of one more",
                 launch(stream, config, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, kCount));
  }
  notes.status("preload", preload(add_kernel(), context));
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), values.data(), x.data(), x.size_bytes()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line("x = " + std::to_string(values[0]));
  return absl::OkStatus();
}

BEHAVIOUR("every target works in a context that is not the primary one") {
  if (world.simulator() != nullptr) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(auto create, driver_entry<decltype(&cuCtxCreate)>("cuCtxCreate"));
  CGRT_ASSIGN_OR_RETURN(auto destroy, driver_entry<decltype(&cuCtxDestroy)>("cuCtxDestroy"));
  for (int i = 0; i < 2; ++i) {  // the second time, CUDA may give the same address
    CUcontext context = nullptr, popped = nullptr;
    CUctxCreateParams params{};
    CGRT_RETURN_IF_ERROR(driver::to_status(create(&context, &params, 0, 0), "cuCtxCreate"));
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxPopCurrent(&popped), "cuCtxPopCurrent"));
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(context));
    CGRT_RETURN_IF_ERROR(use(notes, context, std::move(stream)));
    CGRT_RETURN_IF_ERROR(driver::to_status(destroy(context), "cuCtxDestroy"));
    forget_contexts();
  }
  return absl::OkStatus();
}

BEHAVIOUR("every target works in a green context") {
  if (world.simulator() != nullptr) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(auto resource_of, driver_entry<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource"));
  CGRT_ASSIGN_OR_RETURN(auto split,
                        driver_entry<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount"));
  CGRT_ASSIGN_OR_RETURN(auto describe, driver_entry<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc"));
  CGRT_ASSIGN_OR_RETURN(auto create, driver_entry<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate"));
  CGRT_ASSIGN_OR_RETURN(auto context_of, driver_entry<decltype(&cuCtxFromGreenCtx)>("cuCtxFromGreenCtx"));
  CGRT_ASSIGN_OR_RETURN(auto create_stream, driver_entry<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate"));
  CGRT_ASSIGN_OR_RETURN(auto destroy, driver_entry<decltype(&cuGreenCtxDestroy)>("cuGreenCtxDestroy"));
  CGRT_RETURN_IF_ERROR(ContextRef(world.device()).get().status());
  CUdevResource all{}, some{}, rest{};
  unsigned groups = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  const auto made = [](CUresult result) { return driver::to_status(result, "making a green context"); };
  CGRT_RETURN_IF_ERROR(made(resource_of(0, &all, CU_DEV_RESOURCE_TYPE_SM)));
  CGRT_RETURN_IF_ERROR(made(split(&some, &groups, &all, &rest, 0, 16)));
  CGRT_RETURN_IF_ERROR(made(describe(&description, &some, 1)));
  CGRT_RETURN_IF_ERROR(made(create(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM)));
  CGRT_RETURN_IF_ERROR(made(context_of(&context, green)));
  CGRT_RETURN_IF_ERROR(made(create_stream(&stream, green, CU_STREAM_NON_BLOCKING, 0)));
  CGRT_ASSIGN_OR_RETURN(Stream owned, Stream::adopt(stream));
  CGRT_RETURN_IF_ERROR(use(notes, context, std::move(owned)));
  CGRT_RETURN_IF_ERROR(made(destroy(green)));
  forget_contexts();
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
