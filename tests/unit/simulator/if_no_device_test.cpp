#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cgrt/device/device.h"
#include "cgrt/driver/api.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"

namespace cgrt::testing {
namespace {

// A driver that only counts devices.
template <CUresult kResult, int kDevices>
driver::Api counting() {
  driver::Api table;
  table.DeviceGetCount = [](int* count) {
    *count = kDevices;
    return kResult;
  };
  return table;
}

// What is said while `table` is in force, after "simulated; " when a simulator was made. The test's own output goes
// on where it went.
std::string said_on(const driver::Api& table) {
  std::FILE* const file = std::tmpfile();
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  const driver::Api& previous = driver::install(table);
  std::unique_ptr<Simulator> simulator = Simulator::if_no_device();
  std::string said = is_simulated() && simulator != nullptr ? "simulated; " : "";
  simulator.reset();
  driver::restore(previous);
  dup2(before, STDOUT_FILENO);
  close(before);
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) said += static_cast<char>(c);
  std::fclose(file);
  return said;
}

TEST_CASE("where there is no device there is a simulator, which says so and why", "[simulator]") {
  const std::string sentence = "simulated; No GPU here: running on the simulator; no figure below is a GPU time.\n(";

  CHECK(said_on(counting<CUDA_SUCCESS, 0>()) == sentence + "The CUDA driver has no device.)\n");
  CHECK(said_on(counting<CUDA_ERROR_NO_DEVICE, 0>()).starts_with(sentence + "cuDeviceGetCount"));
  CHECK(said_on(driver::Api()).starts_with(sentence));  // no driver at all
}

TEST_CASE("where there is a device, or something else is wrong, there is no simulator and no word", "[simulator]") {
  CHECK(said_on(counting<CUDA_SUCCESS, 1>()).empty());
  CHECK(said_on(counting<CUDA_ERROR_NOT_INITIALIZED, 0>()).empty());  // in the child of a fork
  const Simulator simulator;
  CHECK(Simulator::if_no_device() == nullptr);
}

}  // namespace
}  // namespace cgrt::testing
