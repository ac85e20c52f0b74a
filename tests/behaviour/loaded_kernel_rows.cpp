// Kernels that others made: from a cubin, a fatbin, PTX, a CUkernel and a CUfunction, in every target.
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "support/loaded_kernels.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 32;
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};
using Scale = Kernel<float*, const float*, float, int>;

absl::Status note_first(World& world, Notes& notes, const std::string& name, const DeviceBuffer& x) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
  notes.line(absl::StrCat(name, ": ", values[0], " ", values.back()));
  return absl::OkStatus();
}

absl::Status run_once(const Graph& graph, StreamRef stream) {
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.synchronize();
}

// 3 times x, then once more in each other target.
absl::Status note_all_targets(World& world, Notes& notes, const std::string& name, Scale scale) {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  const auto step = [&](LaunchTarget target, float factor) {
    return launch(target, kConfig, scale, x.as<float>(), x.as<const float>(), factor, kCount);
  };
  CGRT_RETURN_IF_ERROR(step(stream, 3.0f));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_first(world, notes, name + ", eager", x));
  CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(stream, [&](StreamRef s) { return step(s, 3.0f); }));
  CGRT_RETURN_IF_ERROR(notes.graph(name, captured));
  CGRT_RETURN_IF_ERROR(run_once(captured, stream));
  CGRT_RETURN_IF_ERROR(note_first(world, notes, name + ", captured", x));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const KernelNode node,
                        built.add_kernel({}, kConfig, scale, x.as<float>(), x.as<const float>(), 3.0f, kCount));
  CGRT_RETURN_IF_ERROR(run_once(built, stream));
  CGRT_RETURN_IF_ERROR(note_first(world, notes, name + ", explicit", x));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built));
  CGRT_RETURN_IF_ERROR(exec.set_params(node, kConfig, scale, x.as<float>(), x.as<const float>(), 0.5f, kCount));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_first(world, notes, name + ", set", x));
  CGRT_ASSIGN_OR_RETURN(Graph again, Graph::create(world.device()));
  Cursor place = again.cursor();
  CGRT_RETURN_IF_ERROR(step(place, 1.0f));
  CGRT_ASSIGN_OR_RETURN(GraphExec rebindable, instantiate_rebindable(again));
  CGRT_RETURN_IF_ERROR(rebindable.rebind([&](LaunchTarget target) { return step(target, 2.0f); }));
  CGRT_RETURN_IF_ERROR(rebindable.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return note_first(world, notes, name + ", rebound", x);
}

BEHAVIOUR("kernels of PTX, a cubin and a fatbin run in every target") {
  for (int i = 0; i < 3; ++i) {
    const auto [name, image] = loaded_images(i);
    CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), image));
    CGRT_ASSIGN_OR_RETURN(const std::vector<std::string> names, library.kernel_names());
    notes.line(absl::StrCat(name, ": ", absl::StrJoin(names, ", ")));
    CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
    CGRT_RETURN_IF_ERROR(note_all_targets(world, notes, name, scale));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a kernel of a CUkernel and one of a CUfunction run in every target") {
  CUkernel kernel = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve(*scale_kernel().identity(), &kernel), "resolve"));
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(const ForeignKernel by_kernel, ForeignKernel::adopt(kernel, world.device()));
  CGRT_ASSIGN_OR_RETURN(const Scale scale, by_kernel.as<float*, const float*, float, int>());
  CGRT_RETURN_IF_ERROR(note_all_targets(world, notes, "CUkernel", scale));

  CUfunction function = nullptr;
  {
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().KernelGetFunction(&function, kernel), "cuKernelGetFunction"));
  }
  CGRT_ASSIGN_OR_RETURN(const ForeignKernel by_function, ForeignKernel::adopt(function, world.device()));
  CGRT_ASSIGN_OR_RETURN(const Scale same, by_function.as<float*, const float*, float, int>());
  CGRT_RETURN_IF_ERROR(note_all_targets(world, notes, "CUfunction", same));
  CGRT_ASSIGN_OR_RETURN(const Occupancy occupied, occupancy(same, world.device(), Dim3(256), 0));
  notes.line(absl::StrCat("blocks of a CUfunction: ", occupied.blocks_per_sm));
  notes.status("suggest_config of a CUfunction", suggest_config(same, world.device(), 100).status());
  notes.status("preload of a CUfunction", preload(same, world.device()));
  notes.status("set_max_shared_bytes of a CUfunction", set_max_shared_bytes(same, world.device(), 1000));
  notes.status("set_max_shared_bytes of a CUkernel", set_max_shared_bytes(scale, world.device(), 49152));
  return absl::OkStatus();
}

