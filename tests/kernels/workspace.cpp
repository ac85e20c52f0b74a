// One workspace for all: launches of several families and plans, large and small, one after the other on it find the
// same bits as each on a workspace of its own.
#include "cgrt_kernels/common/workspace.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/cub/cub.h"
#include "cgrt_kernels/index/index.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/reduce/reduce.h"
#include "cgrt_kernels/scan/scan.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

// A launch that reads `in`, and as indices or flags `numbers`.
struct User {
  std::string name;
  std::size_t workspace_bytes, out_bytes;
  std::function<absl::Status(LaunchTarget, void* out, const Workspace& workspace)> launch;
};

struct Inputs {
  const void* in;
  const std::int32_t* indices;
};

class Users {
 public:
  explicit Users(const Inputs& inputs, bool is_simulated) : inputs_(inputs), is_simulated_(is_simulated) {}

  absl::Status scan(DType type, std::uint64_t rows, std::uint64_t columns, std::size_t shift = 0) {
    if (is_simulated_ && rows * columns > kMaxSimulated) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(const ScanPlan plan, plan_scan(kDevice, {.type = type, .rows = rows, .columns = columns}));
    const void* const in = static_cast<const unsigned char*>(inputs_.in) + shift;
    return add(absl::StrCat("scan ", to_string(type), " ", rows, "x", columns), plan.workspace_bytes,
               rows * columns * size_of(type), [=](LaunchTarget target, void* out, const Workspace& workspace) {
                 return launch_scan(target, plan, {.out = out, .in = in, .workspace = workspace});
               });
  }
  absl::Status reduce(ReduceOp op, DType type, ReduceOver over, std::uint64_t rows, std::uint64_t columns) {
    if (is_simulated_ && rows * columns > kMaxSimulated) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(const ReducePlan plan, plan_reduce(kDevice, {op, type, over, rows, columns}));
    const std::uint64_t results = over == ReduceOver::kAll ? 1 : over == ReduceOver::kRow ? rows : columns;
    return add(absl::StrCat(to_string(op), " ", to_string(type), " ", static_cast<int>(over), " ", rows, "x", columns),
               plan.workspace_bytes, results * size_of(result_type(op, type)),
               [=, in = inputs_.in](LaunchTarget target, void* out, const Workspace& workspace) {
                 return launch_reduce(target, plan, {.out = out, .in = in, .other = in, .workspace = workspace});
               });
  }
  absl::Status batch_norm(std::uint64_t batch, std::uint64_t channels, std::uint64_t plane) {
    const BatchNormDesc desc{.batch = batch, .channels = channels, .plane = plane, .alignment = 4};
    CGRT_ASSIGN_OR_RETURN(const BatchNormPlan plan, plan_batch_norm(kDevice, desc));
    const std::size_t saved = 2 * channels * sizeof(float);
    return add(absl::StrCat("batch_norm ", batch, "x", channels, "x", plane), plan.workspace_bytes,
               saved + batch * channels * plane * sizeof(float),
               [=, in = inputs_.in](LaunchTarget target, void* out, const Workspace& workspace) {
                 auto* const floats = static_cast<float*>(out);
                 return launch_batch_norm_train(target, plan,
                                                {.y = floats + 2 * channels,
                                                 .x = in,
                                                 .save_mean = floats,
                                                 .save_invstd = floats + channels,
                                                 .workspace = workspace});
               });
  }
  absl::Status index_add(DType type, std::uint64_t columns, SumOrder order) {
    const IndexDesc desc{IndexOp::kAdd, type, DType::kInt32, kIndexRows, columns, kIndices, order};
    CGRT_ASSIGN_OR_RETURN(const IndexPlan plan, plan_index(kDevice, desc));
    const std::size_t bytes = kIndexRows * columns * size_of(type);
    return add(absl::StrCat("index_add ", to_string(type), " of ", columns), plan.workspace_bytes, bytes,
               [=, inputs = inputs_](LaunchTarget target, void* out, const Workspace& workspace) -> absl::Status {
                 CGRT_RETURN_IF_ERROR(fill8(target, out, 0, bytes));
                 return launch_index(target, plan,
                                     {.out = out, .in = inputs.in, .index = inputs.indices, .workspace = workspace});
               });
  }
  absl::Status norm_backward(DType type, std::uint64_t rows, std::uint64_t columns) {
    if (is_simulated_ && rows * columns > kMaxSimulated) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(
        const NormBackwardPlan plan,
        plan_norm_backward(kDevice, {NormOp::kLayerNorm, type, rows, columns, 1e-5f, WeightGradients::kSummed}));
    const std::size_t row = columns * size_of(type);
    return add(absl::StrCat("layer_norm backward ", to_string(type), " ", rows, "x", columns), plan.workspace_bytes,
               (rows + 2) * row, [=, in = inputs_.in](LaunchTarget target, void* out, const Workspace& workspace) {
                 auto* const bytes = static_cast<unsigned char*>(out);
                 return launch_norm_backward(target, plan,
                                             {.dx = bytes + 2 * row,
                                              .dy = in,
                                              .x = in,
                                              .dweight = bytes,
                                              .dbias = bytes + row,
                                              .workspace = workspace});
               });
  }
  absl::Status sort(std::uint64_t count) {
    CGRT_ASSIGN_OR_RETURN(const RadixSortPlan plan, plan_radix_sort(kDevice, {.count = count}));
    return add(absl::StrCat("radix sort of ", count), plan.workspace_bytes, count * 4,
               [=, in = inputs_.in](LaunchTarget target, void* out, const Workspace& workspace) {
                 return launch_radix_sort(target, plan, {.keys_out = out, .keys_in = in, .workspace = workspace});
               });
  }

