// One chain of kernels, every target.
#include <cmath>
#include <cstring>

#include "behaviour/behaviour.h"
#include "cgrt/ir/diff.h"
#include "cgrt_kernels/elementwise/elementwise.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 1000;

struct Chain {
  DeviceBuffer x, y, z;
  LaunchConfig config;

  static absl::StatusOr<Chain> create(World& world) {
    std::vector<float> values(kCount);
    for (int i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = std::sin(static_cast<float>(i));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, values));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, -1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer z, device_floats(world, kCount, -2.0f));
    CGRT_ASSIGN_OR_RETURN(LaunchConfig config, suggest_config(scale_kernel(), world.device(), kCount));
    return Chain{std::move(x), std::move(y), std::move(z), config};
  }

  // y = 1.1 x, z = y + 0.3, y = y + z
  absl::Status run(LaunchTarget target) const {
    CGRT_RETURN_IF_ERROR(launch(target, config, scale_kernel(), y.as<float>(), x.as<float>(), 1.1f, kCount));
    CGRT_RETURN_IF_ERROR(launch(target, config, shift_kernel(), z.as<float>(), y.as<float>(), 0.3f, kCount));
    return launch(target, config, add_kernel(), y.as<float>(), y.as<float>(), z.as<float>(), kCount);
  }

  // The same with a copy and a memset around it.
  absl::Status run_with_memory(LaunchTarget target) const {
    CGRT_RETURN_IF_ERROR(fill32(target, z.data(), 0x3f800000u, kCount));
    CGRT_RETURN_IF_ERROR(run(target));
    return copy(target, z.data(), y.data(), y.size_bytes());
  }

  absl::StatusOr<std::vector<float>> result(World& world) const { return read_floats(world, y); }
};

absl::Status clear(World& world, const Chain& chain, StreamRef stream) {
  CGRT_RETURN_IF_ERROR(fill8(stream, chain.y.data(), 0xee, chain.y.size_bytes()));
  CGRT_RETURN_IF_ERROR(fill8(stream, chain.z.data(), 0xee, chain.z.size_bytes()));
  static_cast<void>(world);
  return stream.synchronize();
}

std::string checksum(const std::vector<float>& values) {
  std::uint32_t sum = 2166136261u;
  for (float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    sum = (sum ^ bits) * 16777619u;
  }
  return std::to_string(sum);
}

BEHAVIOUR("a chain gives the same bits eagerly, captured and explicitly") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Chain chain, Chain::create(world));

  CGRT_RETURN_IF_ERROR(chain.run(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(std::vector<float> eager, chain.result(world));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), [&](StreamRef s) { return chain.run(s); }));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(chain.run(cursor));
  std::vector<std::vector<float>> results;
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    CGRT_RETURN_IF_ERROR(clear(world, chain, stream.ref()));
    CGRT_RETURN_IF_ERROR(exec.upload(stream.ref()));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(std::vector<float> result, chain.result(world));
    results.push_back(result);
  }

  EXPECT(eager == results[0]);
  EXPECT(eager == results[1]);
  notes.line("checksum " + checksum(eager));
  return notes.graph("captured", captured);
}

BEHAVIOUR("the captured and the explicit graph of a chain are the same graph") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Chain chain, Chain::create(world));

  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), [&](StreamRef s) { return chain.run_with_memory(s); }));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(chain.run_with_memory(cursor));

  CGRT_ASSIGN_OR_RETURN(ir::GraphIr a, snapshot(captured));
  CGRT_ASSIGN_OR_RETURN(ir::GraphIr b, snapshot(built));
  EXPECT(!ir::first_difference(a, b).has_value());
  CGRT_ASSIGN_OR_RETURN(std::size_t count, built.node_count());
  EXPECT(count == 5);
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  return notes.graph("built", built);
}

BEHAVIOUR("programmatic targets make programmatic edges between kernels, captured and explicit alike") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Chain chain, Chain::create(world));
  const auto run = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(target, chain.z.data(), 0, kCount));
    return chain.run(target.programmatic());
  };

  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), [&](StreamRef s) { return run(s); }));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(run(cursor));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());

  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  return notes.graph("built", built);
}

