// lifetime_tests simulator|gpu [--runs N] [--only TEXT] [--list]
//
// What happens to a program that ends, forks or loses its context while objects of this library live:
// neither hang nor crash, and nothing said. Each scenario runs N times in processes of its own, which are
// this program with the scenario's name as argument. Exit 0: all ended as they should; 1: some did not;
// 77: no device.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "lifetime/kernels.h"
#include "support/driver_entry.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

// Written by each process when its static objects are gone, to show that they went.
constexpr char kEnd[] = "end of static objects\n";
struct LastWord {
  bool is_awaited = false;
  ~LastWord() {
    if (is_awaited && write(STDERR_FILENO, kEnd, sizeof(kEnd) - 1) < 0) std::_Exit(1);
  }
};
LastWord last_word;  // made before all others

bool simulated = false;

// Objects die before their simulator: this one never does.
Simulator* simulator = nullptr;
void start() {
  if (simulated) simulator = new Simulator();
}

void require(const absl::Status& status, const char* what) {
  if (status.ok()) return;
  std::printf("%s: %s\n", what, status.ToString().c_str());
  std::fflush(stdout);
  std::_Exit(1);
}
template <class T>
T require(absl::StatusOr<T> value, const char* what) {
  require(value.status(), what);
  return *std::move(value);
}
void require(bool condition, const char* what) {
  require(condition ? absl::OkStatus() : absl::InternalError("no"), what);
}

// One of everything, with a launch in flight.
struct Everything {
  Stream stream = require(Stream::create(kDevice), "stream");
  Event event = require(Event::create(kDevice), "event");
  DeviceBuffer buffer = require(DeviceBuffer::create(kDevice, 256), "device buffer");
  PinnedBuffer pinned = require(PinnedBuffer::create(kDevice, 256), "pinned buffer");
  Graph graph = require(Graph::create(kDevice), "graph");
  std::optional<GraphExec> exec;

  Everything() {
    Cursor cursor = graph.cursor();
    require(fill32(cursor, buffer.data(), 0, 64), "fill");
    require(launch(cursor, kConfig, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 2.0f, 64), "launch");
    require(launch_host(cursor, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }), "host function");
    require(graph.keep(require(DeviceBuffer::create(kDevice, 64), "kept buffer")), "keep");
    exec.emplace(require(instantiate(graph), "instantiate"));
    run();
  }
  void run() {
    require(exec->launch(stream.ref()), "graph launch");
    require(stream.ref().record(event.ref()), "record");
  }
};

// Dies with the statics; its destructor uses the library, as a user's would.
struct UsesItAtExit {
  std::optional<Everything> everything;
  ~UsesItAtExit() {
    if (!everything.has_value()) return;
    static_cast<void>(everything->stream.ref().completion());
    everything.reset();
    collect_released();
  }
};
UsesItAtExit before_first_use;
std::optional<Stream> global_stream;

struct Scenario {
  const char* name;
  enum { kAnywhere, kSimulatorOnly, kGpuOnly, kTwoGpusOnly } where;
  void (*run)();
  enum { kQuiet, kTalks } manner = kQuiet;  // whether something may be written to stderr
};

void lose_context(void (*kernel)(StreamRef)) {
  Everything all;
  require(all.stream.ref().synchronize(), "before");
  kernel(all.stream.ref());
  const absl::Status lost = all.stream.ref().synchronize();
  require(lost.message().find("sticky") != absl::string_view::npos, "synchronize says that the context is lost");
  require(!all.stream.ref().completion().ok(), "the stream's completion is an error");
  require(!all.event.ref().completion().ok(), "the event's completion is an error");
  require(!all.exec->launch(all.stream.ref()).ok(), "a launch is an error");
  require(!DeviceBuffer::create(kDevice, 64).ok(), "an allocation is an error");
  require(!capture(all.stream.ref(), [](StreamRef) { return absl::OkStatus(); }).ok(), "a capture is an error");
}

bool has_primary_context(int device) {
  unsigned flags = 0;
  int active = 0;
  require(driver::api().DevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS, "state");
  return active != 0;
}