BEHAVIOUR("a kernel's parameters are asked of the driver and compared with the types named for it") {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
  CGRT_ASSIGN_OR_RETURN(const KernelRef fill, library.kernel_ref("fill"));
  for (const KernelParameter& parameter : parameters_of(fill)) {
    notes.line(absl::StrCat("fill: ", parameter.bytes, " bytes at ", parameter.offset));
  }
  CGRT_ASSIGN_OR_RETURN(const KernelRef nothing, library.kernel_ref("nothing"));
  notes.line(absl::StrCat("nothing: ", parameters_of(nothing).size()));
  const auto refused = [&](const absl::Status& status, const char* sentence) {
    notes.status(sentence, status);
    EXPECT(status.message() == sentence);
  };
  notes.status("the right types", library.kernel<Range, float*, short>("fill").status());
  refused(library.kernel<Range, float*>("fill").status(),
          "Kernel \"loaded::fill\" has 3 parameters, and 2 types were named for it.");
  refused(library.kernel<Range, float*, int>("fill").status(),
          "Parameter 2 of kernel \"loaded::fill\", counted from 0, has 2 bytes at byte 24; the type that was named for "
          "it has 4 bytes at byte 24.");
  refused(library.kernel<float, float*, short>("fill").status(),
          "Parameter 0 of kernel \"loaded::fill\", counted from 0, has 16 bytes at byte 0; the type that was named for "
          "it has 4 bytes at byte 0.");
  CUkernel scale = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve(*scale_kernel().identity(), &scale), "resolve"));
  CGRT_ASSIGN_OR_RETURN(const ForeignKernel foreign, ForeignKernel::adopt(scale, world.device()));
  refused(foreign.as<float*, const float*, double, int>().status(),
          "Parameter 2 of kernel \"cgrt::testing::scale\", counted from 0, has 4 bytes at byte 16; the type that was "
          "named for it has 8 bytes at byte 16.");
  return absl::OkStatus();
}

BEHAVIOUR("a kernel with packed arguments takes a struct, and one without parameters takes none") {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
  CGRT_ASSIGN_OR_RETURN(const auto fill, library.kernel<loaded_fill>("_ZN6loaded4fillENS_5RangeEPfs"));
  Range range{2.0, 3};
  float* out = x.as<float>();
  short count = kCount;
  void* arguments[] = {&range, &out, &count};
  CGRT_RETURN_IF_ERROR(
      launch(stream, KernelLaunch{.kernel = fill.identity(), .grid = {}, .block = kCount, .arguments = arguments}));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return note_first(world, notes, "x", x);
}

BEHAVIOUR("kernels are found by their plain names where these are unique") {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_cubin()));
  for (const char* name : {"twice<float>", "loaded::twice<int>", "_ZN6loaded5twiceIfEEvPT_"}) {
    CGRT_ASSIGN_OR_RETURN(const auto kernel, library.kernel<float*>(name));
    notes.line(absl::StrCat(name, " is ", kernel.name()));
  }
  const auto refused = [&](const char* name, const char* sentence) {
    const absl::Status status = library.kernel<float*>(name).status();
    notes.status(name, status);
    EXPECT(absl::StartsWith(status.message(), sentence));
    EXPECT(absl::StrContains(status.message(), "loaded::twice<float>"));
  };
  refused("twice", "The library has several kernels named \"twice\": ");
  refused("ice<float>", "The library has no kernel named \"ice<float>\". It has ");
  notes.status("of an empty library", Library().kernel<float*>("twice").status());
  return absl::OkStatus();
}

