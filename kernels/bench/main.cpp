// kernelbench KERNEL TYPE [NAME=SIZE...] [--chain] [--paced]: device times of one kernel.
//
// Prints the microseconds per launch of each sample, one a line. With --paced it takes samples when asked:
// each line of standard input says how many. kernels/bench/bench.py asks in turn with the baselines. A
// sample is one launch of a graph of 20 kernels or more. They work on sets of buffers in turn, 512 MiB or more in all
// but at most 64 sets, so that each finds its input in memory and not in the cache, unless it is less than 1 MB; with
// --chain 400 kernels work on one set in place, each waits for the one before it programmatically, and the answer is
// the time that one more kernel costs. A size `shift=1` of a kernel that knows it: its arrays begin one element behind
// an aligned address. Exits with 0; 1 on a failure; 2 when the case is wrong; 77 when there is no device.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <random>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

absl::StatusOr<std::uint64_t> Case::size(const std::string& name) const {
  const auto found = sizes.find(name);
  if (found == sizes.end()) return absl::InvalidArgumentError(absl::StrCat(kernel, " needs ", name, "=SIZE."));
  return found->second;
}

std::uint64_t Case::size_or(const std::string& name, std::uint64_t otherwise) const {
  const auto found = sizes.find(name);
  return found == sizes.end() ? otherwise : found->second;
}

namespace {

using kernels::DType;

template <class T>
std::vector<T> numbers(std::uint64_t count, std::uint32_t seed) {
  std::vector<T> values(count);
  std::minstd_rand engine(seed + 1);
  for (T& value : values) {
    const auto random = static_cast<std::uint32_t>(engine());
    if constexpr (sizeof(T) == 2) {
      value = static_cast<T>(random >> 8 & 0x83ff);  // sign and the lower bits
    } else {
      value = static_cast<T>(1 + random % 65536) / static_cast<T>(32768);
    }
  }
  return values;
}

// `count` elements: the values again and again.
template <class T>
absl::StatusOr<DeviceBuffer> upload(StreamRef stream, const std::vector<T>& values, std::uint64_t count) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, count * sizeof(T)));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), values.data(), values.size() * sizeof(T)));
  for (std::uint64_t done = values.size(); done < count;) {
    const std::uint64_t next = std::min(done, count - done);
    CGRT_RETURN_IF_ERROR(copy(stream, buffer.as<T>() + done, buffer.as<T>(), next * sizeof(T)));
    done += next;
  }
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

constexpr std::uint64_t kDifferent = std::uint64_t{1} << 20;  // numbers before they repeat

}  // namespace

absl::StatusOr<DeviceBuffer> make_workspace(StreamRef stream, std::size_t bytes) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer memory, DeviceBuffer::create(kDevice, std::max<std::size_t>(bytes, 1)));
  CGRT_RETURN_IF_ERROR(initialize_workspace(stream, workspace_in(memory)));
  return memory;
}

absl::StatusOr<DeviceBuffer> make_numbers(StreamRef stream, DType type, std::uint64_t count, std::uint32_t seed) {
  const std::uint64_t different = std::min(count, kDifferent);
  switch (type) {
    case DType::kFloat32: return upload(stream, numbers<float>(different, seed), count);
    case DType::kFloat64: return upload(stream, numbers<double>(different, seed), count);
    case DType::kInt32: return upload(stream, numbers<std::int32_t>(different, seed), count);
    case DType::kInt64: return upload(stream, numbers<std::int64_t>(different, seed), count);
    case DType::kFloat16:
    case DType::kBFloat16: break;
  }
  std::vector<std::uint16_t> bits = numbers<std::uint16_t>(different, seed);
  for (std::uint16_t& half : bits) {
    // From one to two, with either sign: ten bits of fraction as fp16, seven as bf16.
    half = static_cast<std::uint16_t>(type == DType::kFloat16 ? half | 0x3c00 : (half & 0x807f) | 0x3f80);
  }
  return upload(stream, bits, count);
}

absl::StatusOr<Array> make_array(const Case& test, StreamRef stream, DType type, std::uint64_t count,
                                 std::uint32_t seed) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, make_numbers(stream, type, test.shift() + count, seed));
  return Array{std::move(buffer), test.shift() * size_of(type)};
}

absl::StatusOr<Array> make_output(const Case& test, DType type, std::uint64_t count) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, (test.shift() + count) * size_of(type)));
  return Array{std::move(buffer), test.shift() * size_of(type)};
}

namespace {

constexpr int kLaunches = 20;
constexpr int kChainLaunches = 400;  // less than 1 us each: 20 would be lost in the noise of a graph's start
constexpr std::size_t kWorkingSet = std::size_t{512} << 20;

absl::StatusOr<GraphExec> make_exec(const std::vector<Launch>& sets, int launches, bool is_chain) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  Cursor cursor = graph.cursor();
  const LaunchTarget target = is_chain ? cursor.programmatic() : LaunchTarget(cursor);
  for (int i = 0; i < launches; ++i) CGRT_RETURN_IF_ERROR(sets[static_cast<std::size_t>(i) % sets.size()](target));
  return instantiate(graph);
}

