// while_loop: Jacobi's method until it has converged, as a loop of the host that looks after every launch of a graph,
// and as one launch of a graph with a while node, which a kernel of its body ends. The sweeps are one call site.
//
//   while_loop [FILE]      writes the graph with the while node to FILE: while_loop.cgrt.json unless given

#include <cgrt/base/text_file.h>
#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>
#include <cgrt/graph/set_conditional.cuh>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"
#include "jacobi.h"

// After the sweeps of a test: how much did they change, and is that too much? For the graph, and for the host.
__global__ void test_for_graph(CUgraphConditionalHandle again, unsigned* change, int* tests) {
  cgrt::set_conditional(again, __uint_as_float(*change) > kTolerance);
  *change = 0;
  *tests += 1;
}
__global__ void test_for_host(volatile int* again, unsigned* change, int* tests) {
  *again = __uint_as_float(*change) > kTolerance;
  *change = 0;
  *tests += 1;
}

// The same for machines without a GPU.
void sweep_on_host(cgrt::HostGrid, float* out, const float* in, unsigned* change) {
  for (int at = kSide; at < kPoints - kSide; ++at) {
    if (at % kSide == 0 || at % kSide == kSide - 1) continue;
    out[at] = relaxed(in, at);
    *change = std::max(*change, std::bit_cast<unsigned>(std::fabs(out[at] - in[at])));
  }
}
void test_for_graph_on_host(cgrt::HostGrid, CUgraphConditionalHandle again, unsigned* change, int* tests) {
  cgrt::set_conditional(again, std::bit_cast<float>(*change) > kTolerance);
  *change = 0;
  *tests += 1;
}
void test_for_host_on_host(cgrt::HostGrid, volatile int* again, unsigned* change, int* tests) {
  *again = std::bit_cast<float>(*change) > kTolerance;
  *change = 0;
  *tests += 1;
}
template <>
inline constexpr auto cgrt::host_body<sweep> = cgrt::HostBody(sweep_on_host, {.registers = 16});
template <>
inline constexpr auto cgrt::host_body<test_for_graph> = cgrt::HostBody(test_for_graph_on_host, {});
template <>
inline constexpr auto cgrt::host_body<test_for_host> = cgrt::HostBody(test_for_host_on_host, {});

struct Problem {
  cgrt::DeviceBuffer u, v, state;

  unsigned* change() const { return state.as<unsigned>(); }
  int* tests() const { return state.as<int>() + 1; }

  static absl::StatusOr<Problem> create(cgrt::DeviceRef device) {
    Problem problem;
    CGRT_ASSIGN_OR_RETURN(problem.u, cgrt::DeviceBuffer::create(device, kPoints * sizeof(float)));
    CGRT_ASSIGN_OR_RETURN(problem.v, cgrt::DeviceBuffer::create(device, kPoints * sizeof(float)));
    CGRT_ASSIGN_OR_RETURN(problem.state, cgrt::DeviceBuffer::create(device, 2 * sizeof(int)));
    return problem;
  }

  // What a turn of the loop does: eagerly, captured, or as nodes.
  absl::Status sweeps(cgrt::LaunchTarget target) const {
    constexpr cgrt::LaunchConfig kConfig{.grid = {kGridX, kGridY}, .block = {kBlockX, kBlockY}};
    const cgrt::Kernel kernel = cgrt::make_kernel<sweep>();
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, kConfig, kernel, v.as<float>(), u.as<const float>(), change()));
    return cgrt::launch(target, kConfig, kernel, u.as<float>(), v.as<const float>(), change());
  }
};
constexpr cgrt::LaunchConfig kOneThread{.grid = 1, .block = 1};

struct Solution {
  std::vector<float> points;
  int tests = 0;
  double microseconds = 0;
};