  static constexpr std::uint64_t kIndexRows = 50, kIndices = 2000;  // more than one kernel groups
  const std::vector<User>& all() const { return users_; }

 private:
  static constexpr std::uint64_t kMaxSimulated = 1 << 20;
  template <class Launch>
  absl::Status add(const std::string& name, std::size_t workspace_bytes, std::size_t out_bytes, Launch launch) {
    users_.push_back({name, workspace_bytes, out_bytes, launch});
    return absl::OkStatus();
  }

  Inputs inputs_;
  bool is_simulated_;
  std::vector<User> users_;
};

// Each kind between others, those that need much before those that need little, and the other way round.
absl::Status add_users(Users& users) {
  constexpr std::uint64_t kMany = 1 << 20;
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat32, 1, kMany));
  CGRT_RETURN_IF_ERROR(users.reduce(ReduceOp::kSum, DType::kFloat32, ReduceOver::kAll, 1, kMany));
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat16, 1, 40000));
  CGRT_RETURN_IF_ERROR(users.reduce(ReduceOp::kArgmax, DType::kFloat16, ReduceOver::kRow, 40, 16384));
  CGRT_RETURN_IF_ERROR(users.batch_norm(8, 3, 9000));
  CGRT_RETURN_IF_ERROR(users.norm_backward(DType::kFloat16, 3, 700001));
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat64, 3, 9000));
  CGRT_RETURN_IF_ERROR(users.index_add(DType::kFloat32, 72, SumOrder::kFixed));
  CGRT_RETURN_IF_ERROR(users.reduce(ReduceOp::kSum, DType::kFloat16, ReduceOver::kColumn, 4096, 136));
  CGRT_RETURN_IF_ERROR(users.scan(DType::kInt32, 5, 33000, 4));
  CGRT_RETURN_IF_ERROR(users.sort(100000));
  CGRT_RETURN_IF_ERROR(users.norm_backward(DType::kFloat32, 50, 1000));
  CGRT_RETURN_IF_ERROR(users.reduce(ReduceOp::kDot, DType::kFloat64, ReduceOver::kAll, 1, kMany / 2));
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat32, 1, 1 << 24));
  CGRT_RETURN_IF_ERROR(users.reduce(ReduceOp::kMax, DType::kInt64, ReduceOver::kAll, 1, 70001));
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat32, 2, 20000));
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat64, 1600, 20000));  // more sums than the header has room for
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat32, 7, 20000));
  return users.index_add(DType::kFloat16, 8, SumOrder::kAny);
}

