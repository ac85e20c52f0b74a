#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <cstdio>
#include <string_view>

#include "kernel.h"

static_assert(std::string_view(CGRT_VERSION) == PACKAGE_VERSION);  // the header's, and what find_package was told

absl::Status run(const char* path) {
  cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::PinnedBuffer out, cgrt::PinnedBuffer::create(device, 100 * sizeof(float)));
  float value = 4.5f;
  const auto step = [&](cgrt::LaunchTarget target) {
    return cgrt::launch(target, {.grid = 1, .block = 32}, fill_kernel(), out.as<float>(), value, 100);
  };
  const auto check = [&](cgrt::GraphExec& exec) -> absl::Status {
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return out.as<float>()[99] == value ? absl::OkStatus() : absl::InternalError("wrong result");
  };
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph captured, cgrt::capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph built, cgrt::Graph::create(device));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr one, cgrt::snapshot(captured));
  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr two, cgrt::snapshot(built));
  if (cgrt::ir::first_difference(one, two).has_value()) return absl::InternalError("two graphs");

  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(built));
  CGRT_RETURN_IF_ERROR(check(exec));
  value = 9.0f;
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph next, cgrt::capture(stream.ref(), step));
  CGRT_RETURN_IF_ERROR(exec.update(next));
  CGRT_RETURN_IF_ERROR(check(exec));
  return cgrt::inspect::write_file(path, one);
}

int main(int, char** argv) {
  cgrt::Simulator simulator;
  const absl::Status status = run(argv[1]);
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
