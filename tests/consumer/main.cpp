#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <cstdio>

#include "kernel.h"

absl::Status run(const char* path) {
  cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::PinnedBuffer out, cgrt::PinnedBuffer::create(device, 100 * sizeof(float)));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::capture(stream.ref(), [&](cgrt::StreamRef s) {
                          return cgrt::launch(s, {.grid = 1, .block = 32}, fill_kernel(), out.as<float>(), 4.5f, 100);
                        }));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  if (out.as<float>()[99] != 4.5f) return absl::InternalError("wrong result");
  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(graph));
  return cgrt::inspect::write_file(path, ir);
}

int main(int, char** argv) {
  cgrt::Simulator simulator;
  const absl::Status status = run(argv[1]);
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
