// DeviceBuffer and PinnedBuffer: memory of a device, and page-locked host memory that devices reach.
//
//   CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, DeviceBuffer::create(DeviceRef(0), n * sizeof(float)));
//   float* values = x.as<float>();
//
// Contents are undefined until written. Freeing device memory waits for the device (cuMemFree), so
// work in flight never loses its memory. Destroying a buffer disturbs no capture. A graph that holds its
// address must not be launched afterwards; to let the graph own the buffer, see Graph::keep.
//
// create is thread-safe; a buffer must not be moved or destroyed beside other calls on it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/device/context.h"

namespace cgrt {

namespace internal {

void free_device(CUdeviceptr address);
void free_pinned(void* address);

// What both kinds of buffers are: an address and a size, which go together.
template <class Address, auto kFree>
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept
      : address_(std::move(other.address_)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    address_ = std::move(other.address_);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    return *this;
  }

  // Null when empty.
  void* data() const {
    if constexpr (std::is_pointer_v<Address>) {
      return address_.get();
    } else {
      return reinterpret_cast<void*>(address_.get());
    }
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
  std::size_t size_bytes() const { return size_bytes_; }

 protected:
  Memory(Address address, std::size_t size_bytes) : address_(address), size_bytes_(size_bytes) {}
  Address give_up() {
    size_bytes_ = 0;
    return address_.release();
  }

 private:
  UniqueHandle<Address, kFree> address_;
  std::size_t size_bytes_ = 0;
};

}  // namespace internal

// Owns `size_bytes()` of device memory, aligned to at least 256 bytes. Empty by default, when moved from, and of 0
// bytes.
class DeviceBuffer : public internal::Memory<CUdeviceptr, internal::free_device> {
 public:
  DeviceBuffer() = default;
  // Blocks as cuMemAlloc does. kResourceExhausted when the device has too little. An unsafe call in a capture, as is
  // PinnedBuffer::create: see docs/threads.md.
  static absl::StatusOr<DeviceBuffer> create(ContextRef context, std::size_t size_bytes);
  // Takes over memory of cuMemAlloc or cudaMalloc.
  static DeviceBuffer adopt(CUdeviceptr address, std::size_t size_bytes) { return {address, size_bytes}; }
  // To be freed with cuMemFree or cudaFree.
  CUdeviceptr release() && { return give_up(); }

 private:
  DeviceBuffer(CUdeviceptr address, std::size_t size_bytes) : Memory(address, size_bytes) {}
};

// Owns page-locked host memory, usable at the same address by every device. Empty as a DeviceBuffer.
class PinnedBuffer : public internal::Memory<void*, internal::free_pinned> {
 public:
  PinnedBuffer() = default;
  // Blocks as cuMemHostAlloc does. kResourceExhausted when the host has too little.
  static absl::StatusOr<PinnedBuffer> create(ContextRef context, std::size_t size_bytes);
  // Takes over memory of cuMemHostAlloc or cudaHostAlloc.
  static PinnedBuffer adopt(void* address, std::size_t size_bytes) { return {address, size_bytes}; }
  // To be freed with cuMemFreeHost or cudaFreeHost.
  void* release() && { return give_up(); }

 private:
  PinnedBuffer(void* address, std::size_t size_bytes) : Memory(address, size_bytes) {}
};

}  // namespace cgrt
