// kernelbench --kernel NAME --type TYPE --rows N --columns N [--chain]: device times of one kernel.
//
// Prints the microseconds per launch of each sample, one a line; kernels/bench/bench.py asks for one
// shape after the other and measures PyTorch beside them. A sample is one launch of a graph of 20
// kernels. They work on buffers in turn, 512 MiB or more in all, so that each finds its input in
// memory and not in the cache; with --chain they work on one buffer in place, each waits for the one
// before it programmatically, and the answer is the time that one more kernel costs.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cgrt/base/status_macros.h"
#include "cgrt/cgrt.h"
#include "cgrt_kernels/rows/rows.h"

namespace {

using cgrt::DeviceBuffer;
using cgrt::DeviceRef;
using cgrt::LaunchTarget;
using cgrt::kernels::DType;
using cgrt::kernels::RowOp;

constexpr DeviceRef kDevice(0);
constexpr int kLaunches = 20;
constexpr std::size_t kWorkingSet = std::size_t{512} << 20;

struct Options {
  std::string kernel = "softmax", type = "float16";
  std::uint64_t rows = 8192, columns = 4096;
  bool is_chain = false;
  int samples = 31;
};

struct Set {
  DeviceBuffer out, in;
};

absl::StatusOr<std::vector<Set>> make_sets(cgrt::StreamRef stream, std::size_t bytes, bool is_chain) {
  const std::size_t count = is_chain ? 1 : std::clamp<std::size_t>(kWorkingSet / (2 * bytes) + 1, 4, 64);
  std::vector<Set> sets;
  for (std::size_t i = 0; i < count; ++i) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, bytes));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, DeviceBuffer::create(kDevice, bytes));
    // Small numbers in every type, and no two neighbours the same bits.
    std::vector<std::uint32_t> bits(bytes / 4 + 1);
    std::uint32_t state = 12345 + static_cast<std::uint32_t>(i);
    for (std::uint32_t& word : bits) {
      state = state * 1664525 + 1013904223;
      word = (state & 0x83ff83ff) | 0x3c003c00;  // around one as fp16, tiny steps as bf16 and fp32
    }
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream, in.data(), bits.data(), bytes));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    sets.push_back({std::move(out), std::move(in)});
  }
  return sets;
}

// Puts one launch on one set into the target.
using Step = std::function<absl::Status(LaunchTarget, const Set&)>;

absl::StatusOr<Step> make_step(const Options& options, std::size_t& bytes) {
  const DType type = options.type == "float32"   ? DType::kFloat32
                     : options.type == "float16" ? DType::kFloat16
                                                 : DType::kBFloat16;
  bytes = options.rows * options.columns * cgrt::kernels::size_of(type);
  cgrt::kernels::RowsDesc desc{.type = type, .rows = options.rows, .columns = options.columns};
  for (const RowOp op : {RowOp::kSoftmax, RowOp::kLogSoftmax, RowOp::kLayerNorm, RowOp::kRmsNorm}) {
    if (options.kernel == to_string(op)) desc.op = op;
  }
  CGRT_ASSIGN_OR_RETURN(const cgrt::kernels::RowsPlan plan, plan_rows(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer made, DeviceBuffer::create(kDevice, options.columns * 4));
  const auto weights = std::make_shared<DeviceBuffer>(std::move(made));
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(kDevice));
  CGRT_RETURN_IF_ERROR(cgrt::fill32(stream.ref(), weights->data(), 0x3c003c00, options.columns));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  const bool in_place = options.is_chain;
  return [plan, weights, in_place](LaunchTarget target, const Set& set) {
    return launch_rows(target, plan,
                       {.out = in_place ? set.in.data() : set.out.data(),
                        .in = set.in.data(),
                        .weight = weights->data(),
                        .bias = weights->data()});
  };
}

absl::StatusOr<cgrt::GraphExec> make_exec(const Step& step, const std::vector<Set>& sets, int launches, bool is_chain) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(kDevice));
  cgrt::Cursor cursor = graph.cursor();
  const LaunchTarget target = is_chain ? cursor.programmatic() : LaunchTarget(cursor);
  for (int i = 0; i < launches; ++i)
    CGRT_RETURN_IF_ERROR(step(target, sets[static_cast<std::size_t>(i) % sets.size()]));
  return cgrt::instantiate(graph);
}

absl::Status measure(const Options& options) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event begin, cgrt::Event::create(kDevice, cgrt::EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event end, cgrt::Event::create(kDevice, cgrt::EventTiming::kEnabled));
  std::size_t bytes = 0;
  CGRT_ASSIGN_OR_RETURN(const Step step, make_step(options, bytes));
  CGRT_ASSIGN_OR_RETURN(const std::vector<Set> sets, make_sets(stream.ref(), bytes, options.is_chain));
  const int launches = std::max(kLaunches, options.is_chain ? 0 : static_cast<int>(sets.size()));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, make_exec(step, sets, launches, options.is_chain));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec one, make_exec(step, sets, 1, options.is_chain));
  const auto time = [&](cgrt::GraphExec& timed) -> absl::StatusOr<double> {
    CGRT_RETURN_IF_ERROR(stream.ref().record(begin.ref()));
    CGRT_RETURN_IF_ERROR(timed.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().record(end.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const absl::Duration elapsed, cgrt::elapsed_time(begin.ref(), end.ref()));
    return absl::ToDoubleMicroseconds(elapsed);
  };
  for (int i = -3; i < options.samples; ++i) {
    CGRT_ASSIGN_OR_RETURN(double microseconds, time(exec));
    if (options.is_chain) {
      CGRT_ASSIGN_OR_RETURN(const double first, time(one));
      microseconds = (microseconds - first) / (launches - 1);
    } else {
      microseconds /= launches;
    }
    if (i >= 0) std::printf("%.4f\n", microseconds);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Device times of one kernel of cgrt: microseconds per launch, one sample a line.", "kernelbench");
  Options options;
  app.add_option("--kernel", options.kernel)
      ->check(CLI::IsMember({"softmax", "log_softmax", "layer_norm", "rms_norm"}))
      ->capture_default_str();
  app.add_option("--type", options.type)
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--rows", options.rows)->capture_default_str();
  app.add_option("--columns", options.columns)->capture_default_str();
  app.add_option("--samples", options.samples)->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_flag("--chain", options.is_chain, "In place, each launch programmatically after the one before");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = measure(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "kernelbench: %s\n", std::string(status.message()).c_str());
  return 2;
}
