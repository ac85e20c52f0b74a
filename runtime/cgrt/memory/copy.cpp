#include "cgrt/memory/copy.h"

#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// `what`: "a copy".
absl::Status check_target(LaunchTarget target, const char* what) {
  if (ABSL_PREDICT_TRUE(target.edge() == EdgeKind::kFull)) return internal::check_no_event(target, what);
  return absl::InvalidArgumentError(
      absl::StrCat("This is ", what,
                   ", and only kernels can have a programmatic dependency. Pass the target without programmatic()."));
}

}  // namespace

absl::Status copy(LaunchTarget target, void* destination, const void* source, std::size_t bytes) {
  CGRT_RETURN_IF_ERROR(check_target(target, "a copy"));
  if (target.sink() != nullptr) return target.sink()->add_copy({destination, source, bytes});
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  const CUresult result = driver::api().MemcpyAsync(address_of(destination), address_of(source), bytes, stream);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain(driver::to_status(result, "cuMemcpyAsync"), {destination, source, bytes});
  }
  if (bytes != 0) internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

absl::Status copy(LaunchTarget target, const CopyParams& params) {
  if (params.height == 1 && params.depth == 1) return copy(target, params.destination, params.source, params.bytes);
  CGRT_RETURN_IF_ERROR(check_target(target, "a copy"));
  if (target.sink() != nullptr) return target.sink()->add_copy(params);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  const CUDA_MEMCPY3D operation = internal::to_driver(params);
  const CUresult result = driver::api().Memcpy3DAsync(&operation, stream);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain(driver::to_status(result, "cuMemcpy3DAsync"), params);
  }
  if (params.bytes != 0 && params.height != 0 && params.depth != 0) internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

absl::Status fill(LaunchTarget target, const FillParams& params) {
  CGRT_RETURN_IF_ERROR(check_target(target, "a memset"));
  if (target.sink() != nullptr) return target.sink()->add_fill(params);
  const driver::Api& api = driver::api();
  const CUdeviceptr address = address_of(params.destination);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  const auto byte = static_cast<unsigned char>(params.value);
  const auto half = static_cast<unsigned short>(params.value);
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (params.height == 1) {
    switch (params.element_bytes) {
      case 1: result = api.MemsetD8Async(address, byte, params.count, stream); break;
      case 2: result = api.MemsetD16Async(address, half, params.count, stream); break;
      case 4: result = api.MemsetD32Async(address, params.value, params.count, stream); break;
      default: break;
    }
  } else {
    switch (params.element_bytes) {
      case 1: result = api.MemsetD2D8Async(address, params.pitch, byte, params.count, params.height, stream); break;
      case 2: result = api.MemsetD2D16Async(address, params.pitch, half, params.count, params.height, stream); break;
      case 4:
        result = api.MemsetD2D32Async(address, params.pitch, params.value, params.count, params.height, stream);
        break;
      default: break;
    }
  }
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain(driver::to_status(result, "cuMemset"), params);
  }
  if (params.count != 0 && params.height != 0) internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

namespace {

// Bytes from the first to the last that are touched; SIZE_MAX when they do not fit.
std::size_t extent(std::size_t width, std::size_t height, std::size_t depth, std::size_t pitch, std::size_t rows) {
  std::size_t lines = 0, bytes = 0;
  const bool overflows = __builtin_mul_overflow(depth - 1, rows, &lines) ||
                         __builtin_add_overflow(lines, height - 1, &lines) ||
                         __builtin_mul_overflow(lines, pitch, &bytes) || __builtin_add_overflow(bytes, width, &bytes);
  return overflows ? SIZE_MAX : bytes;
}

// ". The source is null", or that its memory ends before `bytes`; empty when neither is known.
[[gnu::cold]] std::string broken_side(const char* side, const void* pointer, std::size_t bytes) {
  if (pointer == nullptr) return absl::StrCat(". The ", side, " is null");
  CUdeviceptr start = 0;
  std::size_t size = 0;
  CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&start, &size};
  const CUresult asked = driver::api().PointerGetAttributes(2, ids, values, address_of(pointer));
  if (asked != CUDA_SUCCESS || start == 0) return "";
  const std::size_t offset = address_of(pointer) - start;
  if (bytes <= size - offset) return "";
  return absl::StrCat(". The ", side, " is too small: ", counted(bytes, "byte"), " from byte ", offset,
                      " on, in an allocation of ", counted(size, "byte"), " at 0x", absl::Hex(start));
}

