// kernel_tests simulator|gpu [FAMILY]: every kernel family against its reference in double, over
// shapes and types, eager, captured and explicit with the same bits. Exit 0: all equal; 1: some are
// not; 77: no device.
#include <cstdio>
#include <memory>
#include <string>

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
  const std::string backend = argc >= 2 ? argv[1] : "", only = argc == 3 ? argv[2] : "";
  if ((backend != "simulator" && backend != "gpu") || argc > 3) {
    std::fputs("usage: kernel_tests simulator|gpu [FAMILY]\n", stderr);
    return 2;
  }
  std::unique_ptr<cgrt::Simulator> simulator;
  if (backend == "simulator") simulator = std::make_unique<cgrt::Simulator>();
  if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  cgrt::testing::Report report(backend == "simulator");
  for (const Family& family : kFamilies) {
    if (!only.empty() && only != family.name) continue;
    const int passed = report.passed();
    family.check(report);
    std::printf("%s: %d passed\n", family.name, report.passed() - passed);
  }
  std::printf("kernels on %s: %d passed, %d failed\n", cgrt::testing::kDevice.name().value_or("?").c_str(),
              report.passed(), report.failed());
  return report.failed() == 0 && report.passed() > 0 ? 0 : 1;
}
