// fork_join: chains of kernels that do not wait for each other, one after the other in one stream, and beside each
// other by fork_join: captured from several streams, and built from copies of a cursor. The branches are one call site.
//
//   fork_join [FILE]      writes the captured graph with its branches to FILE: fork_join.cgrt.json unless given

#include <cgrt/base/text_file.h>
#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"
#include "branches.h"

// The same for machines without a GPU.
void start_on_host(cgrt::HostGrid, unsigned* values, int branch) {
  for (int i = 0; i < kCount; ++i) values[i] = first_value(branch, i);
}
void turn_on_host(cgrt::HostGrid, unsigned* values) {
  for (int i = 0; i < kCount; ++i) values[i] = turned(values[i]);
}
void sum_on_host(cgrt::HostGrid, unsigned* out, const unsigned* values) {
  for (int i = 0; i < kCount; ++i) {
    out[i] = 0;
    for (int branch = 0; branch < kBranches; ++branch) out[i] += values[branch * kCount + i];
  }
}
template <>
inline constexpr auto cgrt::host_body<start> = cgrt::HostBody(start_on_host, {});
template <>
inline constexpr auto cgrt::host_body<turn> = cgrt::HostBody(turn_on_host, {.registers = 16});
template <>
inline constexpr auto cgrt::host_body<sum> = cgrt::HostBody(sum_on_host, {});

constexpr cgrt::LaunchConfig kConfig{.grid = kGrid, .block = kBlock};

struct Work {
  cgrt::DeviceBuffer values, sums;

  absl::Status branch(cgrt::LaunchTarget target, int number) const {
    unsigned* const own = values.as<unsigned>() + number * kCount;
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, kConfig, cgrt::make_kernel<start>(), own, number));
    for (int i = 0; i < kKernels; ++i) {
      CGRT_RETURN_IF_ERROR(cgrt::launch(target, kConfig, cgrt::make_kernel<turn>(), own));
    }
    return absl::OkStatus();
  }
  absl::Status sum_all(cgrt::LaunchTarget target) const {
    return cgrt::launch(target, kConfig, cgrt::make_kernel<sum>(), sums.as<unsigned>(), values.as<const unsigned>());
  }

  absl::Status one_after_the_other(cgrt::LaunchTarget target) const {
    for (int number = 0; number < kBranches; ++number) CGRT_RETURN_IF_ERROR(branch(target, number));
    return sum_all(target);
  }
  absl::Status beside_each_other(cgrt::LaunchTarget target, cgrt::SideStreams& sides) const {
    CGRT_RETURN_IF_ERROR(cgrt::fork_join(
        target, sides,
        {[&](cgrt::LaunchTarget t) { return branch(t, 0); }, [&](cgrt::LaunchTarget t) { return branch(t, 1); },
         [&](cgrt::LaunchTarget t) { return branch(t, 2); }, [&](cgrt::LaunchTarget t) { return branch(t, 3); }}));
    return sum_all(target);
  }
};

// Runs the graph, checks what it did, and says how long a launch of it takes.
absl::Status measure(cgrt::StreamRef stream, const Work& work, const char* way, const cgrt::Graph& graph,
                     bool is_simulated) {
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(cgrt::fill32(stream, work.sums.data(), 0, kCount));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  std::vector<unsigned> found(kCount);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, found.data(), work.sums.data(), kCount * sizeof(unsigned)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  if (found != expected_sum()) return absl::InternalError(std::string(way) + " came to another sum.");
  if (is_simulated) {
    std::printf("%-34s simulated\n", way);
    return absl::OkStatus();
  }
  absl::Status status;
  const auto keep_first = [&](const absl::Status& one) {
    if (status.ok()) status = one;
  };
  const double time = time_of([&] { keep_first(exec.launch(stream)); }, [&] { keep_first(stream.synchronize()); });
  CGRT_RETURN_IF_ERROR(status);
  std::printf("%-34s %7.2f us a launch\n", way, time);
  return absl::OkStatus();
}

absl::Status run(cgrt::DeviceRef device, const std::string& file, bool is_simulated) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream owner, cgrt::Stream::create(device));
  const cgrt::StreamRef stream = owner.ref();
  CGRT_ASSIGN_OR_RETURN(cgrt::SideStreams sides, cgrt::SideStreams::create(device, kBranches - 1));
  Work work;
  CGRT_ASSIGN_OR_RETURN(work.values, cgrt::DeviceBuffer::create(device, kBranches * kCount * sizeof(unsigned)));
  CGRT_ASSIGN_OR_RETURN(work.sums, cgrt::DeviceBuffer::create(device, kCount * sizeof(unsigned)));
  std::printf("%d branches of %d kernels each, and a sum:\n", kBranches, kKernels + 1);

  CGRT_ASSIGN_OR_RETURN(const cgrt::Graph one_stream, cgrt::capture(stream, [&](cgrt::LaunchTarget target) {
                          return work.one_after_the_other(target);
                        }));
  CGRT_RETURN_IF_ERROR(measure(stream, work, "captured, one stream:", one_stream, is_simulated));

  CGRT_ASSIGN_OR_RETURN(const cgrt::Graph captured, cgrt::capture(stream, [&](cgrt::LaunchTarget target) {
                          return work.beside_each_other(target, sides);
                        }));
  CGRT_RETURN_IF_ERROR(measure(stream, work, "captured, branches in 4 streams:", captured, is_simulated));

  CGRT_ASSIGN_OR_RETURN(cgrt::Graph built, cgrt::Graph::create(device));
  cgrt::Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(work.beside_each_other(cursor, sides));
  CGRT_RETURN_IF_ERROR(measure(stream, work, "built, branches of a cursor:", built, is_simulated));

  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(captured));
  CGRT_RETURN_IF_ERROR(cgrt::inspect::write_file(file, ir));
  std::printf("wrote %s: graphdump show %s\n", file.c_str(), file.c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string file = "fork_join.cgrt.json";
  const char* const about = "Runs chains of kernels one after the other and beside each other, captured and built.";
  if (const auto exit_code = parse_file("fork_join", about, argc, argv, file, cgrt::file_name_error)) return *exit_code;

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0), file, simulator != nullptr);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fork_join: %s\n", status.ToString().c_str());
  return 1;
}