BEHAVIOUR("what is no image of code is refused") {
  const std::string cubin(loaded_cubin());
  std::string broken(loaded_ptx());
  broken.replace(broken.find("mul.f32"), 7, "mul.f31");
  const std::pair<const char*, std::string> images[] = {{"nothing", ""},
                                                        {"text", "__global__ void scale() {}"},
                                                        {"half of a cubin", cubin.substr(0, cubin.size() / 2)},
                                                        {"a few bytes of a cubin", cubin.substr(0, 20)},
                                                        {"a few bytes of a fatbin", "\x50\xed\x55\xba\x01"}};
  for (const auto& [name, image] : images) notes.status(name, Library::load(world.device(), image).status());
  if (world.simulator() != nullptr) return absl::OkStatus();  // which compiles nothing
  const absl::StatusOr<Library> library = Library::load(world.device(), broken);
  const absl::Status status =
      library.ok() ? library->kernel<float*, const float*, float, int>("scale").status() : library.status();
  EXPECT(absl::IsInvalidArgument(status));
  EXPECT(absl::StrContains(status.message(), "f31"));
  return absl::OkStatus();
}

// The buffer that the graph's kernel scales, and what is left of the graph when its library is gone here.
BEHAVIOUR("graphs and executables keep the code of their kernels loaded") {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  const auto run = [&](const char* name, GraphExec& exec) -> absl::Status {
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return note_first(world, notes, name, x);
  };
  const auto build = [&](bool is_captured) -> absl::StatusOr<Graph> {
    CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
    CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
    const auto step = [&](LaunchTarget target) {
      return launch(target, kConfig, scale, x.as<float>(), x.as<const float>(), 2.0f, kCount);
    };
    if (is_captured) return capture(stream, step);
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(step(graph.cursor()));
    return graph;
  };
  for (const bool is_captured : {false, true}) {
    const std::string name = is_captured ? "captured" : "built";
    std::optional<GraphExec> exec;
    {
      CGRT_ASSIGN_OR_RETURN(Graph graph, build(is_captured));
      CGRT_ASSIGN_OR_RETURN(exec, instantiate(graph));
    }
    CGRT_RETURN_IF_ERROR(run(name.c_str(), *exec));
  }
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, build(false));
    CGRT_ASSIGN_OR_RETURN(const Graph adopted, Graph::adopt(std::move(graph).release(), world.device()));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(adopted));
    CGRT_RETURN_IF_ERROR(run("released and adopted", exec));
  }
  CGRT_ASSIGN_OR_RETURN(Graph around, Graph::create(world.device()));
  {
    CGRT_ASSIGN_OR_RETURN(const Graph child, build(true));
    CGRT_RETURN_IF_ERROR(around.add_child({}, child).status());
  }
  CGRT_ASSIGN_OR_RETURN(GraphExec with_child, instantiate(around));
  around = Graph();
  CGRT_RETURN_IF_ERROR(run("in a copied child", with_child));
  CGRT_ASSIGN_OR_RETURN(Graph into, Graph::create(world.device()));
  {
    CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
    CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
    Cursor place = into.cursor();
    CGRT_RETURN_IF_ERROR(capture_into(place, stream, [&](StreamRef s) {
      return launch(s, kConfig, scale, x.as<float>(), x.as<const float>(), 2.0f, kCount);
    }));
  }
  CGRT_ASSIGN_OR_RETURN(GraphExec captured_into, instantiate(into));
  CGRT_RETURN_IF_ERROR(run("captured into", captured_into));

  CGRT_ASSIGN_OR_RETURN(Graph plain, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const KernelNode node, plain.add_kernel({}, kConfig, scale_kernel(), x.as<float>(),
                                                                x.as<const float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec set, instantiate(plain));
  {
    CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
    CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
    notes.status("per-node update to a loaded kernel",
                 set.set_params(node, kConfig, scale, x.as<float>(), x.as<const float>(), 2.0f, kCount));
  }
  CGRT_RETURN_IF_ERROR(run("an executable that was set to it", set));
  CGRT_RETURN_IF_ERROR(set.set_params(node, kConfig, scale_kernel(), x.as<float>(), x.as<const float>(), 0.5f, kCount));
  return run("and back", set);
}