const Scenario kScenarios[] = {
    {"main returns while objects of its own are in use", Scenario::kAnywhere, [] { const Everything all; }},
    {"static objects made late die with a launch in flight", Scenario::kAnywhere, [] { static const Everything all; }},
    {"static objects made early use the library when they die", Scenario::kAnywhere,
     [] { before_first_use.everything.emplace(); }},
    {"exit is called with a launch in flight", Scenario::kAnywhere,
     [] {
       static const Everything all;
       std::exit(0);
     }},
    {"exit is called inside a capture", Scenario::kAnywhere,
     [] {
       static const Everything all;
       static_cast<void>(capture(all.stream.ref(), [](StreamRef s) -> absl::Status {
         require(fill32(s, all.buffer.data(), 0, 4), "fill");
         std::exit(0);
       }));
     }},
    {"a thread polls while the process ends", Scenario::kAnywhere,
     [] {
       static Everything& all = *new Everything();
       static std::atomic<int> polls = 0;
       std::thread([] {
         for (;; ++polls) static_cast<void>(all.stream.ref().completion());
       }).detach();
       while (polls < 10) std::this_thread::yield();
       static const Everything others;
     }},
    {"a destroy that fails at exit does not end the process", Scenario::kSimulatorOnly,
     [] {
       global_stream.emplace(require(Stream::create(kDevice), "stream"));
       static auto& instrument = *new driver::Instrument();
       instrument.fail_entry("cuStreamDestroy", CUDA_ERROR_INVALID_VALUE);
     },
     Scenario::kTalks},
    {"a fork after use: the child lets go of what it inherited, the parent goes on", Scenario::kAnywhere,
     [] {
       std::optional<Everything> all;
       all.emplace();
       const pid_t child = fork();
       if (child == 0) {
         static_cast<void>(all->stream.ref().completion());
         static_cast<void>(all->event.ref().completion());
         static_cast<void>(Stream::create(kDevice));
         static_cast<void>(instantiate(all->graph));
         all.reset();
         std::exit(0);
       }
       int status = -1;
       require(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child");
       all->run();
       require(all->stream.ref().synchronize(), "the parent's stream");
     }},
    {"a fork before first use: the child works", Scenario::kAnywhere,
     [] {
       const pid_t child = fork();
       if (child == 0) {
         Everything all;
         require(all.stream.ref().synchronize(), "the child's stream");
         std::exit(0);
       }
       int status = -1;
       require(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child");
     }},
    {"a program with a context of its own gets no primary one", Scenario::kGpuOnly,
     [] {
       CUcontext own = nullptr;
       CUctxCreateParams params{};
       const auto create = require(driver_entry<decltype(&cuCtxCreate)>("cuCtxCreate"), "entry");
       require(create(&own, &params, 0, 0) == CUDA_SUCCESS, "cuCtxCreate");
       const Stream stream = require(Stream::create(own), "stream");
       const DeviceBuffer x = require(DeviceBuffer::create(own, 256), "buffer");
       const auto use = [&](auto kernel) {
         require(launch(stream, kConfig, kernel, x.as<float>(), x.as<float>(), 1.0f, 64), "launch");
       };
       use(scale_kernel());
       use(shift_kernel());
       require(capture(stream, [&](StreamRef s) { return fill32(s, x.data(), 0, 64); }).status(), "capture");
       require(stream.ref().synchronize(), "synchronize");
       require(!has_primary_context(0), "no primary context");
     }},
    {"a refused launch on one device touches no other", Scenario::kTwoGpusOnly,
     [] {
       const Stream stream = require(Stream::create(DeviceRef(1)), "stream");
       const DeviceBuffer x = require(DeviceBuffer::create(DeviceRef(1), 256), "buffer");
       const LaunchConfig wide{.grid = 32, .block = 64, .attributes = {.cluster = {32}}};
       const absl::Status refused = launch(stream, wide, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 64);
       require(absl::IsResourceExhausted(refused), "a cluster of 32 is refused");
       require(has_primary_context(1) && !has_primary_context(0), "device 1 has its context, device 0 none");
     }},
    {"a kernel traps", Scenario::kGpuOnly,
     [] { lose_context([](StreamRef s) { require(launch(s, LaunchConfig{}, trap_kernel()), "launch"); }); },
     Scenario::kTalks},
    {"a device assertion fails", Scenario::kGpuOnly,
     [] { lose_context([](StreamRef s) { require(launch(s, LaunchConfig{}, assert_kernel(), 0), "launch"); }); },
     Scenario::kTalks},
};

struct Child {
  pid_t process;
  int stderr_file;
  std::chrono::steady_clock::time_point deadline;
};

Child start_child(const char* program, const char* backend, const char* scenario) {
  const int file = memfd_create("stderr", MFD_CLOEXEC);
  const pid_t child = fork();
  if (child != 0) return {child, file, std::chrono::steady_clock::now() + std::chrono::seconds(60)};
  setpgid(0, 0);  // so that what it forks can be killed with it
  dup2(file, STDERR_FILENO);
  execl(program, program, backend, "--child", scenario, nullptr);
  std::_Exit(127);
}

std::string take_text(int file) {
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
  if (pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text = "(unreadable)";
  close(file);
  return text;
}

// What is wrong with what a child said; empty when nothing is.
std::string judge_text(std::string text, const Scenario& scenario) {
  int ends = 0;
  for (std::size_t at; (at = text.find(kEnd)) != std::string::npos; ++ends) text.erase(at, sizeof(kEnd) - 1);
  if (ends == 0) return "static objects were not destroyed";
  if (scenario.manner == Scenario::kQuiet && !text.empty()) return "it said: " + text;
  return "";
}

// How the process ended; empty when well, nullopt while it runs.
std::optional<std::string> ended(const Child& child) {
  int status = 0;
  if (waitpid(child.process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() < child.deadline) return std::nullopt;
    kill(-child.process, SIGKILL);
    waitpid(child.process, &status, 0);
    return "hung";
  }
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

int failures_of(const Scenario& scenario, const char* program, const char* backend, int runs) {
  constexpr std::size_t kAtOnce = 8;
  std::vector<Child> children;
  int started = 0, failures = 0;
  while (started < runs || !children.empty()) {
    while (started < runs && children.size() < kAtOnce) {
      ++started;
      children.push_back(start_child(program, backend, scenario.name));
    }
    for (std::size_t i = 0; i < children.size();) {
      std::optional<std::string> end = ended(children[i]);
      if (!end.has_value()) {
        ++i;
        continue;
      }
      const std::string text = take_text(children[i].stderr_file);
      if (end->empty()) end = judge_text(text, scenario);
      if (!end->empty()) {
        ++failures;
        std::printf("      %s\n", end->c_str());
      }
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
    usleep(200);  // not to burn the processor that the children need
  }
  return failures;
}

int run_scenario(const char* name) {
  for (const Scenario& scenario : kScenarios) {
    if (std::strcmp(scenario.name, name) != 0) continue;
    last_word.is_awaited = true;
    start();
    scenario.run();
    return 0;
  }
  return 1;
}

int list() {
  for (const Scenario& scenario : kScenarios) std::printf("%s\n", scenario.name);
  return 0;
}

// Asks in a process of its own: the driver must not be initialized in the one that forks.
int number_of_devices(const char* program) {
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, "gpu", "--probe", nullptr);
    std::_Exit(0);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

// Exits with the number of devices.
int probe() {
  const absl::StatusOr<int> devices = device_count();
  if (devices.ok() && *devices > 0) return *devices;
  std::printf("skipped: no CUDA device (%s)\n", std::string(devices.status().message()).c_str());
  return 0;
}

// Whether it belongs to the machine; with a line for what would need another.
bool belongs(const Scenario& scenario, int devices) {
  if (scenario.where == Scenario::kAnywhere) return true;
  if (simulated) return scenario.where == Scenario::kSimulatorOnly;
  if (scenario.where != Scenario::kTwoGpusOnly) return scenario.where == Scenario::kGpuOnly;
  if (devices < 2) std::printf("  not run (one device): %s\n", scenario.name);
  return devices >= 2;
}

int run_all(const char* program, const char* backend, int devices, int runs, const std::string& only) {
  int scenarios = 0, failed = 0;
  for (const Scenario& scenario : kScenarios) {
    if (std::string(scenario.name).find(only) == std::string::npos || !belongs(scenario, devices)) continue;
    ++scenarios;
    std::fflush(stdout);
    const int failures = failures_of(scenario, program, backend, runs);
    failed += failures;
    std::printf("  %s %s\n", failures == 0 ? "ok    " : "FAILED", scenario.name);
  }
  std::printf("lifetime on %s: %d scenarios, %d runs, %d failed\n", backend, scenarios, scenarios * runs, failed);
  return failed == 0 && scenarios > 0 ? 0 : 1;
}

}  // namespace
}  // namespace cgrt::testing

int main(int argc, char** argv) {
  using namespace cgrt::testing;
  const std::string backend = argc > 1 ? argv[1] : "";
  if (backend != "simulator" && backend != "gpu") {
    std::fputs("usage: lifetime_tests simulator|gpu [--runs N] [--only TEXT] [--list]\n", stderr);
    return 2;
  }
  simulated = backend == "simulator";
  int runs = 20;
  std::string only;
  for (int i = 2; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--list") == 0) return list();
    if (std::strcmp(argv[i], "--probe") == 0) return probe();
    if (std::strcmp(argv[i], "--child") == 0) return run_scenario(value);
    if (std::strcmp(argv[i], "--runs") == 0) runs = std::atoi(value);
    if (std::strcmp(argv[i], "--only") == 0) only = value;
  }
  const int devices = simulated ? 0 : number_of_devices("/proc/self/exe");
  if (!simulated && devices == 0) return std::getenv("CGRT_REQUIRE_GPU") != nullptr ? 1 : 77;
  return run_all("/proc/self/exe", backend.c_str(), devices, runs, only);
}
