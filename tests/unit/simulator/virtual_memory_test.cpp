// Memory at given addresses, as the simulator has it: what CUDA's answers are there was asked of an H100 (driver 580).
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt/stream/capture_mode.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

constexpr std::size_t kRegion = std::size_t{32} << 20, kPage = std::size_t{2} << 20;
constexpr CUdeviceptr kAddress = 0x7ec000000000;  // where nothing else is, no sanitizer either

CUmemAllocationProp on_device() {
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return memory;
}

CUmemAccessDesc read_write() {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

CUdeviceptr reserve(CUdeviceptr wanted, std::size_t bytes) {
  CUdeviceptr got = 0;
  CHECK(driver::api().MemAddressReserve(&got, bytes, 0, wanted, 0) == CUDA_SUCCESS);
  return got;
}

TEST_CASE("an address is honoured where it is free, and for whole regions", "[simulator]") {
  Simulator simulator;
  const driver::Api& api = driver::api();

  const CUdeviceptr first = reserve(kAddress, kRegion), second = reserve(kAddress, kRegion);
  const CUdeviceptr small = reserve(kAddress + kRegion, kPage), odd = reserve(kAddress + kRegion + kPage, kRegion);

  CHECK(first == kAddress);
  CHECK(second != kAddress);
  CHECK(small != kAddress + kRegion);
  CHECK(odd != kAddress + kRegion + kPage);
  CHECK(simulator.live_handles_text() == "4 reserved ranges");
  CHECK(api.MemAddressFree(first, kPage) == CUDA_ERROR_INVALID_VALUE);  // not all of it
  CHECK(api.MemAddressFree(first, kRegion) == CUDA_SUCCESS);
  CHECK(api.MemAddressFree(second, kRegion) == CUDA_SUCCESS);
  CHECK(api.MemAddressFree(small, kPage) == CUDA_SUCCESS);
  CHECK(api.MemAddressFree(odd, kRegion) == CUDA_SUCCESS);
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("physical memory has one content wherever it is mapped, and lives as long as a mapping", "[simulator]") {
  Simulator simulator;
  const driver::Api& api = driver::api();
  const CUmemAllocationProp memory = on_device();
  const CUmemAccessDesc access = read_write();
  const CUdeviceptr base = reserve(kAddress, kRegion);
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(api.MemCreate(&handle, kPage, &memory, 0) == CUDA_SUCCESS);
  for (const CUdeviceptr at : {base, base + kPage}) {
    CHECK(api.MemMap(at, kPage, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(api.MemMap(at, kPage, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);  // something is there
    CHECK(api.MemSetAccess(at, kPage, &access, 1) == CUDA_SUCCESS);
  }
  CHECK(api.MemRelease(handle) == CUDA_SUCCESS);
  const Stream stream = *Stream::create(DeviceRef(0));

  // Over the end of the first mapping, into the second.
  CHECK_OK(fill8(stream, reinterpret_cast<void*>(base + kPage - 8), 3, 16));
  CHECK_OK(stream.ref().synchronize());

  CHECK(*reinterpret_cast<unsigned char*>(base) == 3);
  CHECK(*reinterpret_cast<unsigned char*>(base + kPage) == 3);
  CHECK(*reinterpret_cast<unsigned char*>(base + 8) == 0xA5);
  CHECK_THAT(fill8(stream, reinterpret_cast<void*>(base + 2 * kPage - 8), 3, 16),
             StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK(api.MemAddressFree(base, kRegion) == CUDA_ERROR_INVALID_VALUE);  // mapped
  CHECK(api.MemFree(base) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.MemUnmap(base, kPage) == CUDA_SUCCESS);
  CHECK(api.MemUnmap(base + kPage, kPage) == CUDA_SUCCESS);
  CHECK(api.MemAddressFree(base, kRegion) == CUDA_SUCCESS);
  CHECK(simulator.live_handles() == 1);  // the stream
}

TEST_CASE("memory of the host can be pinned once, also in place of what was reserved", "[simulator]") {
  Simulator simulator;
  const driver::Api& api = driver::api();
  const absl::StatusOr<ScopedContext> current = ScopedContext::enter(*ContextRef(DeviceRef(0)).get());
  const CUdeviceptr base = reserve(kAddress, kRegion);
  void* const host = mmap(reinterpret_cast<void*>(base + kPage), 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

  CHECK(api.MemHostRegister(host, 4096, 0) == CUDA_SUCCESS);
  CHECK(api.MemHostRegister(host, 4096, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(api.MemHostUnregister(host) == CUDA_SUCCESS);
  CHECK(api.MemHostUnregister(host) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(api.MemAddressFree(base, kRegion) == CUDA_SUCCESS);
}

TEST_CASE("synchronizing a context ends the captures in it, pinning those that the mode says", "[simulator]") {
  Simulator simulator;
  const driver::Api& api = driver::api();
  const absl::StatusOr<ScopedContext> current = ScopedContext::enter(*ContextRef(DeviceRef(0)).get());
  const Stream stream = *Stream::create(DeviceRef(0));
  alignas(4096) static char page[4096];
  const auto status_after = [&](const auto& call) {
    CHECK(api.StreamBeginCapture(stream.ref().get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
    call();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(api.StreamIsCapturing(stream.ref().get(), &status) == CUDA_SUCCESS);
    CUgraph graph = nullptr;
    api.StreamEndCapture(stream.ref().get(), &graph);
    if (graph != nullptr) api.GraphDestroy(graph);
    return status;
  };
  const auto relaxed = [](const auto& call) {
    return [&] {
      const RelaxedCaptureMode mode;
      call();
    };
  };
  const auto synchronize = [&] { CHECK(api.CtxSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); };
  const auto pin = [&] {
    if (api.MemHostRegister(page, sizeof(page), 0) == CUDA_SUCCESS) api.MemHostUnregister(page);
  };
  const auto map = [&] {
    const CUmemAllocationProp memory = on_device();
    const CUdeviceptr base = reserve(kAddress, kRegion);
    CUmemGenericAllocationHandle handle = 0;
    CHECK(api.MemCreate(&handle, kPage, &memory, 0) == CUDA_SUCCESS);
    CHECK(api.MemRelease(handle) == CUDA_SUCCESS);
    CHECK(api.MemAddressFree(base, kRegion) == CUDA_SUCCESS);
  };

  CHECK(status_after(synchronize) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(status_after(relaxed(synchronize)) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(status_after(pin) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(status_after(relaxed(pin)) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(status_after(map) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

}  // namespace
}  // namespace cgrt::testing