BEHAVIOUR("fork and join: a captured one is the explicit one") {
  CGRT_ASSIGN_OR_RETURN(Stream main, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event forked, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event joined, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Chain chain, Chain::create(world));
  float* x = chain.x.as<float>();
  float* y = chain.y.as<float>();
  float* z = chain.z.as<float>();
  const LaunchConfig config = chain.config;

  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(main.ref(), [&](StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(launch(s, config, scale_kernel(), x, x, 1.0f, kCount));
                          CGRT_RETURN_IF_ERROR(s.record(forked.ref()));
                          CGRT_RETURN_IF_ERROR(side.ref().wait(forked.ref()));
                          CGRT_RETURN_IF_ERROR(launch(s, config, scale_kernel(), y, x, 2.0f, kCount));
                          CGRT_RETURN_IF_ERROR(launch(side.ref(), config, scale_kernel(), z, x, 3.0f, kCount));
                          CGRT_RETURN_IF_ERROR(side.ref().record(joined.ref()));
                          CGRT_RETURN_IF_ERROR(s.wait(joined.ref()));
                          return launch(s, config, add_kernel(), y, y, z, kCount);
                        }));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor a = built.cursor();
  CGRT_RETURN_IF_ERROR(launch(a, config, scale_kernel(), x, x, 1.0f, kCount));
  Cursor b = a;
  CGRT_RETURN_IF_ERROR(launch(a, config, scale_kernel(), y, x, 2.0f, kCount));
  CGRT_RETURN_IF_ERROR(launch(b, config, scale_kernel(), z, x, 3.0f, kCount));
  a.join(b);
  CGRT_RETURN_IF_ERROR(launch(a, config, add_kernel(), y, y, z, kCount));
  CGRT_ASSIGN_OR_RETURN(Graph named, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode root, named.add_kernel({}, config, scale_kernel(), x, x, 1.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(KernelNode left, named.add_kernel(after(root), config, scale_kernel(), y, x, 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(KernelNode right, named.add_kernel(after(root), config, scale_kernel(), z, x, 3.0f, kCount));
  CGRT_RETURN_IF_ERROR(named.add_kernel(after(left, right), config, add_kernel(), y, y, z, kCount).status());

  CGRT_ASSIGN_OR_RETURN(ir::GraphIr of_capture, snapshot(captured));
  CGRT_ASSIGN_OR_RETURN(ir::GraphIr of_cursor, snapshot(built));
  CGRT_ASSIGN_OR_RETURN(ir::GraphIr of_names, snapshot(named));
  EXPECT(!ir::first_difference(of_capture, of_cursor).has_value());
  EXPECT(!ir::first_difference(of_capture, of_names).has_value());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(captured));
  CGRT_RETURN_IF_ERROR(exec.launch(main.ref()));
  CGRT_RETURN_IF_ERROR(main.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(std::vector<float> result, chain.result(world));
  notes.line("checksum " + checksum(result));
  return notes.graph("captured", captured);
}

BEHAVIOUR("scopes name the nodes that are made in them, captured and explicit alike") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Chain chain, Chain::create(world));
  const auto run = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(target, chain.z.data(), 0, kCount));
    {
      Scope layer("layer0");
      CGRT_RETURN_IF_ERROR(chain.run(target));
      Scope inner("attention");
      CGRT_RETURN_IF_ERROR(chain.run(target));
    }
    return chain.run(target);
  };

  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), [&](StreamRef s) { return run(s); }));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(run(cursor));

  CGRT_ASSIGN_OR_RETURN(ir::GraphIr a, snapshot(captured));
  CGRT_ASSIGN_OR_RETURN(ir::GraphIr b, snapshot(built));
  EXPECT(a == b);
  return notes.graph("captured", captured);
}

BEHAVIOUR("elementwise operations are right at every size and alignment, on every target") {
  using kernels::ElementwiseOp;
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  for (ElementwiseOp op : {ElementwiseOp::kScale, ElementwiseOp::kAdd, ElementwiseOp::kMul, ElementwiseOp::kAxpy}) {
    for (std::size_t count : {1u, 31u, 32u, 33u, 255u, 256u, 257u, 2047u, 2049u, 100003u}) {
      for (std::size_t shift : {0u, 1u}) {
        std::vector<float> a(count + shift), b(count + shift);
        for (std::size_t i = 0; i < a.size(); ++i) {
          a[i] = std::sin(static_cast<float>(i) * 0.7f) * 1000.0f;
          b[i] = std::cos(static_cast<float>(i) * 1.3f);
        }
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer da, device_floats(world, a));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer db, device_floats(world, b));
        CGRT_ASSIGN_OR_RETURN(kernels::ElementwisePlan plan, kernels::plan_elementwise(world.device(), {op, count}));
        for (int mode = 0; mode < 3; ++mode) {
          CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, device_floats(world, count + shift + 1, -77.0f));
          const kernels::ElementwiseArgs args{out.as<float>() + shift, da.as<float>() + shift, db.as<float>() + shift,
                                              0.3f};
          if (mode == 0) {
            CGRT_RETURN_IF_ERROR(kernels::launch_elementwise(stream.ref(), plan, args));
          } else {
            CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
            if (mode == 1) {
              CGRT_ASSIGN_OR_RETURN(
                  graph, capture(stream.ref(), [&](StreamRef s) { return launch_elementwise(s, plan, args); }));
            } else {
              CGRT_RETURN_IF_ERROR(launch_elementwise(graph.cursor(), plan, args));
            }
            CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
            CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
          }
          CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
          CGRT_ASSIGN_OR_RETURN(std::vector<float> got, read_floats(world, out));
          bool right = got.back() == -77.0f && (shift == 0 || got[0] == -77.0f);
          for (std::size_t i = 0; i < count; ++i) {
            // In float64, rounded once: every one of these operations is correctly rounded.
            const double x = a[i + shift], y = b[i + shift], alpha = 0.3f;
            const double exact = op == ElementwiseOp::kScale ? alpha * x
                                 : op == ElementwiseOp::kAdd ? x + y
                                 : op == ElementwiseOp::kMul ? x * y
                                                             : std::fma(alpha, x, y);
            const float want =
                op == ElementwiseOp::kAxpy ? std::fma(0.3f, a[i + shift], b[i + shift]) : static_cast<float>(exact);
            right &= got[i + shift] == want;
          }
          if (!right)
            notes.line("wrong: op " + std::to_string(static_cast<int>(op)) + " count " + std::to_string(count) +
                       " shift " + std::to_string(shift) + " mode " + std::to_string(mode));
          EXPECT(right);
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