bool may_break_a_side(const absl::Status& status) { return driver::cuda_result(status) == CUDA_ERROR_INVALID_VALUE; }

}  // namespace

namespace internal {

// Unified addresses: the form in which the driver itself captures copies.
CUDA_MEMCPY3D to_driver(const CopyParams& params) {
  CUDA_MEMCPY3D operation{};
  operation.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  operation.dstDevice = address_of(params.destination);
  operation.dstPitch = params.destination_pitch;
  operation.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  operation.srcDevice = address_of(params.source);
  operation.srcPitch = params.source_pitch;
  operation.WidthInBytes = params.bytes;
  operation.Height = params.height;
  operation.Depth = params.depth;
  if (params.depth > 1) {
    operation.dstHeight = params.destination_rows != 0 ? params.destination_rows : params.height;
    operation.srcHeight = params.source_rows != 0 ? params.source_rows : params.height;
  }
  return operation;
}

absl::Status explain(const absl::Status& status, const CopyParams& params) {
  if (status.ok()) return status;
  std::string size = absl::StrCat(counted(params.bytes, "byte"), params.bytes == 0 ? " (a node needs at least 1)" : "");
  if (params.height != 1 || params.depth != 1) {
    size = absl::StrCat(params.depth, " x ", counted(params.height, "row"), " of ", size, " (pitch ",
                        params.destination_pitch, " <- ", params.source_pitch, ")");
  }
  std::string broken;
  if (may_break_a_side(status) && params.bytes != 0 && params.height != 0 && params.depth != 0) {
    const auto bytes = [&](std::size_t pitch, std::size_t rows) {
      return extent(params.bytes, params.height, params.depth, pitch, rows != 0 ? rows : params.height);
    };
    broken = absl::StrCat(
        broken_side("source", params.source, bytes(params.source_pitch, params.source_rows)),
        broken_side("destination", params.destination, bytes(params.destination_pitch, params.destination_rows)));
  }
  return driver::annotate(
      status, absl::StrCat("Copy of ", size, " from 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(params.source)),
                           " to 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(params.destination)), broken));
}

absl::Status explain(const absl::Status& status, const FillParams& params) {
  const std::uint32_t bytes = params.element_bytes;
  const bool is_known = bytes == 1 || bytes == 2 || bytes == 4;
  std::string size =
      absl::StrCat(counted(params.count, "element"), " of ", counted(bytes, "byte"), is_known ? "" : " (1, 2 or 4)");
  if (params.height != 1) {
    size = absl::StrCat(counted(params.height, "row"), " of ", size, " (pitch ", params.pitch, ")");
  }
  std::string broken;
  std::size_t row = 0;
  if (may_break_a_side(status) && is_known && params.count != 0 && params.height != 0) {
    if (__builtin_mul_overflow(params.count, std::size_t{bytes}, &row)) row = SIZE_MAX;
    broken = broken_side("destination", params.destination, extent(row, params.height, 1, params.pitch, params.height));
  }
  return driver::annotate(status,
                          absl::StrCat("Memset of ", size, " at 0x",
                                       absl::Hex(reinterpret_cast<std::uintptr_t>(params.destination)), broken));
}

}  // namespace internal

absl::Status fill8(LaunchTarget target, void* destination, std::uint8_t value, std::size_t count) {
  return fill(target, {destination, value, 1, count});
}
absl::Status fill16(LaunchTarget target, void* destination, std::uint16_t value, std::size_t count) {
  return fill(target, {destination, value, 2, count});
}
absl::Status fill32(LaunchTarget target, void* destination, std::uint32_t value, std::size_t count) {
  return fill(target, {destination, value, 4, count});
}

}  // namespace cgrt
