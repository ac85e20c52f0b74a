#include "cgrt/memory/memory_op.h"

#include <cstddef>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace internal {
namespace {

bool is_wait(const MemoryOp& op) { return op.kind != MemoryOp::Kind::kWrite; }

CUstreamBatchMemOpType type_of(const MemoryOp& op) {
  if (op.bytes == 8) return is_wait(op) ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
  return is_wait(op) ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
}

unsigned flags_of(MemoryOp::Kind kind) {
  switch (kind) {
    case MemoryOp::Kind::kWaitEqual: return CU_STREAM_WAIT_VALUE_EQ;
    case MemoryOp::Kind::kWaitAnd: return CU_STREAM_WAIT_VALUE_AND;
    case MemoryOp::Kind::kWaitNor: return CU_STREAM_WAIT_VALUE_NOR;
    case MemoryOp::Kind::kWaitGreaterOrEqual: return CU_STREAM_WAIT_VALUE_GEQ;
    case MemoryOp::Kind::kWrite: return CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  return 0;
}

}  // namespace

absl::Status check(absl::Span<const MemoryOp> ops) {
  if (ops.empty()) return absl::InvalidArgumentError("There is no memory operation to make.");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const MemoryOp& op = ops[i];
    const auto address = reinterpret_cast<std::uintptr_t>(op.address);
    const bool is_sized = op.bytes == 4 || op.bytes == 8;
    if (op.kind <= MemoryOp::Kind::kWaitNor && is_sized && address != 0 && address % op.bytes == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("Memory operation ", i, " of ", ops.size(), ", counted from 0, on ",
                                                   counted(op.bytes, "byte"), " at 0x", absl::Hex(address),
                                                   ": the address must be a multiple of the size, which is 4 or 8, "
                                                   "and not null."));
  }
  return absl::OkStatus();
}

absl::Status check_for_node(absl::Span<const MemoryOp> ops) {
  CGRT_RETURN_IF_ERROR(check(ops));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    unsigned type = 0;
    CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void* values[] = {&type};
    const auto address = reinterpret_cast<CUdeviceptr>(ops[i].address);
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().PointerGetAttributes(1, ids, values, address), "cuPointerGetAttributes"));
    if (type != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("Memory operation ", i, " of ", ops.size(),
                                                   ", counted from 0, is on 0x", absl::Hex(address),
                                                   ", which is no memory of the device's, nor pinned memory."));
  }
  return absl::OkStatus();
}

std::vector<CUstreamBatchMemOpParams> to_driver(absl::Span<const MemoryOp> ops) {
  std::vector<CUstreamBatchMemOpParams> params(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const MemoryOp& op = ops[i];
    const auto address = reinterpret_cast<CUdeviceptr>(op.address);
    params[i] = {};
    if (is_wait(op)) {
      params[i].waitValue.operation = type_of(op);
      params[i].waitValue.address = address;
      params[i].waitValue.value64 = op.value;
      params[i].waitValue.flags = flags_of(op.kind);
    } else {
      params[i].writeValue.operation = type_of(op);
      params[i].writeValue.address = address;
      params[i].writeValue.value64 = op.value;
      params[i].writeValue.flags = flags_of(op.kind);
    }
  }
  return params;
}

absl::Status explain(const absl::Status& failure, absl::Span<const MemoryOp> ops) {
  const auto address = reinterpret_cast<std::uintptr_t>(ops.front().address);
  return driver::annotate(
      failure, absl::StrCat(counted(ops.size(), "memory operation"), ", the first at 0x", absl::Hex(address)));
}

}  // namespace internal

absl::Status memory_ops(LaunchTarget target, absl::Span<const MemoryOp> ops) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a batch of memory operations"));
  CGRT_RETURN_IF_ERROR(internal::check(ops));
  if (target.sink() != nullptr) return target.sink()->add_memory_ops(ops);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  std::vector<CUstreamBatchMemOpParams> params = internal::to_driver(ops);
  const CUresult result =
      driver::api().StreamBatchMemOp(stream, static_cast<unsigned>(params.size()), params.data(), 0);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain(driver::to_status(result, "cuStreamBatchMemOp"), ops);
  }
  internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

}  // namespace cgrt