class Bench {
 public:
  static absl::StatusOr<Bench> create(std::size_t input_bytes) {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
    const Bytes numbers = random_elements(DType::kFloat32, 1 << 16, 0.5, 3, 1);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, DeviceBuffer::create(kDevice, input_bytes));
    for (std::size_t at = 0; at < input_bytes; at += numbers.size()) {
      CGRT_RETURN_IF_ERROR(
          copy(stream.ref(), in.as<unsigned char>() + at, numbers.data(), std::min(numbers.size(), input_bytes - at)));
    }
    std::vector<std::int32_t> indices(Users::kIndices);
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int32_t>(i * i % Users::kIndexRows);
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer on_device, DeviceBuffer::create(kDevice, indices.size() * 4));
    CGRT_RETURN_IF_ERROR(copy(stream.ref(), on_device.data(), indices.data(), indices.size() * 4));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return Bench(std::move(stream), std::move(in), std::move(on_device));
  }

  StreamRef stream() const { return stream_.ref(); }
  Inputs inputs() const { return {in_.data(), indices_.as<std::int32_t>()}; }

  absl::StatusOr<Bytes> result(const User& user, const Workspace& workspace) const {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, user.out_bytes));
    CGRT_RETURN_IF_ERROR(fill8(stream(), out.data(), 0xcb, user.out_bytes));
    CGRT_RETURN_IF_ERROR(user.launch(stream(), out.data(), workspace));
    return bytes_of(out.data(), user.out_bytes);
  }
  absl::StatusOr<Bytes> bytes_of(const void* data, std::size_t count) const {
    Bytes bytes(count);
    CGRT_RETURN_IF_ERROR(copy(stream(), bytes.data(), data, count));
    CGRT_RETURN_IF_ERROR(stream().synchronize());
    return bytes;
  }

 private:
  Bench(Stream stream, DeviceBuffer in, DeviceBuffer indices)
      : stream_(std::move(stream)), in_(std::move(in)), indices_(std::move(indices)) {}

  Stream stream_;
  DeviceBuffer in_, indices_;
};

// Scratch memory where every word looks like one that the next launches publish.
absl::Status poison(StreamRef stream, const Workspace& workspace, std::uint32_t tag) {
  return fill32(stream, scratch_of(workspace), tag, (workspace.bytes - kWorkspaceHeaderBytes) / 4);
}

// What is zero between launches.
absl::Status check_header(const Bench& bench, const Workspace& workspace) {
  CGRT_ASSIGN_OR_RETURN(const Bytes bytes, bench.bytes_of(workspace.data, kWorkspaceHeaderBytes));
  for (std::size_t i = offsetof(WorkspaceHeader, counters); i < bytes.size(); ++i) {
    if (bytes[i] != 0) return absl::InternalError(absl::StrCat("byte ", i, " of the header is not zero"));
  }
  return absl::OkStatus();
}

struct Shared {
  DeviceBuffer memory;
  Workspace workspace;
};
absl::StatusOr<Shared> shared_by(const Users& users, StreamRef stream) {
  std::size_t bytes = 0;
  for (const User& user : users.all()) bytes = std::max(bytes, user.workspace_bytes);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer memory, DeviceBuffer::create(kDevice, bytes));
  const Workspace workspace{memory.data(), bytes};
  CGRT_RETURN_IF_ERROR(fill8(stream, memory.data(), 0xee, bytes));
  CGRT_RETURN_IF_ERROR(initialize_workspace(stream, workspace));
  return Shared{std::move(memory), workspace};
}

absl::StatusOr<std::vector<Bytes>> expected_of(const Bench& bench, const Users& users) {
  std::vector<Bytes> expected;
  for (const User& user : users.all()) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer memory,
                          DeviceBuffer::create(kDevice, std::max<std::size_t>(user.workspace_bytes, 1)));
    const Workspace own{memory.data(), user.workspace_bytes};
    CGRT_RETURN_IF_ERROR(initialize_workspace(bench.stream(), own));
    CGRT_ASSIGN_OR_RETURN(Bytes found, bench.result(user, own));
    expected.push_back(std::move(found));
  }
  return expected;
}

absl::Status check_in_turn(const Bench& bench, const Users& users, const std::vector<Bytes>& expected) {
  CGRT_ASSIGN_OR_RETURN(const Shared shared, shared_by(users, bench.stream()));
  const std::size_t count = users.all().size();
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = round == 1 ? count - 1 - i : i * (2 * round + 1) % count;  // another order each time
      const User& user = users.all()[at];
      CGRT_RETURN_IF_ERROR(poison(bench.stream(), shared.workspace, static_cast<std::uint32_t>(i / 2 + 1)));
      CGRT_ASSIGN_OR_RETURN(const Bytes found, bench.result(user, shared.workspace));
      if (found != expected[at]) return absl::InternalError(absl::StrCat(user.name, ": other bits in round ", round));
      CGRT_RETURN_IF_ERROR(check_header(bench, shared.workspace));
    }
  }
  return absl::OkStatus();
}

