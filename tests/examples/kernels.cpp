// Examples of the kernels. cublaslt's is in tests/matmul.
#include <algorithm>
#include <cstring>

#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/bias_activation/bias_activation.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/common/library.h"
#include "cgrt_kernels/cub/cub.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "cgrt_kernels/dropout/dropout.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/group_norm/group_norm.h"
#include "cgrt_kernels/histogram/histogram.h"
#include "cgrt_kernels/index/index.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/reduce/reduce.h"
#include "cgrt_kernels/rope/rope.h"
#include "cgrt_kernels/sampling/sampling.h"
#include "cgrt_kernels/scan/scan.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "cgrt_kernels/topk/topk.h"
#include "cgrt_kernels/transpose_heads/transpose_heads.h"
#include "cgrt_kernels/upsample/upsample.h"
#include "examples/examples.h"

namespace cgrt::examples {
namespace {

using namespace kernels;

// Of any type.
constexpr std::size_t kBytes = 1 << 19;
absl::StatusOr<void*> input(Memory& memory) { return memory.make<char>(kBytes); }
absl::StatusOr<void*> output(Memory& memory) { return memory.make_output<char>(kBytes); }

constexpr std::uint32_t kOne = 0x3f800000;  // as a float
absl::Status first_is(StreamRef stream, const void* array, float wanted) {
  float first = 0;
  CGRT_RETURN_IF_ERROR(copy(stream, &first, array, sizeof(first)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return equal(first, wanted);
}

constexpr std::uint64_t n = 10000, tokens = 7, hidden = 1000;

CGRT_EXAMPLE(softmax) {
  constexpr std::uint64_t rows = 7, columns = 1001;
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/softmax/softmax.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(norm) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(void* const h, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const gamma, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/norm/norm.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(bias_norm) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(void* const h, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const b, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const gamma, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const beta, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/bias_norm/bias_norm.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(bias_activation) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const b, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/bias_activation/bias_activation.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(transpose_heads) {
  constexpr std::uint64_t sequences = 2, positions = 64;
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const offsets, memory.make<std::int32_t>(sequences + 1));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/transpose_heads/transpose_heads.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(batch_norm) {
  constexpr std::uint64_t batch = 4, channels = 16, height = 7, width = 9;
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(float* const mean, memory.make_output<float>(channels));
  CGRT_ASSIGN_OR_RETURN(float* const invstd, memory.make_output<float>(channels));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/batch_norm/batch_norm.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(upsample) {
  constexpr std::uint64_t batch = 2, channels = 3, height = 16, width = 20;
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/upsample/upsample.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(rope) {
  constexpr std::uint64_t positions = 64, sequences = 2;
  CGRT_ASSIGN_OR_RETURN(void* const q, output(memory));
  CGRT_ASSIGN_OR_RETURN(void* const k_cache, output(memory));
  CGRT_ASSIGN_OR_RETURN(void* const v_cache, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const qkv, input(memory));
  CGRT_ASSIGN_OR_RETURN(const float* const table, memory.make<float>(positions * 128));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const position, memory.make<std::int32_t>(tokens));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const sequence, memory.make<std::int32_t>(tokens));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/rope/rope.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(attention) {
  constexpr std::uint64_t sequences = 2;
  CGRT_ASSIGN_OR_RETURN(void* const out, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const q, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const k, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const v, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/attention/attention.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(decode_attention) {
  constexpr std::uint64_t positions = 64, sequences = 2;
  const Workspace workspace;  // short sequences need none
  CGRT_ASSIGN_OR_RETURN(void* const out, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const q, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const k_cache, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const v_cache, input(memory));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const lengths, memory.make<std::int32_t>(sequences));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/decode_attention/decode_attention.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(dropout) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(std::uint8_t* const mask, memory.make_output<std::uint8_t>(n));
  CGRT_ASSIGN_OR_RETURN(RandomState* const state, memory.make_output<RandomState>(1));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/dropout/dropout.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(topk) {
  CGRT_ASSIGN_OR_RETURN(float* const weights, memory.make_output<float>(tokens * 8));
  CGRT_ASSIGN_OR_RETURN(std::int32_t* const chosen, memory.make_output<std::int32_t>(tokens * 8));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/topk/topk.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(gemm) {
  // Elsewhere there is nothing to run.
  if (absl::IsUnimplemented(plan_gemm(DeviceRef(0), {.m = 8, .n = 8, .k = 8}).status())) return absl::OkStatus();
  constexpr std::uint64_t out = 64, in = 64;
  CGRT_ASSIGN_OR_RETURN(void* const y, memory.make_output<std::uint16_t>(tokens * out));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const weights, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const bias, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/gemm/gemm.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(skinny_gemm) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const w, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/skinny_gemm/skinny_gemm.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(group_norm) {
  CGRT_ASSIGN_OR_RETURN(void* const y, memory.make_output<char>(std::size_t{2} * 64 * 64 * 320 * 2));
  CGRT_ASSIGN_OR_RETURN(const void* const x, memory.make<char>(std::size_t{2} * 64 * 64 * 320 * 2));
  CGRT_ASSIGN_OR_RETURN(const void* const weight, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const bias, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/group_norm/group_norm.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(sampling) {
  constexpr std::uint64_t sequences = 13, vocabulary = 500;
  CGRT_ASSIGN_OR_RETURN(std::int32_t* const sampled, memory.make_output<std::int32_t>(sequences));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const float* const temperature, memory.make<float>(sequences));
  CGRT_ASSIGN_OR_RETURN(const std::int32_t* const top_k, memory.make<std::int32_t>(sequences));
  CGRT_ASSIGN_OR_RETURN(const float* const top_p, memory.make<float>(sequences));
  CGRT_ASSIGN_OR_RETURN(RandomState* const state, memory.make_output<RandomState>(1));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/sampling/sampling.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(histogram) {
  CGRT_ASSIGN_OR_RETURN(std::int32_t* const counts, memory.make_output<std::int32_t>(256));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/histogram/histogram.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(reduce) {
  constexpr std::uint64_t rows = 13, columns = 500;
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/reduce/reduce.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(scan) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/scan/scan.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(workspace) {
  CGRT_ASSIGN_OR_RETURN(void* const z, output(memory));
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(const ScanPlan scan, plan_scan(DeviceRef(0), {.columns = n}));
  CGRT_ASSIGN_OR_RETURN(const ReducePlan sum, plan_reduce(DeviceRef(0), {.columns = n}));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/common/workspace.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(cub) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/cub/cub.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(index) {
  constexpr std::uint64_t nodes = 11, edges = 40;
  CGRT_ASSIGN_OR_RETURN(void* const sums, output(memory));
  CGRT_ASSIGN_OR_RETURN(void* const messages, input(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const targets, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(fill32(stream, sums, 0, nodes * 128));
  CGRT_RETURN_IF_ERROR(fill32(stream, messages, kOne, edges * 128));
#include "heads/cgrt_kernels/index/index.h.1.inc"
  return first_is(stream, sums, 40);  // all edges lead to the first node
}

CGRT_EXAMPLE(elementwise) {
  CGRT_ASSIGN_OR_RETURN(void* const y, input(memory));
  CGRT_ASSIGN_OR_RETURN(void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(fill32(stream, x, kOne, n));
#include "heads/cgrt_kernels/elementwise/elementwise.h.1.inc"
  return first_is(stream, y, 2);
}

CGRT_EXAMPLE(elementwise_matrix) {
  CGRT_ASSIGN_OR_RETURN(void* const y, output(memory));
  CGRT_ASSIGN_OR_RETURN(const void* const x, input(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/elementwise/matrix.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(common_topology) {
  constexpr std::uint64_t rows = 100, columns = 1000;
  CGRT_ASSIGN_OR_RETURN(const SoftmaxPlan plan,
                        plan_softmax(DeviceRef(0), {SoftmaxOp::kSoftmax, DType::kFloat32, rows, columns}));
  CGRT_ASSIGN_OR_RETURN(void* const y, memory.make_output<float>(2 * rows * columns));
  CGRT_ASSIGN_OR_RETURN(const void* const x, memory.make<float>(2 * rows * columns));
  CGRT_ASSIGN_OR_RETURN(Graph first, Graph::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(launch_softmax(first.cursor(), plan, {.out = y, .in = x}));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(first));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(launch_softmax(
      graph.cursor(), *plan_softmax(DeviceRef(0), {SoftmaxOp::kSoftmax, DType::kFloat32, 2 * rows, columns}),
      {.out = y, .in = x}));
#include "heads/cgrt_kernels/common/topology.h.1.inc"
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.ref().synchronize();
}

// A library, as far as the example can tell.
absl::Status sort_with_a_library(CUstream stream, void* keys, std::uint64_t count) {
  return fill32(StreamRef(stream), keys, 0, count);
}

CGRT_EXAMPLE(common_library) {
  CGRT_ASSIGN_OR_RETURN(void* const keys, output(memory));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt_kernels/common/library.h.1.inc"
  return stream.ref().synchronize();
}

}  // namespace
}  // namespace cgrt::examples
