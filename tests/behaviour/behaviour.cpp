#include "behaviour/behaviour.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <variant>

#include "absl/strings/str_cat.h"

namespace cgrt::testing {

std::vector<Behaviour>& behaviours() {
  static std::vector<Behaviour> all;
  return all;
}

void Notes::status(const std::string& name, const absl::Status& status) {
  const std::optional<CUresult> result = cuda_result(status);
  std::string code = result.has_value() ? std::to_string(static_cast<int>(*result)) : status.ok() ? "0" : "-";
  line(absl::StrCat(name, ": ", code, " ", absl::StatusCodeToString(status.code())));
}

void Notes::completion(const std::string& name, const absl::StatusOr<Completion>& completion) {
  if (!completion.ok()) return status(name, completion.status());
  line(absl::StrCat(name, ": ", to_string(*completion)));
}

absl::Status Notes::graph(const std::string& name, const Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(ir::GraphIr ir, snapshot(graph));
  for (std::size_t i = 0; i < ir.nodes.size(); ++i) {
    const ir::Node& node = ir.nodes[i];
    std::string text = absl::StrCat(name, ": ", i, " ", to_string(node.kind));
    if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
      absl::StrAppend(&text, " ", function_of(ir, *kernel).name, " grid ", kernel->grid.x, " block ", kernel->block.x,
                      " arguments ", arguments_of(ir, *kernel).size());
    }
    if (const auto* memcpy = std::get_if<ir::MemcpyParams>(&node.params)) {
      absl::StrAppend(&text, " ", memcpy->width_bytes, "x", memcpy->height, "x", memcpy->depth);
    }
    if (const auto* memset = std::get_if<ir::MemsetParams>(&node.params)) {
      absl::StrAppend(&text, " ", memset->value, " ", memset->width, "x", memset->element_bytes);
      if (memset->height != 1) absl::StrAppend(&text, "x", memset->height, " pitch ", memset->pitch);
    }
    if (const auto* event = std::get_if<ir::EventParams>(&node.params)) absl::StrAppend(&text, " ", event->event);
    if (const auto* conditional = std::get_if<ir::ConditionalParams>(&node.params)) {
      absl::StrAppend(&text, " ", to_string(conditional->kind), " handle ", conditional->handle);
      if (conditional->at_launch.has_value()) absl::StrAppend(&text, " at launch ", *conditional->at_launch);
    }
    if (const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
      absl::StrAppend(&text, " ", alloc->bytes, " at ", describe(ir, alloc->address));
    }
    if (const auto* freed = std::get_if<ir::MemFreeParams>(&node.params)) {
      absl::StrAppend(&text, " ", describe(ir, freed->address));
    }
    if (const auto* operations = std::get_if<ir::BatchMemOpParams>(&node.params)) {
      for (const ir::MemOp& op : operations->operations) absl::StrAppend(&text, " {", describe(ir, op), "}");
    }
    if (const auto* semaphores = std::get_if<ir::SemaphoreParams>(&node.params)) {
      for (const ir::SemaphoreValue& one : semaphores->semaphores) absl::StrAppend(&text, " {", describe(one), "}");
    }
    if (node.body != 0) absl::StrAppend(&text, " in ", ir.bodies[node.body - 1].owner);
    if (!node.scope.empty()) absl::StrAppend(&text, " scope ", node.scope);
    line(std::move(text));
  }
  for (const ir::Edge& edge : ir.edges) {
    line(absl::StrCat(name, ": ", edge.from, "->", edge.to, " ", to_string(edge.type), " ports ", int{edge.from_port},
                      " ", int{edge.to_port}));
  }
  return absl::OkStatus();
}

void Notes::expect(bool condition, const char* text, int line_number) {
  if (!condition) failures_.push_back(absl::StrCat("line ", line_number, ": ", text));
}

absl::StatusOr<Gate> Gate::close(World& world, StreamRef stream) {
  Gate gate(world, stream);
  if (world.simulator() != nullptr) {
    world.simulator()->hold(stream.get());
    return gate;
  }
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer flag, PinnedBuffer::create(world.device(), sizeof(int)));
  *flag.as<volatile int>() = 0;
  gate.flag_ = std::make_unique<PinnedBuffer>(std::move(flag));
  CGRT_RETURN_IF_ERROR(launch(stream, LaunchConfig{}, wait_kernel(), gate.flag_->as<volatile int>()));
  return gate;
}

void Gate::open() {
  World* world = std::exchange(world_, nullptr);
  if (world == nullptr) return;
  if (world->simulator() != nullptr) return world->simulator()->release(stream_.get());
  if (flag_ == nullptr) return;
  *flag_->as<volatile int>() = 1;
  static_cast<void>(stream_.synchronize());  // the flag must outlive the kernel that reads it
  flag_.reset();
}

bool collect_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!done()) {
    collect_released();
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

absl::StatusOr<DeviceBuffer> device_floats(World& world, const std::vector<float>& values) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(world.device(), values.size() * sizeof(float)));
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), buffer.data(), values.data(), buffer.size_bytes()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return buffer;
}

absl::StatusOr<DeviceBuffer> device_floats(World& world, std::size_t count, float value) {
  return device_floats(world, std::vector<float>(count, value));
}

absl::StatusOr<std::vector<float>> read_floats(World& world, const DeviceBuffer& buffer) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  std::vector<float> values(buffer.size_bytes() / sizeof(float));
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), values.data(), buffer.data(), buffer.size_bytes()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return values;
}

}  // namespace cgrt::testing
