// The messages in docs/errors.md are those of the library, each below the sentence that introduces it.
// CGRT_WRITE_DOCS=1 writes the page's messages anew.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

// What the cases work on, made anew for each.
struct Objects {
  absl::Status launch(LaunchTarget target, const LaunchConfig& config = {.grid = 1, .block = 64}) const {
    return cgrt::launch(target, config, scale_kernel(), x, x, 2.0f, 64);
  }
  Graph graph_of(const std::vector<LaunchConfig>& launches) const {
    Graph graph = *Graph::create(device);
    Cursor cursor = graph.cursor();
    for (const LaunchConfig& config : launches) REQUIRE_OK(launch(cursor, config));
    return graph;
  }
  // What a capture of `stream` reports in which `record` is called and its answer ignored.
  template <class Record>
  absl::Status capturing(Record record) const {
    return capture(stream,
                   [&](StreamRef s) -> absl::Status {
                     REQUIRE_OK(launch(s));
                     static_cast<void>(record(s));
                     return absl::OkStatus();
                   })
        .status();
  }

  Simulator simulator;
  DeviceRef device{0};
  CUcontext context = *ContextRef(device).get();
  Stream stream = *Stream::create(device), side = *Stream::create(device);
  Event event = *Event::create(device);
  PinnedBuffer buffer = *PinnedBuffer::create(device, 256), more = *PinnedBuffer::create(device, 4096);
  float* x = buffer.as<float>();
};

constexpr LaunchConfig kPlain{.grid = 8, .block = 64};
constexpr LaunchConfig kClusterOf2{.grid = 8, .block = 64, .attributes = {.cluster = {2}}};
constexpr LaunchConfig kClusterOf4{.grid = 8, .block = 64, .attributes = {.cluster = {4}}};

// Nullopt: not on this machine.
using Answer = std::optional<absl::Status>;
struct Case {
  const char* lead;  // the paragraph above the message
  Answer (*provoke)(const Objects&);
};