enum class Pace {
  kAtOnce,
  kAsked,  // each line of standard input says how many samples to take
};

absl::Status measure(const Case& test, int samples, Pace pace) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(Event begin, Event::create(kDevice, EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(Event end, Event::create(kDevice, EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(const Work work, make_work(test));
  if (work.bytes == 0) return absl::InvalidArgumentError("there is nothing to measure: the sizes make 0 bytes.");
  std::vector<Launch> sets;
  const std::size_t count = test.is_chain ? 1 : std::min<std::size_t>(kWorkingSet / work.bytes + 1, 64);
  for (std::uint32_t i = 0; i < count; ++i) {
    CGRT_ASSIGN_OR_RETURN(Launch launch, work.make(stream.ref(), i));
    sets.push_back(std::move(launch));
  }
  const int launches = test.is_chain ? kChainLaunches : std::max(kLaunches, static_cast<int>(sets.size()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, make_exec(sets, launches, test.is_chain));
  CGRT_ASSIGN_OR_RETURN(GraphExec one, make_exec(sets, 1, test.is_chain));
  const auto time = [&](GraphExec& timed) -> absl::StatusOr<double> {
    CGRT_RETURN_IF_ERROR(stream.ref().record(begin.ref()));
    CGRT_RETURN_IF_ERROR(timed.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().record(end.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const absl::Duration elapsed, elapsed_time(begin.ref(), end.ref()));
    return absl::ToDoubleMicroseconds(elapsed);
  };
  // The first `unused` are not printed: they load what loads lazily, or find the device as another process left it.
  const auto take = [&](int unused, int kept) -> absl::Status {
    for (int i = -unused; i < kept; ++i) {
      if (work.reset) CGRT_RETURN_IF_ERROR(work.reset(stream.ref()));
      CGRT_ASSIGN_OR_RETURN(double microseconds, time(exec));
      if (test.is_chain) {
        CGRT_ASSIGN_OR_RETURN(const double first, time(one));
        microseconds = (microseconds - first) / (launches - 1);
      } else {
        microseconds /= launches;
      }
      if (i >= 0) std::printf("%.4f\n", microseconds);
    }
    std::fflush(stdout);
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(take(3, pace == Pace::kAtOnce ? samples : 0));
  if (pace == Pace::kAtOnce) return absl::OkStatus();
  for (std::string line; std::getline(std::cin, line);) {
    int asked = 0;
    if (!absl::SimpleAtoi(line, &asked) || asked < 1) {
      return absl::InvalidArgumentError(absl::StrCat("\"", line, "\" is not a number of samples."));
    }
    CGRT_RETURN_IF_ERROR(take(1, asked));
  }
  return absl::OkStatus();
}

constexpr std::uint64_t kMaxSize = std::uint64_t{1}
                                   << 40;  // of one dimension; plans refuse products that are too large

absl::Status parse(const std::string& type, const std::vector<std::string>& sizes, Case& test) {
  bool is_known = false;
  for (const DType one :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    if (type == to_string(one)) test.type = one, is_known = true;
  }
  if (!is_known) return absl::InvalidArgumentError(absl::StrCat("there is no type \"", type, "\"."));
  for (const std::string& size : sizes) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(size, absl::MaxSplits('=', 1));
    std::uint64_t value = 0;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &value) || value > kMaxSize) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", size, "\" is not NAME=SIZE, with a size up to ", kMaxSize, "."));
    }
    if (!test.sizes.emplace(parts.first, value).second) {
      return absl::InvalidArgumentError(absl::StrCat(parts.first, " is given twice."));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::bench

int main(int argc, char** argv) {
  CLI::App app("Device times of one kernel: microseconds per launch, one sample a line.", "kernelbench");
  cgrt::bench::Case test;
  std::string type;
  std::vector<std::string> sizes;
  int samples = 31;
  bool is_paced = false;
  app.add_option("kernel", test.kernel, "For example softmax")->required();
  app.add_option("type", type, "float32, float16, bfloat16, float64, int32 or int64")->required();
  app.add_option("sizes", sizes, "For example rows=8192 columns=4096");
  app.add_option("--samples", samples)->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_flag("--chain", test.is_chain, "In place, each launch programmatically after the one before")
      ->disable_flag_override();
  app.add_flag("--paced", is_paced, "Take samples when asked: each line of standard input says how many")
      ->disable_flag_override();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // 0 for --help
  }
  absl::Status status = cgrt::bench::parse(type, sizes, test);
  if (status.ok())
    status = cgrt::bench::measure(test, samples, is_paced ? cgrt::bench::Pace::kAsked : cgrt::bench::Pace::kAtOnce);
  if (status.ok()) return 0;
  std::fprintf(stderr, "kernelbench: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : absl::IsUnavailable(status) ? 77 : 1;
}
