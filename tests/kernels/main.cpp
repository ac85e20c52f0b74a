// kernel_tests simulator|simulator80|gpu [FAMILY [MAX_BYTES]]: every kernel family against its reference in double,
// over shapes and types, eager, captured and explicit with the same bits. simulator80: a device that has translated
// code for 8.0, without clusters. With MAX_BYTES, cases with a larger array are left out and counted; without it, one
// that is left out is a failure. Exit 0: all equal; 1: some are not; 77: no device.
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "cgrt/simulator/simulator.h"
#include "kernels/support.h"
#include "support/no_device.h"

namespace {

struct Family {
  const char* name;
  void (*check)(cgrt::testing::Report&);
};
constexpr Family kFamilies[] = {
#define CGRT_KERNEL_FAMILY(name) {#name, cgrt::testing::check_##name},
#include "kernels/families.def"
#undef CGRT_KERNEL_FAMILY
};

}  // namespace

int main(int argc, char** argv) {
  const std::string backend = argc >= 2 ? argv[1] : "", only = argc >= 3 ? argv[2] : "";
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  const bool is_simulated = backend == "simulator" || backend == "simulator80";
  if ((!is_simulated && backend != "gpu") || argc > 4 || (argc == 4 && !absl::SimpleAtoi(argv[3], &max_bytes))) {
    std::fputs("usage: kernel_tests simulator|simulator80|gpu [FAMILY [MAX_BYTES]]\n", stderr);
    return 2;
  }
  std::unique_ptr<cgrt::Simulator> simulator;
  if (is_simulated) {
    simulator = std::make_unique<cgrt::Simulator>(
        cgrt::SimulatorOptions{.ptx_version = backend == "simulator80" ? 80 : cgrt::SimulatorOptions().ptx_version});
  }
  if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  cgrt::testing::Trial::set_max_bytes(max_bytes);
  cgrt::testing::Report report(is_simulated);
  for (const Family& family : kFamilies) {
    if (!only.empty() && only != family.name) continue;
    const int passed = report.passed();
    family.check(report);
    std::printf("%s: %d passed\n", family.name, report.passed() - passed);
  }
  std::printf("kernels on %s: %d passed, %d failed", cgrt::testing::kDevice.name().value_or("?").c_str(),
              report.passed(), report.failed());
  if (report.left_out() > 0) std::printf(", %d left out, with arrays that are too large", report.left_out());
  std::puts("");
  const bool may_leave_out = argc == 4;
  return report.failed() == 0 && report.passed() > 0 && (may_leave_out || report.left_out() == 0) ? 0 : 1;
}