const Case kCases[] = {
    // ---- launches
    {"A launch that no device can run:",
     [](const Objects& w) -> Answer { return w.launch(w.stream, {.grid = 1, .block = 2048}); }},
    {"Too much dynamic shared memory:",
     [](const Objects& w) -> Answer { return w.launch(w.stream, {.grid = 1, .block = 64, .shared_bytes = 60000}); }},
    {"A grid that is not a multiple of the cluster:",
     [](const Objects& w) -> Answer {
       return w.launch(w.stream, {.grid = 3, .block = 64, .attributes = {.cluster = {2}}});
     }},
    {"A cluster that is too large:",
     [](const Objects& w) -> Answer {
       return w.launch(w.stream, {.grid = 32, .block = 64, .attributes = {.cluster = {16}}});
     }},
    {"A cooperative launch whose blocks do not fit the device at once:",
     [](const Objects& w) -> Answer {
       return w.launch(w.stream, {.grid = 100000, .block = 64, .attributes = {.cooperative = true}});
     }},
    {"`suggest_config` where no block fits:",
     [](const Objects& w) -> Answer {
       return suggest_config(add_kernel(), w.device, 1000, [](int) { return std::size_t{61440}; }).status();
     }},
    {"A kernel without a host body, on the simulator:",
     [](const Objects& w) -> Answer {
       return launch(w.stream, LaunchConfig{.grid = 1, .block = 64}, bodiless_kernel(), w.x);
     }},

    {"A type that is not that of a loaded kernel's parameter:",
     [](const Objects& w) -> Answer {
       const Library library = *Library::load(w.device, loaded_ptx());
       return library.kernel<float*, const float*, double, int>("scale").status();
     }},
    {"A kernel that a library does not have:",
     [](const Objects& w) -> Answer {
       const Library library = *Library::load(w.device, loaded_ptx());
       return library.kernel<float*>("twise<float>").status();
     }},
    {"A plain name that two kernels of a library have:",
     [](const Objects& w) -> Answer {
       const Library library = *Library::load(w.device, loaded_ptx());
       return library.kernel<float*>("twice").status();
     }},
    {"Half of a cubin:",
     [](const Objects& w) -> Answer {
       std::string cubin(1000, '\0');  // a head, which says that the sections are listed from byte 12000 on
       cubin.replace(0, 4,
                     "\x7f"
                     "ELF");
       const std::uint64_t sections = 12000;
       std::memcpy(&cubin[40], &sections, sizeof(sections));
       return Library::load(w.device, cubin).status();
     }},
    {"A copy where the target is to record an event:",
     [](const Objects& w) -> Answer {
       return copy(LaunchTarget(w.stream).recording(w.event, EdgeKind::kProgrammatic), w.x, w.more.data(), 16);
     }},
    {"A launch of an executable with guarded addresses, of which one is of memory that is gone:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({kPlain});
       std::optional<PinnedBuffer> source = *PinnedBuffer::create(w.device, 1024);
       REQUIRE_OK(graph.add_copy({}, {.destination = w.x, .source = source->data(), .bytes = 256}));
       GraphExec exec = *instantiate(graph);
       REQUIRE_OK(exec.guard_addresses());
       source.reset();
       return exec.launch(w.stream);
     }},

    // ---- captures
    {"A capture whose side stream was not joined back:",
     [](const Objects& w) -> Answer {
       return w.capturing([&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(s.record(w.event));
         CGRT_RETURN_IF_ERROR(w.side.ref().wait(w.event));
         return launch(w.side, kPlain, shift_kernel(), w.x, w.x, 1.0f, 64);
       });
     }},
    {"`synchronize` of a stream that is being captured:",
     [](const Objects& w) -> Answer {
       return capture(w.stream, [](StreamRef s) { return s.synchronize(); }).status();
     }},
    {"`synchronize` of another stream during a capture:",
     [](const Objects& w) -> Answer {
       return capture(w.stream, [&](StreamRef) { return w.side.ref().synchronize(); }).status();
     }},
    {"An allocation inside a capture, ignored by the callback:",
     [](const Objects& w) -> Answer {
       return w.capturing([&](StreamRef) { return DeviceBuffer::create(w.device, 64).status(); });
     }},
    {"The same when another library allocates:",
     [](const Objects& w) -> Answer {
       return w.capturing([&](StreamRef) {
         CUdeviceptr address = 0;
         return driver::api().MemAlloc(&address, 64);
       });
     }},
    {"The same when another thread does, while a capture in `CaptureMode::kGlobal` goes on:",
     [](const Objects& w) -> Answer {
       return capture(
                  w.stream,
                  [&](StreamRef) {
                    std::thread([&] { static_cast<void>(DeviceBuffer::create(w.device, 64)); }).join();
                    return absl::OkStatus();
                  },
                  CaptureMode::kGlobal)
           .status();
     }},
    {"A launch of another thread that is refused, which may have been into the capture:",
     [](const Objects& w) -> Answer {
       return w.capturing([&](StreamRef s) {
         std::thread([&] { static_cast<void>(w.launch(s, {.grid = 1, .block = 2048})); }).join();
         return absl::OkStatus();
       });
     }},
    {"A capture that somebody else ends:",
     [](const Objects& w) -> Answer {
       return w.capturing([&](StreamRef s) {
         CUgraph graph = nullptr;
         driver::api().StreamEndCapture(s.get(), &graph);
         return driver::api().GraphDestroy(graph);
       });
     }},
    {"More branches in a stream than there are streams for:",
     [](const Objects& w) -> Answer {
       SideStreams sides = *SideStreams::create(w.device, 1);
       const auto step = [&](LaunchTarget target) { return w.launch(target); };
       return fork_join(w.stream, sides, {step, step, step});
     }},
    {"A launch into a capture that an earlier call has ended:",
     [](const Objects& w) -> Answer {
       return capture(w.stream,
                      [&](StreamRef s) {
                        static_cast<void>(s.synchronize());
                        return w.launch(s);
                      })
           .status();
     }},
    {"A wait of the captured stream for a stream that never forked from it:",
     [](const Objects& w) -> Answer {
       absl::Status wait;
       static_cast<void>(w.capturing([&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(w.side.ref().record(w.event));
         return wait = s.wait(w.event);
       }));
       return wait;
     }},
    {"A wait for an event of another capture:",
     [](const Objects& w) -> Answer {
       absl::Status wait;
       static_cast<void>(w.capturing([&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(s.record(w.event));
         return capture(w.side, [&](StreamRef inner) { return wait = inner.wait(w.event); }).status();
       }));
       return wait;
     }},
    {"A wait for an event of a capture that has ended:",
     [](const Objects& w) -> Answer {
       CGRT_RETURN_IF_ERROR(w.capturing([&](StreamRef s) { return s.record(w.event); }));
       return w.side.ref().wait(w.event);
     }},
    {"A wait of the legacy default stream for an event of a capture:",
     [](const Objects& w) -> Answer {
       const absl::StatusOr<ScopedContext> current = ScopedContext::enter(w.context);
       absl::Status wait;
       static_cast<void>(w.capturing([&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(s.record(w.event));
         return wait = StreamRef::legacy_default().wait(w.event);
       }));
       return wait;
     }},
    {"A capture of the legacy default stream:",
     [](const Objects&) -> Answer {
       return capture(StreamRef::legacy_default(), [](StreamRef) { return absl::OkStatus(); }).status();
     }},
    {"An executable that is launched into a capture:",
     [](const Objects& w) -> Answer {
       GraphExec exec = *instantiate(w.graph_of({kPlain}));
       absl::Status launched;
       static_cast<void>(w.capturing([&](StreamRef s) { return launched = exec.launch(s); }));
       return launched;
     }},
    {"`is_complete` of a stream that is being captured:",
     [](const Objects& w) -> Answer {
       absl::Status asked;
       static_cast<void>(w.capturing([&](StreamRef s) { return asked = s.is_complete().status(); }));
       return asked;
     }},

    // ---- graphs and executables
    {"A dependency that is a node of another graph:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({}), other = w.graph_of({});
       const EmptyNode node = *other.add_empty({});
       return graph.add_kernel(after(node), kPlain, scale_kernel(), w.x, w.x, 2.0f, 64).status();
     }},
    {"A dependency that is named twice:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({});
       const EmptyNode node = *graph.add_empty({});
       return graph.add_kernel(after(node, node), kPlain, scale_kernel(), w.x, w.x, 2.0f, 64).status();
     }},
    {"A refused `update`; `UpdateReport::text` of `try_update` has the same sentences:",
     [](const Objects& w) -> Answer {
       return instantiate(w.graph_of({kPlain, kPlain}))->update(w.graph_of({kPlain, kPlain, kPlain}));
     }},
    {"An `update` that would lose launch attributes:",
     [](const Objects& w) -> Answer {
       return instantiate(w.graph_of({kClusterOf2}))->update(w.graph_of({kClusterOf4}));
     }},
    {"`set_params` with other launch attributes than the node's:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({});
       const KernelNode node = *graph.add_kernel({}, kClusterOf2, scale_kernel(), w.x, w.x, 2.0f, 64);
       return instantiate(graph)->set_params(node, kClusterOf4, scale_kernel(), w.x, w.x, 2.0f, 64);
     }},

    {"`Graph::remove` of a node of another graph:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({}), other = w.graph_of({});
       return graph.remove(*other.add_empty({}));
     }},
    {"`Graph::add_edge` beside an edge that is there:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({});
       const KernelNode first = *graph.add_kernel({}, kPlain, scale_kernel(), w.x, w.x, 2.0f, 64);
       const KernelNode second = *graph.add_kernel(after(first), kPlain, shift_kernel(), w.x, w.x, 2.0f, 64);
       return graph.add_edge(programmatic(first), second);
     }},
    {"A graph whose nodes wait for each other:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({});
       const KernelNode first = *graph.add_kernel({}, kPlain, scale_kernel(), w.x, w.x, 2.0f, 64);
       const EmptyNode second = *graph.add_empty(after(first));
       REQUIRE_OK(graph.add_edge(NodeRef(second), first));
       return instantiate(graph).status();
     }},

    {"A launch while the memory of the one before is not freed:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({});
       const GraphAllocation memory = *graph.add_alloc({}, 256);
       GraphExec exec = *instantiate(graph);
       REQUIRE_OK(exec.launch(w.stream));
       const absl::Status refused = exec.launch(w.stream);
       REQUIRE_OK(free_async(w.stream, memory.address));
       return refused;
     }},
    {"A clone of a graph that allocates:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({});
       REQUIRE_OK(graph.add_alloc({}, 256));
       return graph.clone().status();
     }},

    // ---- rebinding
    {"A rebound step with another kernel, block, shared memory or attributes than its node:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({{.grid = 1, .block = 64}});
       GraphExec exec = *instantiate_rebindable(graph);
       return exec.rebind([&](LaunchTarget target) { return w.launch(target, {.grid = 1, .block = 128}); });
     }},
    {"A step with fewer calls than the graph has nodes that calls made:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({{.grid = 1, .block = 64}, {.grid = 1, .block = 64}});
       GraphExec exec = *instantiate_rebindable(graph);
       return exec.rebind([&](LaunchTarget target) { return w.launch(target); });
     }},
    {"A graph with a programmatic edge, as libraries make them, that is to be rebindable:",
     [](const Objects& w) -> Answer {
       Graph graph = *Graph::create(w.device);
       Cursor cursor = graph.cursor();
       for (int i = 0; i < 2; ++i) {
         REQUIRE_OK(cgrt::launch(cursor.programmatic(), LaunchConfig{.grid = 1, .block = 64}, waiting_kernel(), w.x,
                                 w.x, 2.0f, 64));
       }
       return instantiate_rebindable(graph).status();
     }},
    {"`rebind` of an executable of `instantiate`:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({{.grid = 1, .block = 64}});
       GraphExec exec = *instantiate(graph);
       return exec.rebind([&](LaunchTarget target) { return w.launch(target); });
     }},
    {"A slot of another type than the argument:",
     [](const Objects& w) -> Answer {
       Graph graph = w.graph_of({{.grid = 1, .block = 64}});
       GraphExec exec = *instantiate_rebindable(graph);
       return exec.slot<double>(*find_node<KernelNode>(graph, {.name = "scale"}), 2).status();
     }},
    {"`instantiate` of a graph of `build_alternatives`:",
     [](const Objects& w) -> Answer {
       const Graph graph =
           *build_alternatives(w.device, 1, [&](LaunchTarget target, std::size_t) { return w.launch(target); });
       return instantiate(graph).status();
     }},

    // ---- objects, memory and devices
    {"A stream that was moved from, or that nothing was assigned to:",
     [](const Objects& w) -> Answer {
       const Stream stream;
       return w.launch(stream);
     }},
    {"A null context:", [](const Objects&) -> Answer { return Stream::create(CUcontext{nullptr}).status(); }},
    {"A refusal of cgrt's own, without a `CUresult`:",
     [](const Objects&) -> Answer { return Stream::adopt(CU_STREAM_LEGACY).status(); }},
    {"Memory that the device does not have:",
     [](const Objects& w) -> Answer { return DeviceBuffer::create(w.device, std::size_t{1} << 50).status(); }},
    {"A pool for graphs that cannot grow:",
     [](const Objects& w) -> Answer {
       GraphPool pool = *GraphPool::create(w.device, 1 << 20);
       REQUIRE_OK(pool.allocate(w.stream, 1000));
       return pool.allocate(w.stream, std::size_t{1} << 50).status();
     }},
    {"An address that is not a block of a pool:",
     [](const Objects& w) -> Answer { return GraphPool::create(w.device, 1 << 20)->free(w.x); }},
    {"A copy beyond the end of an allocation:",
     [](const Objects& w) -> Answer { return copy(w.stream, w.x, w.more.data(), 1024); }},
    {"A copy from null:", [](const Objects& w) -> Answer { return copy(w.stream, w.x, nullptr, 64); }},
    {"A memset beyond the end of an allocation, 64 bytes of which are before it:",
     [](const Objects& w) -> Answer { return fill32(w.stream, w.x + 16, 0, 64); }},
    {"A machine without a driver:",
     [](const Objects&) -> Answer {
       if (!absl::StartsWith(driver::load_error(), "No CUDA driver: libcuda.so.1 could not be loaded")) {
         return std::nullopt;
       }
       const driver::Api none;
       const driver::Api& simulated = driver::install(none);
       const absl::Status status = device_count().status();
       driver::restore(simulated);
       return status;
     }},
};

