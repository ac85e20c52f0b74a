#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "operations/operations.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

// Calls whose failure changes nothing for the caller: a destructor logs it, or only the wording of an
// error suffers.
bool may_be_swallowed(std::string_view entry, const Operation& one) {
  for (std::string_view quiet :
       {"cuGetErrorName", "cuGetErrorString", "cuCtxPopCurrent", "cuStreamDestroy", "cuEventDestroy", "cuMemFree",
        "cuMemFreeHost", "cuGraphDestroy", "cuGraphExecDestroy", "cuDestroyExternalSemaphore", "cuUserObjectRelease",
        "cuLibraryUnload", "cuLogsRegisterCallback", "cuLogsUnregisterCallback"}) {
    if (entry == quiet) return true;
  }
  // Buffers, semaphores, pools and executables are destroyed in whatever capture mode their thread is in then, and what
  // an allocation has made is not taken back.
  if (entry == "cuThreadExchangeStreamCaptureMode" &&
      (absl::StrContains(one.name, "ExternalSemaphore::") || absl::StrContains(one.name, "Buffer::create") ||
       absl::StrContains(one.name, "GraphPool::free") || absl::StrContains(one.name, "instantiate") ||
       absl::StrContains(one.name, "GraphExec::") || absl::StrContains(one.name, "_async") ||
       absl::StrContains(one.name, "Library::") || absl::StrContains(one.name, "allow_large_clusters"))) {
    return true;
  }
  // An executable that is destroyed waits for the launches that use what captured calls keep, and has no status.
  if (std::string_view(one.name) == "GraphExec::rebind" && entry == "cuEventSynchronize") return true;
  // A scope that could not be noted costs its name, with a warning in the log; the capture goes on.
  if (std::string_view(one.name) == "capture" &&
      (entry == "cuGraphGetNodes" || entry == "cuStreamGetCaptureInfo" || entry == "cuGraphNodeGetDependentNodes")) {
    return true;
  }
  // How many nodes there are goes into the reason of a refusal alone, and that is no error here.
  if (std::string_view(one.name) == "GraphExec::update_or_instantiate" && entry == "cuGraphGetNodes") return true;
  // What nodes are called goes into the reasons alone.
  if (std::string_view(one.name) == "GraphExec::find_blockers" &&
      (entry == "cuFuncGetName" || entry == "cuGraphKernelNodeGetParams" || entry == "cuGraphNodeGetType")) {
    return true;
  }
  // Short of memory, an instantiation is tried again.
  if (entry == "cuGraphInstantiateWithParams") return true;
  return std::string_view(one.name).starts_with("and::");  // an error is expected there either way
}

// By loops of their own.
bool is_failed_elsewhere(std::string_view entry) {
  for (std::string_view other :
       {"cuTensorMapEncodeTiled",  // of kernels, which are not linked here: unit/kernels/tensor_map_test.cpp
                                   // Of bundles: unit/bundle/.
        "cuCtxGetLimit", "cuCtxSetLimit", "cuCtxSynchronize", "cuMemHostRegister", "cuMemHostUnregister",
        "cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
        "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuFuncGetModule", "cuModuleGetGlobal", "cuModuleGetFunctionCount",
        "cuModuleEnumerateFunctions"}) {
    if (entry == other) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every operation survives the failure of each of its driver calls", "[fault]") {
  std::array<std::uint64_t, driver::kEntryCount> failed{};
  for (const Operation& one : operations()) {
    // First each call alone, then each with all that come after it.
    bool all_after = false;
    for (int nth = 0;; ++nth) {
      REQUIRE(nth < 1000);  // an operation with more calls than that would never end
      Simulator simulator;
      Objects world = one.objects();
      INFO(one.name << ", driver call " << nth);
      const std::size_t before = simulator.live_handles();
      bool fault_happened = false;
      {
        driver::Instrument instrument;  // a table of its own: nothing is remembered, all is asked again
        if (one.failing_entry != nullptr) instrument.fail_entry(one.failing_entry, CUDA_ERROR_OUT_OF_MEMORY);
        if (all_after) {
          instrument.fail_from(nth, CUDA_ERROR_OUT_OF_MEMORY);
        } else {
          instrument.fail_call(nth, CUDA_ERROR_OUT_OF_MEMORY);
        }
        const absl::Status status = one.run(world);
        fault_happened = instrument.failed();
        if (fault_happened) {
          const auto entry = static_cast<std::size_t>(instrument.failed_entry());
          INFO("failed entry " << driver::kEntryNames[entry] << ", status " << status.ToString());
          for (std::size_t i = 0; i < failed.size(); ++i) failed[i] += instrument.failures(i);
          if (!may_be_swallowed(driver::kEntryNames[entry], one)) {
            CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
            CHECK(cuda_result(status) == CUDA_ERROR_OUT_OF_MEMORY);
          }
        } else {
          CHECK_OK(status);
        }
      }

      const auto let_go = [&] {  // of what launches in flight keep
        CHECK_OK(world.stream.ref().synchronize());
        CHECK_OK(world.side.ref().synchronize());
        collect_released();
      };
      let_go();
      INFO(simulator.live_handles_text());
      CHECK(simulator.live_handles() == before);
      CHECK_FALSE(*world.stream.ref().is_capturing());
      CHECK_FALSE(*world.side.ref().is_capturing());
      CHECK_OK(one.run(world));  // usable
      let_go();
      CUcontext none = nullptr;
      CHECK(driver::api().CtxPopCurrent(&none) == CUDA_ERROR_INVALID_CONTEXT);
      if (fault_happened) continue;
      if (std::exchange(all_after, true)) break;
      nth = -1;
    }
  }

  std::printf("driver calls failed, by entry point:\n");
  for (std::size_t entry = 0; entry < failed.size(); ++entry) {
    std::printf("  %5d  %s\n", static_cast<int>(failed[entry]), driver::kEntryNames[entry]);
    INFO(driver::kEntryNames[entry]);
    if (!is_failed_elsewhere(driver::kEntryNames[entry])) CHECK(failed[entry] > 0);
  }
}

}  // namespace cgrt::testing
