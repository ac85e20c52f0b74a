#include "cgrt_kernels/common/tensor_map.h"

#include <initializer_list>

#include "cgrt/device/context.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"

namespace cgrt::kernels {
namespace {

alignas(16) unsigned char memory[32];

absl::StatusCode code_of(const void* address, std::initializer_list<TensorDimension> dimensions) {
  return make_tensor_map(address, DType::kFloat16, dimensions).status().code();
}

}  // namespace

TEST_CASE("a tensor map is refused where the driver would", "[kernels][tensor_map]") {
  const Simulator fake;
  CHECK(code_of(memory, {{64, 1, 64}}) == absl::StatusCode::kFailedPrecondition);  // no context is current
  const auto context = ContextRef(DeviceRef(0)).get();
  const auto current = ScopedContext::enter(*context);

  CHECK(code_of(memory, {{64, 1, 64}, {10, 64, 10}}) == absl::StatusCode::kOk);
  CHECK(code_of(nullptr, {{64, 1, 64}, {10, 64, 10}}) == absl::StatusCode::kInvalidArgument);
  CHECK(code_of(memory + 8, {{64, 1, 64}, {10, 64, 10}}) == absl::StatusCode::kInvalidArgument);
  CHECK(code_of(memory, {}) == absl::StatusCode::kInvalidArgument);
  CHECK(code_of(memory, {{0, 1, 64}, {10, 64, 10}}) == absl::StatusCode::kInvalidArgument);
  CHECK(code_of(memory, {{64, 1, 64}, {10, 68, 10}}) == absl::StatusCode::kInvalidArgument);
  CHECK(code_of(memory, {{64, 1, 64}, {10, 64, 257}}) == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a tensor map survives the failure of its driver call", "[kernels][tensor_map][fault]") {
  const Simulator fake;
  driver::Instrument instrument;

  instrument.fail_entry("cuTensorMapEncodeTiled", CUDA_ERROR_OUT_OF_MEMORY);

  CHECK(code_of(memory, {{64, 1, 64}}) == absl::StatusCode::kResourceExhausted);
}

}  // namespace cgrt::kernels
