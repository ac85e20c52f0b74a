// Kernels whose parameters hold tensor maps, and those beside them: an executable that was given other buffers does
// what a launch with them does.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::AttentionDesc;
using kernels::AttentionKernel;
using kernels::DType;
using kernels::GemmPlan;
using kernels::MatmulDesc;
using kernels::MatmulEpilogue;
using kernels::MatmulLayout;

// A launch on arrays of these bytes, the output first.
struct Step {
  std::vector<std::size_t> bytes;
  std::function<absl::Status(LaunchTarget, const std::vector<DeviceBuffer>&)> launch;
};

absl::StatusOr<std::vector<DeviceBuffer>> make_arrays(StreamRef stream, const Step& step, DType type,
                                                      std::uint32_t seed) {
  std::vector<DeviceBuffer> arrays;
  for (const std::size_t bytes : step.bytes) {
    const Bytes values = random_elements(type, bytes / size_of(type), 0, 1, ++seed);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer array, DeviceBuffer::create(kDevice, bytes));
    CGRT_RETURN_IF_ERROR(copy(stream, array.data(), values.data(), bytes));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    arrays.push_back(std::move(array));
  }
  return arrays;
}

// What `launch` leaves in the output.
absl::StatusOr<Bytes> result_of(StreamRef stream, const DeviceBuffer& output,
                                absl::FunctionRef<absl::Status()> launch) {
  Bytes found(output.size_bytes());
  CGRT_RETURN_IF_ERROR(fill8(stream, output.data(), 0xff, found.size()));
  CGRT_RETURN_IF_ERROR(launch());
  CGRT_RETURN_IF_ERROR(copy(stream, found.data(), output.data(), found.size()));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return found;
}

absl::Status check(const Step& step, DType type) {
  CGRT_ASSIGN_OR_RETURN(Stream owned, Stream::create(kDevice));
  const StreamRef stream = owned.ref();
  std::vector<std::vector<DeviceBuffer>> sets;
  std::vector<Bytes> expected;
  for (std::uint32_t seed : {0, 100, 200}) {
    CGRT_ASSIGN_OR_RETURN(std::vector<DeviceBuffer> arrays, make_arrays(stream, step, type, seed));
    CGRT_ASSIGN_OR_RETURN(Bytes result, result_of(stream, arrays[0], [&] { return step.launch(stream, arrays); }));
    sets.push_back(std::move(arrays)), expected.push_back(std::move(result));
  }
  if (expected[0] == expected[1]) return absl::InternalError("two sets have one result: nothing would be shown");
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(step.launch(graph.cursor(), sets[0]));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  for (std::size_t turn = 0, at = 0; turn < 12; ++turn) {
    const std::size_t next = (at + 1 + turn / 6) % sets.size();
    for (std::size_t i = 0; i < step.bytes.size(); ++i) {
      CGRT_ASSIGN_OR_RETURN(const std::size_t moved,
                            exec.rebind_buffer(sets[at][i].data(), step.bytes[i], sets[next][i].data()));
      if (moved == 0) return absl::InternalError(absl::StrCat("found no address of array ", i));
    }
    CGRT_ASSIGN_OR_RETURN(const Bytes found, result_of(stream, sets[next][0], [&] { return exec.launch(stream); }));
    if (found != expected[next]) return absl::InternalError(absl::StrCat("another result in turn ", turn));
    at = next;
  }
  return absl::OkStatus();
}

absl::Status check_gemm(const MatmulDesc& desc) {
  CGRT_ASSIGN_OR_RETURN(const GemmPlan plan, plan_gemm(kDevice, desc));
  const std::uint64_t of_d = desc.m * desc.n * 2;
  const auto launch = [&](LaunchTarget target, const std::vector<DeviceBuffer>& arrays) {
    return launch_gemm(target, plan,
                       {.d = arrays[0].data(),
                        .a = arrays[1].data(),
                        .b = arrays[2].data(),
                        .bias = arrays[3].data(),
                        .residual = arrays[4].data()});
  };
  return check({{of_d, desc.m * desc.k * 2, columns_of_b(desc) * desc.k * 2, desc.n * 2, of_d}, launch}, desc.type);
}

absl::Status check_attention(const AttentionDesc& desc) {
  CGRT_ASSIGN_OR_RETURN(const kernels::AttentionPlan plan, plan_attention(kDevice, desc));
  const std::uint64_t of_keys = desc.batch * desc.keys * desc.kv_heads * desc.head_size * 2,
                      of_queries = desc.batch * desc.queries * desc.heads * desc.head_size * 2;
  const auto launch = [&](LaunchTarget target, const std::vector<DeviceBuffer>& arrays) {
    return launch_attention(
        target, plan, {.out = arrays[0].data(), .q = arrays[1].data(), .k = arrays[2].data(), .v = arrays[3].data()});
  };
  return check({{of_queries, of_queries, of_keys, of_keys}, launch}, desc.type);
}

absl::Status check_skinny_gemm(const kernels::SkinnyGemmDesc& desc) {
  CGRT_ASSIGN_OR_RETURN(const kernels::SkinnyGemmPlan plan, plan_skinny_gemm(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer memory,
                        DeviceBuffer::create(kDevice, std::max<std::size_t>(plan.workspace_bytes, 1)));
  const kernels::Workspace workspace{memory.data(), plan.workspace_bytes};
  if (plan.workspace_bytes > 0) {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
    CGRT_RETURN_IF_ERROR(initialize_workspace(stream.ref(), workspace));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  }
  const auto launch = [&](LaunchTarget target, const std::vector<DeviceBuffer>& arrays) {
    return launch_skinny_gemm(
        target, plan,
        {.y = arrays[0].data(), .x = arrays[1].data(), .weights = arrays[2].data(), .workspace = workspace});
  };
  return check({{desc.rows * desc.n * 2, desc.rows * desc.k * 2, desc.n * desc.k * 2}, launch}, desc.type);
}

}  // namespace

void check_rebound(Report& report) {
  const bool has_gemm = !absl::IsUnimplemented(kernels::plan_gemm(kDevice, {.m = 8, .n = 8, .k = 8}).status());
  for (const MatmulLayout layout : {MatmulLayout::kPlain, MatmulLayout::kTransposed}) {
    if (!has_gemm) break;
    for (const std::uint64_t m : {72, 520}) {
      const std::uint64_t n = report.is_simulated() ? 40 : 1032;
      report.check(
          absl::StrCat("gemm, other buffers, m ", m, layout == MatmulLayout::kPlain ? " plain" : ""),
          check_gemm({.m = m, .n = n, .k = 72, .b_layout = layout, .epilogue = MatmulEpilogue::kResidualBias}));
    }
  }
  for (const std::uint64_t rows : {1, 20}) {
    report.check(absl::StrCat("skinny_gemm, other buffers, rows ", rows),
                 check_skinny_gemm({.rows = rows, .n = 136, .k = 520}));
  }
  std::vector<AttentionKernel> all = {AttentionKernel::kBest};
  if (!report.is_simulated()) all.push_back(AttentionKernel::kPortable);
  for (const AttentionKernel kernel : all) {
    for (const std::uint64_t queries : {33, 300}) {
      report.check(absl::StrCat("attention, other buffers, queries ", queries, " kernel ", to_string(kernel)),
                   check_attention({.batch = 2,
                                    .queries = queries,
                                    .keys = queries,
                                    .heads = 2,
                                    .kv_heads = 1,
                                    .head_size = 64,
                                    .kernel = kernel}));
    }
  }
}

}  // namespace cgrt::testing
