#include "cgrt/simulator/simulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "cgrt/base/counted.h"
#include "cgrt/base/log.h"
#include "cgrt/driver/status.h"
#include "cgrt/simulator/log.h"
#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"
#include "cgrt/stream/keep.h"

namespace cgrt {
namespace simulator {

State* state = nullptr;

State::State(SimulatorOptions options_)
    : options(options_), random(options_.seed), used_bytes(static_cast<std::size_t>(options_.device_count)) {
  static std::uint64_t next_id = 1;
  id = next_id++;
  for (int device = 0; device < options.device_count; ++device) {
    CUstream_st& legacy = streams.emplace_back();
    contexts.push_back(std::make_unique<CUctx_st>(CUctx_st{device, &legacy}));
    legacy.context = contexts.back().get();
    legacy.blocking = true;
  }
}

State::~State() {
  for (void* address : parked) std::free(address);
  for (const auto& [address, allocation] : memory) {
    const bool is_own = allocation.origin == Origin::kAllocated || allocation.origin == Origin::kVariable;
    if (is_own) std::free(reinterpret_cast<void*>(address));
  }
  for (const auto& [address, bytes] : reservations) munmap(reinterpret_cast<void*>(address), bytes);
}

namespace {

enum EntryIndex : std::size_t {
#define CGRT_ENTRY(name, version, need) k##name##Index,
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
};

}  // namespace
}  // namespace simulator

struct Simulator::Impl {
  explicit Impl(SimulatorOptions options) : state(options) {}
  simulator::State state;
  driver::Api table;
  const driver::Api* previous = nullptr;
};

Simulator::Simulator(SimulatorOptions options) : impl_(std::make_unique<Impl>(options)) {
  if (simulator::state != nullptr) {
    log_error("Simulator: one is in force already.");
    std::abort();
  }
  simulator::state = &impl_->state;
#define CGRT_ENTRY(name, version, need) \
  impl_->table.name = &simulator::Logged<&simulator::name, simulator::k##name##Index>::call;
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
  impl_->table.ResolveKernel = &simulator::ResolveKernel;
  impl_->table.PatchNode = &simulator::PatchNode;
  impl_->table.SetConditional = &simulator::SetConditional;
  impl_->table.simulated = true;
  impl_->previous = &driver::install(impl_->table);
}

Simulator::~Simulator() {
  {
    const simulator::Lock lock(impl_->state.mutex);
    for (CUstream_st& stream : impl_->state.streams) stream.held = false;
    simulator::run_all();
    for (CUstream_st& stream : impl_->state.streams) stream.queue.clear();  // what waits for memory for good
  }
  // What graphs kept is let go while the calls that this takes still work: the next simulator may give out the same
  // addresses.
  collect_released();
  {
    const simulator::Lock lock(impl_->state.mutex);
    impl_->state.execs.clear();
    impl_->state.captures.clear();
    impl_->state.graphs.clear();  // forgotten ones
  }
  collect_released();
  driver::restore(*impl_->previous);
  simulator::state = nullptr;
}

std::unique_ptr<Simulator> Simulator::if_no_device(SimulatorOptions options) {
  int devices = 0;
  const CUresult result = driver::api().DeviceGetCount(&devices);
  const bool has_none = result == CUDA_ERROR_STUB_LIBRARY || result == CUDA_ERROR_NO_DEVICE;
  if (!has_none && (result != CUDA_SUCCESS || devices != 0)) return nullptr;
  const std::string reason = result == CUDA_SUCCESS
                                 ? "The CUDA driver has no device."
                                 : std::string(driver::to_status(result, "cuDeviceGetCount").message());
  std::printf("No GPU here: running on the simulator; no figure below is a GPU time.\n(%s)\n", reason.c_str());
  std::fflush(stdout);  // it stands before everything, also before what goes to stderr
  return std::make_unique<Simulator>(options);
}

namespace {

// Without addresses of graphs that have no memory behind them, and variables, which are their library's.
std::size_t live_allocations(const simulator::State& s) {
  return static_cast<std::size_t>(std::count_if(s.memory.begin(), s.memory.end(), [](const auto& one) {
    const simulator::Allocation& allocation = one.second;
    return allocation.origin != simulator::Origin::kVariable &&
           (allocation.of_graph == nullptr || allocation.of_graph->is_live);
  }));
}

}  // namespace

std::size_t Simulator::live_handles() const {
  const simulator::State& s = impl_->state;
  return s.live_streams.size() + s.events.size() + s.graphs.size() + s.execs.size() + live_allocations(s) +
         s.user_objects.size() + s.semaphores.size() + s.libraries.size() + s.links.size() + s.reservations.size() +
         s.physical.size();
}

std::string Simulator::live_handles_text() const {
  const simulator::State& s = impl_->state;
  std::string text;
  const auto add = [&](std::size_t count, const char* kind) {
    if (count != 0) text += (text.empty() ? "" : ", ") + counted(count, kind);
  };
  add(s.live_streams.size(), "stream");
  add(s.events.size(), "event");
  add(s.graphs.size(), "graph");
  add(s.execs.size(), "executable");
  add(live_allocations(s), "allocation");
  add(s.user_objects.size(), "user object");
  add(s.semaphores.size(), "external semaphore");
  add(s.libraries.size(), "loaded image");
  add(s.links.size(), "linker");
  add(s.reservations.size(), "reserved range");
  add(s.physical.size(), "physical allocation");
  return text;
}

void Simulator::provide(std::string symbol, const driver::KernelIdentity& kernel) {
  const simulator::Lock lock(impl_->state.mutex);
  impl_->state.provided.insert_or_assign(std::move(symbol), &kernel);
}

void Simulator::hold(CUstream stream) {
  const simulator::Lock lock(impl_->state.mutex);
  CUresult result = CUDA_SUCCESS;
  if (CUstream found = simulator::find_stream(stream, &result)) found->held = true;
}

void Simulator::release(CUstream stream) {
  const simulator::Lock lock(impl_->state.mutex);
  CUresult result = CUDA_SUCCESS;
  if (CUstream found = simulator::find_stream(stream, &result)) found->held = false;
}

}  // namespace cgrt