// What the page quotes: a block of one line between fences that name no language.
struct Quoted {
  std::string lead;
  std::size_t line;  // in the page, of the message
};
std::vector<Quoted> quoted_in(const std::vector<std::string>& page) {
  std::vector<Quoted> all;
  std::vector<std::string> paragraph;  // the last one
  bool is_in_messages = false, is_over = false;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (absl::StartsWith(page[i], "## ")) is_in_messages = page[i] == "## Messages";
    if (is_in_messages && page[i] == "```" && i + 2 < page.size()) {
      INFO("line " << i + 1);
      REQUIRE(page[i + 2] == "```");
      all.push_back({absl::StrJoin(paragraph, " "), i + 1});
      i += 2;
    } else if (page[i].empty()) {
      is_over = true;
    } else {
      if (std::exchange(is_over, false)) paragraph.clear();
      paragraph.push_back(page[i]);
    }
  }
  return all;
}

// Addresses and threads differ from run to run.
std::string without_numbers(const std::string& message) {
  std::string text = std::regex_replace(message, std::regex("0x[0-9a-f]+"), "0x55b3d829f470");
  std::smatch first;
  if (!std::regex_search(text, first, std::regex("begun by thread [0-9]+"))) return text;
  const std::string own = first.str().substr(sizeof("begun by thread"));
  text = std::regex_replace(text, std::regex("thread " + own + "\\b"), "thread X");
  text = std::regex_replace(text, std::regex("thread [0-9]+"), "thread 4712");
  return std::regex_replace(text, std::regex("thread X"), "thread 4711");
}

