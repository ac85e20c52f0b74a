// DeviceBuffer and PinnedBuffer: memory of a device, and page-locked host memory that devices reach.
//
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, DeviceBuffer::create(DeviceRef(0), n * sizeof(float)));
//   float* values = x.as<float>();
//
// Contents are undefined until written. Freeing device memory waits for the device (cuMemFree), so
// work in flight never loses its memory. A buffer may die while streams are captured, which disturbs
// no capture; what was captured with its address must not run then. To let a graph own a buffer, see
// Graph::keep.
//
// create is thread-safe; a buffer must not be moved or destroyed beside other calls on it.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/device/context.h"

namespace cgrt {

namespace internal {
void free_device(CUdeviceptr address);
void free_pinned(void* address);
}  // namespace internal

// Owns `size_bytes()` of device memory, aligned to at least 256 bytes.
class DeviceBuffer {
 public:
  // Blocks as cuMemAlloc does. kInvalidArgument for 0 bytes, kResourceExhausted when the device has
  // too little.
  static absl::StatusOr<DeviceBuffer> create(ContextRef context, std::size_t size_bytes);

  void* data() const { return reinterpret_cast<void*>(address_.get()); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  DeviceBuffer(CUdeviceptr address, std::size_t size_bytes) : address_(address), size_bytes_(size_bytes) {}
  UniqueHandle<CUdeviceptr, internal::free_device> address_;
  std::size_t size_bytes_ = 0;
};

// Owns page-locked host memory, usable at the same address by every device.
class PinnedBuffer {
 public:
  static absl::StatusOr<PinnedBuffer> create(ContextRef context, std::size_t size_bytes);

  void* data() const { return address_.get(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  PinnedBuffer(void* address, std::size_t size_bytes) : address_(address), size_bytes_(size_bytes) {}
  UniqueHandle<void*, internal::free_pinned> address_;
  std::size_t size_bytes_ = 0;
};

}  // namespace cgrt
