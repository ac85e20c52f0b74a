// kernel_tests simulator|simulator80|gpu [FAMILY [MAX_BYTES]] [--random SEED SECONDS]: every kernel family against its
// reference in double, over shapes and types, eager, captured and explicit with the same bits. simulator80: a device
// that has translated code for 8.0, without clusters. With MAX_BYTES, cases with a larger array are left out and
// counted; without it, one that is left out is a failure. Exit 0: all equal; 1: some are not; 77: no device.
//
// With --random, cases are drawn instead, of each family until SECONDS are over: the first from SEED, the next from
// SEED + 1, and so on. A failure prints the seed that its case is drawn from: `--random` with that and 0 seconds
// repeats it alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "cgrt/simulator/simulator.h"
#include "kernels/draw.h"
#include "kernels/support.h"
#include "support/no_device.h"

namespace {

using cgrt::testing::Draw;
using cgrt::testing::Report;

struct Family {
  const char* name;
  void (*check)(Report&);
};
constexpr Family kFamilies[] = {
#define CGRT_KERNEL_FAMILY(name) {#name, cgrt::testing::check_##name},
#include "kernels/families.def"
#undef CGRT_KERNEL_FAMILY
};

struct DrawnFamily {
  const char* name;
  void (*draw)(Draw&, Report&);
};
constexpr DrawnFamily kDrawnFamilies[] = {
#define CGRT_DRAWN_FAMILY(name) {#name, cgrt::testing::draw_##name},
#include "kernels/drawn_families.def"
#undef CGRT_DRAWN_FAMILY
};

struct Random {
  std::uint32_t seed = 0;
  double seconds = 0;
};

struct Options {
  std::string backend, family;
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  bool has_max_bytes = false;
  std::optional<Random> random;
};

std::optional<Options> parse(std::vector<std::string> arguments) {
  Options options;
  if (arguments.size() >= 3 && arguments[arguments.size() - 3] == "--random") {
    Random& random = options.random.emplace();
    const bool are_numbers = absl::SimpleAtoi(arguments[arguments.size() - 2], &random.seed) &&
                             absl::SimpleAtod(arguments.back(), &random.seconds);
    if (!are_numbers) return std::nullopt;
    arguments.resize(arguments.size() - 3);
  }
  if (arguments.empty() || arguments.size() > 3) return std::nullopt;
  options.backend = arguments[0];
  if (arguments.size() >= 2) options.family = arguments[1];
  options.has_max_bytes = arguments.size() == 3;
  if (options.has_max_bytes && !absl::SimpleAtoi(arguments[2], &options.max_bytes)) return std::nullopt;
  const bool is_known = options.backend == "simulator" || options.backend == "simulator80" || options.backend == "gpu";
  return is_known ? std::optional(options) : std::nullopt;
}

void draw_cases(const DrawnFamily& family, const Options& options, Report& report) {
  constexpr int kMaxFailures = 20;  // an error that ends the context would fail all that follow
  const int passed = report.passed(), failed = report.failed(), refused = report.refused();
  const std::uint64_t max_bytes =
      std::min<std::uint64_t>(options.max_bytes, report.is_simulated() ? 1 << 15 : 16 << 20);
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = std::chrono::duration<double>(options.random->seconds);
  std::uint32_t seed = options.random->seed;
  do {
    cgrt::testing::set_seed(seed);
    report.begin_draw(seed);
    Draw draw(seed++, max_bytes);
    family.draw(draw, report);
  } while (std::chrono::steady_clock::now() - begin < seconds && report.failed() - failed < kMaxFailures);
  std::printf("%s, drawn from %u to %u: %d passed, %d failed, %d refused\n", family.name, options.random->seed,
              seed - 1, report.passed() - passed, report.failed() - failed, report.refused() - refused);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = parse({argv + 1, argv + argc});
  if (!options) {
    std::fputs("usage: kernel_tests simulator|simulator80|gpu [FAMILY [MAX_BYTES]] [--random SEED SECONDS]\n", stderr);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what failed is there, too, when a family is stopped
  const bool is_simulated = options->backend != "gpu";
  std::unique_ptr<cgrt::Simulator> simulator;
  if (is_simulated) {
    simulator = std::make_unique<cgrt::Simulator>(cgrt::SimulatorOptions{
        .ptx_version = options->backend == "simulator80" ? 80 : cgrt::SimulatorOptions().ptx_version});
  }
  if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  cgrt::testing::watch_loading();
  cgrt::testing::Trial::set_max_bytes(options->max_bytes);
  Report report(is_simulated);
  const auto is_asked = [&](const char* name) { return options->family.empty() || options->family == name; };
  if (options->random) {
    for (const DrawnFamily& family : kDrawnFamilies) {
      if (is_asked(family.name)) draw_cases(family, *options, report);
    }
    for (const auto& [sentence, count] : report.refusals()) std::printf("  refused %d: %s\n", count, sentence.c_str());
  } else {
    for (const Family& family : kFamilies) {
      if (!is_asked(family.name)) continue;
      const int passed = report.passed();
      family.check(report);
      std::printf("%s: %d passed\n", family.name, report.passed() - passed);
    }
  }
  std::printf("kernels on %s: %d passed, %d failed", cgrt::testing::kDevice.name().value_or("?").c_str(),
              report.passed(), report.failed());
  if (report.left_out() > 0) std::printf(", %d left out, with arrays that are too large", report.left_out());
  if (report.refused() > 0) std::printf(", %d refused", report.refused());
  std::puts("");
  const bool may_leave_out = options->has_max_bytes || options->random;
  const bool has_any = report.passed() + (options->random ? report.refused() : 0) > 0;
  return report.failed() == 0 && has_any && (may_leave_out || report.left_out() == 0) ? 0 : 1;
}