BEHAVIOUR("code is loaded and unloaded inside captures, and disturbs none") {
  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
    const absl::StatusOr<Graph> graph = capture(
        stream,
        [&](StreamRef s) -> absl::Status {
          CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
          CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
          CGRT_RETURN_IF_ERROR(launch(s, kConfig, scale, x.as<float>(), x.as<const float>(), 5.0f, kCount));
          CGRT_ASSIGN_OR_RETURN(const Library other, Library::load(world.device(), loaded_cubin()));
          return other.kernel<float*, const float*, float, int>("scale").status();
        },
        mode);
    notes.status(absl::StrCat("mode ", static_cast<int>(mode)), graph.status());
    if (!graph.ok()) continue;
    CGRT_RETURN_IF_ERROR(run_once(*graph, stream));
    CGRT_RETURN_IF_ERROR(note_first(world, notes, "x", x));
  }
  return absl::OkStatus();
}

BEHAVIOUR("the code of a kernel in flight may be given up") {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  {
    CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_ptx()));
    CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
    for (int i = 0; i < 100; ++i) {
      CGRT_RETURN_IF_ERROR(
          launch(stream, kConfig, scale, x.as<float>(), x.as<const float>(), i < 4 ? 2.0f : 1.0f, kCount));
    }
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return note_first(world, notes, "x", x);
}

BEHAVIOUR("per-node update of foreign kernels: nodes that another library made are found, set and switched off") {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(world.device(), loaded_cubin()));
  CGRT_ASSIGN_OR_RETURN(const Scale scale, library.kernel<loaded_scale>("scale"));
  // As another library does: with the driver alone.
  CUkernel kernel = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve(*scale.identity(), &kernel), "resolve"));
  CUgraph raw = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&raw, 0), "cuGraphCreate"));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::adopt(raw, world.device()));
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  float* data = x.as<float>();
  float factor = 2.0f;
  int count = kCount;
  void* arguments[] = {&data, &data, &factor, &count};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.kern = kernel;
  params.ctx = context;
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.blockDimX = kCount;
  params.kernelParams = arguments;
  CUgraphNode before = nullptr;
  for (int i = 0; i < 3; ++i) {
    CUgraphNode node = nullptr;
    CGRT_RETURN_IF_ERROR(driver::to_status(
        driver::api().GraphAddKernelNode(&node, raw, &before, i == 0 ? 0 : 1, &params), "cuGraphAddKernelNode"));
    before = node;
  }
  CGRT_ASSIGN_OR_RETURN(const KernelNode second, find_node<KernelNode>(graph, {.name = "scale", .nth = 1}));
  CGRT_ASSIGN_OR_RETURN(const KernelNode third, find_node<KernelNode>(graph, {.name = "scale", .nth = 2}));

  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.set_params(second, kConfig, scale, data, data, 10.0f, kCount));
  CGRT_RETURN_IF_ERROR(exec.set_enabled(third, NodeState::kDisabled));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(note_first(world, notes, "2 * 10", x));
  CGRT_RETURN_IF_ERROR(graph.set_params(second, kConfig, scale, data, data, 0.5f, kCount));
  CGRT_ASSIGN_OR_RETURN(GraphExec fresh, instantiate(graph));
  CGRT_RETURN_IF_ERROR(fresh.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return note_first(world, notes, "2 * 0.5 * 2 of that", x);
}

}  // namespace
}  // namespace cgrt::testing
