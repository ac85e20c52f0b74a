// event_polling: the host works while the device does, and asks an event between two slices of its work
// whether the answer is there. The event is the last node of the graph, behind the copy of the result,
// so "done" is all that has to be known before the result is read.

#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "../common/options.h"
#include "churn.h"

namespace {

constexpr int kNodes = 8;
constexpr std::uint64_t kSlice = 1 << 14, kHostCount = kSlice << 8;  // elements of the host's own work

struct Answers {
  std::uint64_t slices = 0, questions = 0;
  std::uint64_t checksum = 0;
  std::chrono::nanoseconds asking{0};
};

absl::Status expect(cgrt::Completion wanted, cgrt::Completion found, const char* when) {
  std::printf("asked %s: %s\n", when, to_string(found));
  if (found == wanted) return absl::OkStatus();
  return absl::InternalError(std::string("Asked ") + when + ", the answer must be " + to_string(wanted) + ".");
}

// One slice of the host's work, then one question, until the event is complete.
absl::StatusOr<Answers> work_until(cgrt::EventRef ready, const std::vector<std::uint64_t>& numbers) {
  using Clock = std::chrono::steady_clock;
  Answers answers;
  for (bool done = false; !done;) {
    const auto slice = numbers.begin() + static_cast<std::ptrdiff_t>(answers.slices * kSlice % kHostCount);
    answers.checksum = std::accumulate(slice, slice + kSlice, answers.checksum);
    ++answers.slices;
    const Clock::time_point start = Clock::now();
    CGRT_ASSIGN_OR_RETURN(done, ready.is_complete());  // never blocks
    answers.asking += Clock::now() - start;
    ++answers.questions;
  }
  return answers;
}

// The host's numbers are 0, 1, 2, ..., so that the sum over any number of slices is known.
absl::Status check_host(const Answers& answers) {
  const auto sum_below = [](std::uint64_t n) { return n * (n - 1) / 2; };
  const std::uint64_t summed = answers.slices * kSlice;
  const std::uint64_t expected = summed / kHostCount * sum_below(kHostCount) + sum_below(summed % kHostCount);
  if (answers.checksum == expected) return absl::OkStatus();
  return absl::DataLossError("The host's checksum is " + std::to_string(answers.checksum) + ", not " +
                             std::to_string(expected) + ".");
}

// `rounds` rounds of churn are one: x = factor * x + step, found by squaring.
absl::Status check_device(const std::uint32_t* found, int count, int rounds) {
  std::uint32_t factor = 1, step = 0, square_factor = kFactor, square_step = kStep;
  for (int left = rounds; left != 0; left /= 2) {
    if (left % 2 != 0) {
      step = square_factor * step + square_step;
      factor *= square_factor;
    }
    square_step *= square_factor + 1;
    square_factor *= square_factor;
  }
  for (int i = 0; i < count; ++i) {
    const std::uint32_t expected = factor * static_cast<std::uint32_t>(i) + step;
    if (found[i] == expected) continue;
    return absl::DataLossError("Element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", not " +
                               std::to_string(expected) + ".");
  }
  return absl::OkStatus();
}

absl::Status run(cgrt::DeviceRef device) {
  const int count = cgrt::is_simulated() ? 1 << 12 : 1 << 20;
  const int rounds = cgrt::is_simulated() ? 10 : 4000;  // of one kernel: 2-3 ms for all of them on an H200
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::uint32_t);
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event ready, cgrt::Event::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer x, cgrt::DeviceBuffer::create(device, bytes));
  CGRT_ASSIGN_OR_RETURN(cgrt::PinnedBuffer result, cgrt::PinnedBuffer::create(device, bytes));
  std::vector<std::uint32_t> input(static_cast<std::size_t>(count));
  std::iota(input.begin(), input.end(), 0u);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream.ref(), x.data(), input.data(), bytes));
  std::vector<std::uint64_t> numbers(kHostCount);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});

  const auto kernel = churn_kernel();
  CGRT_ASSIGN_OR_RETURN(const cgrt::LaunchConfig config,
                        cgrt::suggest_config(kernel, device, static_cast<std::uint64_t>(count)));
  const auto record = [&](cgrt::StreamRef captured) -> absl::Status {
    for (int i = 0; i < kNodes; ++i) {
      CGRT_RETURN_IF_ERROR(cgrt::launch(captured, config, kernel, x.as<std::uint32_t>(), rounds, count));
    }
    CGRT_ASSIGN_OR_RETURN(const cgrt::Completion answer, captured.completion());  // the capture goes on
    CGRT_RETURN_IF_ERROR(expect(cgrt::Completion::kCaptured, answer, "the stream in the middle of a capture"));
    CGRT_RETURN_IF_ERROR(cgrt::copy(captured, result.data(), x.data(), bytes));
    return cgrt::record_event(captured, ready.ref());
  };
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::capture(stream.ref(), record));
  CGRT_ASSIGN_OR_RETURN(const std::size_t nodes, graph.node_count());
  if (nodes != kNodes + 2) return absl::InternalError("The graph has " + std::to_string(nodes) + " nodes.");
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.upload(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());

  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_ASSIGN_OR_RETURN(const cgrt::Completion first, ready.ref().completion());
  std::printf("asked the event after the launch: %s\n", to_string(first));
  CGRT_ASSIGN_OR_RETURN(const Answers answers, work_until(ready.ref(), numbers));
  CGRT_RETURN_IF_ERROR(check_device(result.as<std::uint32_t>(), count, kNodes * rounds));  // no synchronize
  CGRT_RETURN_IF_ERROR(check_host(answers));
  CGRT_ASSIGN_OR_RETURN(const cgrt::Completion last, ready.ref().completion());
  CGRT_RETURN_IF_ERROR(expect(cgrt::Completion::kDone, last, "the event after the work"));

  const auto figure = [](std::uint64_t value) {
    return cgrt::is_simulated() ? std::string("simulated") : std::to_string(value);
  };
  const auto nanoseconds = static_cast<std::uint64_t>(answers.asking.count());
  std::printf("slices of host work done while the device worked: %s (%llu KiB each)\n", figure(answers.slices).c_str(),
              static_cast<unsigned long long>(kSlice * sizeof(std::uint64_t) / 1024));
  std::printf("questions asked: %s, host nanoseconds for one: %s\n", figure(answers.questions).c_str(),
              figure(nanoseconds / answers.questions).c_str());
  std::printf("all %d elements of the device and the checksum of the host are right\n", count);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const about =
      "Does host work until an event says that the graph is done. Without a GPU it runs on the simulator.";
  if (const auto exit_code = parse_no_options("event_polling", about, argc, argv)) return *exit_code;

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0));
  if (status.ok()) return 0;
  std::fprintf(stderr, "event_polling: %s\n", status.ToString().c_str());
  return 1;
}
