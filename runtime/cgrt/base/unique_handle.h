// UniqueHandle<H, destroy>: owns one handle and gives it to `destroy` once. Move-only.
//
//   UniqueHandle<CUevent, driver::destroy_event> event(raw_event);
#pragma once

#include "cgrt/base/language.h"  // first

#include <utility>

namespace cgrt {

template <class Handle, auto kDestroy>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(Handle handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.handle_, Handle{}));
    return *this;
  }
  ~UniqueHandle() { reset(); }

  void reset(Handle handle = Handle{}) {
    if (handle_ != Handle{}) kDestroy(handle_);
    handle_ = handle;
  }
  Handle get() const { return handle_; }
  Handle release() { return std::exchange(handle_, Handle{}); }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  Handle handle_{};
};

}  // namespace cgrt
