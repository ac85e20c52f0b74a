// A semaphore that CUDA did not make: on a device one of Vulkan's, on the simulator a word in a file.
#pragma once

#include <cstdint>
#include <memory>

#include "cgrt/cgrt.h"

namespace cgrt::testing {

// A skip (support/skip.h) where there is no Vulkan that knows device 0.
absl::Status check_test_semaphores();

class TestSemaphore {
 public:
  struct Impl {
    virtual ~Impl() = default;
    virtual absl::StatusOr<int> descriptor() = 0;
    virtual absl::Status signal(std::uint64_t value) = 0;
    virtual absl::StatusOr<std::uint64_t> value() = 0;
  };

  // A timeline's value is 0, a binary one is not signaled.
  static absl::StatusOr<TestSemaphore> create(SemaphoreKind kind);
  // To be closed by the caller, unless it is imported.
  absl::StatusOr<int> descriptor() const { return impl_->descriptor(); }
  absl::StatusOr<ExternalSemaphore> imported() const;
  // Of a timeline, by the host.
  absl::Status signal(std::uint64_t value) const { return impl_->signal(value); }
  absl::StatusOr<std::uint64_t> value() const { return impl_->value(); }

 private:
  TestSemaphore(SemaphoreKind kind, std::unique_ptr<Impl> impl) : kind_(kind), impl_(std::move(impl)) {}
  SemaphoreKind kind_;
  std::unique_ptr<Impl> impl_;
};

// Vulkan's, of the device with that UUID (16 bytes); see vulkan_semaphore.cpp.
absl::Status check_vulkan(const unsigned char* uuid);
absl::StatusOr<std::unique_ptr<TestSemaphore::Impl>> make_vulkan_semaphore(SemaphoreKind kind);

}  // namespace cgrt::testing