// All of them in a graph that is launched again, with the edges that `programmatic` says.
absl::Status check_in_graph(const Bench& bench, const Users& users, const std::vector<Bytes>& expected,
                            bool is_programmatic) {
  CGRT_ASSIGN_OR_RETURN(const Shared shared, shared_by(users, bench.stream()));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  std::vector<DeviceBuffer> outs;
  Cursor cursor = graph.cursor();
  for (const User& user : users.all()) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, user.out_bytes));
    const bool follows_kernel = user.name.find("index_add") != 0 && user.name.find("radix") != 0 && !outs.empty();
    const LaunchTarget target = is_programmatic && follows_kernel ? cursor.programmatic() : LaunchTarget(cursor);
    CGRT_RETURN_IF_ERROR(user.launch(target, out.data(), shared.workspace));
    outs.push_back(std::move(out));
  }
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  for (int replay = 0; replay < 3; ++replay) {
    for (std::size_t i = 0; i < outs.size(); ++i) {
      CGRT_RETURN_IF_ERROR(fill8(bench.stream(), outs[i].data(), 0xcb, users.all()[i].out_bytes));
    }
    CGRT_RETURN_IF_ERROR(exec.launch(bench.stream()));
    for (std::size_t i = 0; i < outs.size(); ++i) {
      CGRT_ASSIGN_OR_RETURN(const Bytes found, bench.bytes_of(outs[i].data(), users.all()[i].out_bytes));
      if (found == expected[i]) continue;
      return absl::InternalError(absl::StrCat(users.all()[i].name, ": other bits in replay ", replay));
    }
  }
  return check_header(bench, shared.workspace);
}

// When the launches of a workspace are counted anew from 0, and words hold old tags that will come again.
absl::Status check_count_begins_anew(const Bench& bench, const Users& users, const std::vector<Bytes>& expected) {
  CGRT_ASSIGN_OR_RETURN(const Shared shared, shared_by(users, bench.stream()));
  const std::uint64_t launches = std::uint64_t{0xffffffffu - 3} << 32;
  CGRT_RETURN_IF_ERROR(copy(bench.stream(), shared.workspace.data, &launches, sizeof(launches)));
  CGRT_RETURN_IF_ERROR(bench.stream().synchronize());
  for (int round = 0; round < 8; ++round) {
    for (std::size_t i = 0; i < users.all().size(); ++i) {
      const User& user = users.all()[i];
      if (user.name.find("scan") != 0 || user.out_bytes > 1 << 20) continue;
      CGRT_ASSIGN_OR_RETURN(const Bytes found, bench.result(user, shared.workspace));
      if (found != expected[i]) return absl::InternalError(absl::StrCat(user.name, ": other bits in round ", round));
    }
  }
  return absl::OkStatus();
}

// Of the words that no launch of a plan writes, each one is zero after as many launches as there are words.
absl::Status check_old_tags_go(const Bench& bench) {
  Users users(bench.inputs(), false);
  CGRT_RETURN_IF_ERROR(users.scan(DType::kFloat32, 1, 40000));
  CGRT_ASSIGN_OR_RETURN(const Shared shared, shared_by(users, bench.stream()));
  WorkspaceHeader* const header = header_of(shared.workspace);
  CGRT_RETURN_IF_ERROR(fill32(bench.stream(), header->tagged, 0x5a5a5a5a, 2 * WorkspaceHeader::kTaggedWords));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, users.all()[0].out_bytes));
  for (std::uint32_t i = 0; i < WorkspaceHeader::kTaggedWords; ++i) {
    CGRT_RETURN_IF_ERROR(users.all()[0].launch(bench.stream(), out.data(), shared.workspace));
  }
  CGRT_ASSIGN_OR_RETURN(const Bytes bytes, bench.bytes_of(header->tagged, sizeof(header->tagged)));
  for (std::size_t i = 0; i < WorkspaceHeader::kTaggedWords; ++i) {
    std::uint64_t word;
    std::memcpy(&word, &bytes[i * 8], 8);
    if (word == 0x5a5a5a5a5a5a5a5a) return absl::InternalError(absl::StrCat("word ", i, " is as it was"));
  }
  return absl::OkStatus();
}

absl::Status check_all(Report& report) {
  CGRT_ASSIGN_OR_RETURN(const Bench bench, Bench::create(report.is_simulated() ? 32 << 20 : 512 << 20));
  Users users(bench.inputs(), report.is_simulated());
  CGRT_RETURN_IF_ERROR(add_users(users));
  CGRT_ASSIGN_OR_RETURN(const std::vector<Bytes> expected, expected_of(bench, users));
  report.check("a workspace in turn", check_in_turn(bench, users, expected));
  report.check("a workspace in a graph", check_in_graph(bench, users, expected, false));
  report.check("a workspace in a graph, programmatically", check_in_graph(bench, users, expected, true));
  if (report.is_simulated()) return absl::OkStatus();  // where nothing is published
  report.check("launches counted anew", check_count_begins_anew(bench, users, expected));
  report.check("old tags go", check_old_tags_go(bench));
  return absl::OkStatus();
}

}  // namespace

void check_workspace(Report& report) { report.check("workspaces of all families", check_all(report)); }

}  // namespace cgrt::testing
