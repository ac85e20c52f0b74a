// What both sides of every measurement share: one device, one stream, one small kernel.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"
#include "cgrt_kernels/elementwise/elementwise.h"

namespace graphbench {

struct Setup {
  CUcontext context;
  // As in a program that uses CUDA's runtime: the raw calls need no push, and cgrt's do it anyway.
  cgrt::ScopedContext current;
  cgrt::Stream stream;
  cgrt::Event event;  // recorded, and complete whenever a measurement starts
  cgrt::kernels::ElementwisePlan plan;
  cgrt::DeviceBuffer x, y;

  // Arrays of `count` floats.
  static absl::StatusOr<Setup> create(std::uint64_t count = 1024);

  // The kernel's pointers. Swapped ones are the other value that updates alternate with.
  struct Arrays {
    float* out;
    const float* in;
  };
  Arrays arrays() const { return {y.as<float>(), x.as<float>()}; }
  Arrays swapped_arrays() const { return {x.as<float>(), y.as<float>()}; }
};

// What runs before a query decides what it costs (docs/threads.md, "What a question costs"), so each of both is
// measured. For Side::prepare: nothing that was launched eagerly is left; and: an eager launch is, though it has ended.
std::function<absl::Status(int)> without_eager_work(const Setup& setup);
std::function<absl::Status(int)> after_eager_work(const Setup& setup);

// Scaling by 1 leaves the arrays as they are, however often it runs.
inline constexpr float kAlpha = 1.0f;

}  // namespace graphbench
