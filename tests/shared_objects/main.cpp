// shared_objects_test simulator|gpu A.so B.so: kernels of two shared objects, each with a CUDA runtime
// of its own, launched eagerly, captured and explicitly from one program. Exit 0: each ran its own
// kernel; 77: no device.
#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/no_device.h"

namespace {

using cgrt::Kernel;
using TwinKernel = Kernel<int*>;

absl::StatusOr<TwinKernel> load(const char* path) {
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return absl::NotFoundError(dlerror());
  const auto kernel = reinterpret_cast<const void* (*)()>(dlsym(object, "twin_kernel"));
  if (kernel == nullptr) return absl::NotFoundError("twin_kernel");
  return TwinKernel(static_cast<const cgrt::driver::KernelIdentity*>(kernel()));
}

absl::Status check(const cgrt::PinnedBuffer& seen, int expected) {
  const int value = *seen.as<volatile int>();
  *seen.as<volatile int>() = -1;
  if (value == expected) return absl::OkStatus();
  return absl::InternalError("saw " + std::to_string(value) + ", not " + std::to_string(expected));
}

absl::Status run(TwinKernel kernel, int expected) {
  const cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::PinnedBuffer seen, cgrt::PinnedBuffer::create(device, sizeof(int)));
  const auto step = [&](cgrt::LaunchTarget target) {
    return cgrt::launch(target, cgrt::LaunchConfig{}, kernel, seen.as<int>());
  };
  CGRT_RETURN_IF_ERROR(step(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(check(seen, expected));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph captured, cgrt::capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph built, cgrt::Graph::create(device));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  for (const cgrt::Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(*graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(check(seen, expected));
  }
  return absl::OkStatus();
}

absl::Status run_both(const char* first, const char* second) {
  CGRT_ASSIGN_OR_RETURN(const TwinKernel one, load(first));
  CGRT_ASSIGN_OR_RETURN(const TwinKernel two, load(second));
  if (one == two) return absl::InternalError("the two kernels count as one");
  for (int turn = 0; turn < 2; ++turn) {
    CGRT_RETURN_IF_ERROR(run(one, 1));
    CGRT_RETURN_IF_ERROR(run(two, 2));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::puts("usage: shared_objects_test simulator|gpu A.so B.so");
    return 2;
  }
  std::unique_ptr<cgrt::Simulator> simulator;
  if (std::string(argv[1]) == "simulator") simulator = std::make_unique<cgrt::Simulator>();
  if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  const absl::Status status = run_both(argv[2], argv[3]);
  std::printf("%s\n", status.ok() ? "each shared object ran its own kernel" : status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