// From the walls on, by `loop`, which returns when it has converged.
template <class Loop>
absl::StatusOr<Solution> solve(cgrt::StreamRef stream, const Problem& problem, const Loop& loop) {
  Solution solution{.points = walls()};
  for (int run = 0; run < 2; ++run) {  // the first is not timed
    const std::vector<float> start = walls();
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream, problem.u.data(), start.data(), kPoints * sizeof(float)));
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream, problem.v.data(), start.data(), kPoints * sizeof(float)));
    CGRT_RETURN_IF_ERROR(cgrt::fill32(stream, problem.state.data(), 0, 2));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    const auto begin = std::chrono::steady_clock::now();
    CGRT_RETURN_IF_ERROR(loop());
    solution.microseconds = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, solution.points.data(), problem.u.data(), kPoints * sizeof(float)));
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, &solution.tests, problem.tests(), sizeof(int)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return solution;
}

void print(const char* what, const Solution& solution, bool is_simulated) {
  const int sweeps = solution.tests * kSweepsPerTest;
  std::printf("%-18s %d sweeps, %d tests, ", what, sweeps, solution.tests);
  if (is_simulated) {
    std::puts("simulated");
  } else {
    std::printf("%.0f us, %.2f us a test\n", solution.microseconds, solution.microseconds / solution.tests);
  }
}

absl::Status run(cgrt::DeviceRef device, const std::string& file, bool is_simulated) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const Problem problem, Problem::create(device));
  CGRT_ASSIGN_OR_RETURN(const cgrt::PinnedBuffer flag, cgrt::PinnedBuffer::create(device, sizeof(int)));
  volatile int* const again_on_host = flag.as<int>();

  // The host's loop: a graph of one turn.
  CGRT_ASSIGN_OR_RETURN(const cgrt::Graph turn, cgrt::capture(stream.ref(), [&](cgrt::StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(problem.sweeps(s));
                          return cgrt::launch(s, kOneThread, cgrt::make_kernel<test_for_host>(), again_on_host,
                                              problem.change(), problem.tests());
                        }));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec turn_exec, cgrt::instantiate(turn));
  CGRT_ASSIGN_OR_RETURN(const Solution by_host, solve(stream.ref(), problem, [&]() -> absl::Status {
                          do {
                            CGRT_RETURN_IF_ERROR(turn_exec.launch(stream.ref()));
                            CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
                          } while (*again_on_host != 0);
                          return absl::OkStatus();
                        }));
  print("host-checked loop:", by_host, is_simulated);

  // The graph's: the turn is the body of a while node.
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(device));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle again, graph.add_conditional_handle(/*at_launch=*/1));
  CGRT_ASSIGN_OR_RETURN(cgrt::Conditional loop, graph.add_while({}, again));
  cgrt::Cursor body = loop.bodies[0].cursor();
  CGRT_RETURN_IF_ERROR(problem.sweeps(body));
  CGRT_RETURN_IF_ERROR(
      cgrt::launch(body, kOneThread, cgrt::make_kernel<test_for_graph>(), again, problem.change(), problem.tests()));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
  CGRT_ASSIGN_OR_RETURN(const Solution by_graph, solve(stream.ref(), problem, [&]() -> absl::Status {
                          CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
                          return stream.ref().synchronize();
                        }));
  print("while node:", by_graph, is_simulated);

  if (by_graph.points != by_host.points || by_graph.tests != by_host.tests) {
    return absl::InternalError("The two loops came to different results.");
  }
  std::printf("the same %d values, %.6f in the middle\n", kPoints,
              static_cast<double>(by_graph.points[kPoints / 2 + kSide / 2]));
  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(graph));
  CGRT_RETURN_IF_ERROR(cgrt::inspect::write_file(file, ir));
  std::printf("wrote %s: graphdump show %s\n", file.c_str(), file.c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string file = "while_loop.cgrt.json";
  const char* const about = "Runs Jacobi's method to convergence in a loop of the host and in a while node.";
  if (const auto exit_code = parse_file("while_loop", about, argc, argv, file, cgrt::file_name_error))
    return *exit_code;

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0), file, simulator != nullptr);
  if (status.ok()) return 0;
  std::fprintf(stderr, "while_loop: %s\n", status.ToString().c_str());
  return 1;
}