TEST_CASE("the messages in docs/errors.md are the library's", "[docs]") {
  const std::string path = std::string(CGRT_TEST_DATA_DIR) + "/../docs/errors.md";
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> page = absl::StrSplit(std::string(std::istreambuf_iterator<char>(file), {}), '\n');
  const bool is_written = std::getenv("CGRT_WRITE_DOCS") != nullptr;
  std::map<std::string, const Case*> missing;
  for (const Case& one : kCases) REQUIRE(missing.emplace(one.lead, &one).second);

  for (const Quoted& quoted : quoted_in(page)) {
    INFO("below: " << quoted.lead);
    const auto found = missing.find(quoted.lead);
    if (found == missing.end()) {
      FAIL_CHECK("docs/errors.md quotes a message that no case here makes, or quotes it twice");
      continue;
    }
    const Objects objects;
    const Answer answer = found->second->provoke(objects);
    missing.erase(found);
    if (!answer.has_value()) continue;
    const std::string message = without_numbers(answer->ToString(absl::StatusToStringMode::kWithNoExtraData));
    if (is_written) page[quoted.line] = message;
    CHECK(page[quoted.line] == message);
  }
  for (const auto& [lead, unused] : missing) FAIL_CHECK("docs/errors.md has no message below: " << lead);
  if (is_written) std::ofstream(path, std::ios::binary) << absl::StrJoin(page, "\n");
}

}  // namespace
}  // namespace cgrt::testing
