// libFuzzer over the loader of bundles, on the simulator: what is loaded is put back and compared, and nothing of it is
// left. Not launched: kernels are as trusted as a program. Not part of the build:
//
//   tests/fuzz/run.sh SECONDS bundle_load

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/device/context.h"
#include "cgrt/simulator/simulator.h"
#include "fuzz/bundle_input.h"

namespace {

using namespace cgrt;

absl::Status load(const std::string& path, BundlePlacement placement) {
  CGRT_ASSIGN_OR_RETURN(const Bundle bundle, Bundle::open(path));
  CGRT_ASSIGN_OR_RETURN(LoadedBundle loaded, bundle.load(DeviceRef(0), {.placement = placement}));
  for (const saved::SavedGraph& graph : bundle.folder().manifest().graphs) {
    CGRT_RETURN_IF_ERROR(loaded.restore(graph.name));
    CGRT_RETURN_IF_ERROR(loaded.check(graph.name).status());
  }
  return absl::OkStatus();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::BundleFolder files(std::string_view(reinterpret_cast<const char*>(data), size));
  const Simulator simulator({.memory_bytes = std::size_t{256} << 20});
  for (const BundlePlacement placement : {BundlePlacement::kAsSaved, BundlePlacement::kAnywhere}) {
    const absl::Status status = load(files.path(), placement);
    static const bool is_told = std::getenv("CGRT_FUZZ_STATUS") != nullptr;
    if (is_told) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  }
  if (simulator.live_handles() != 0) {
    std::fprintf(stderr, "left behind: %s\n", simulator.live_handles_text().c_str());
    std::abort();
  }
  return 0;
}
