// Draw: descriptors at random, of shapes that nobody has listed.
//
//   void draw_topk(Draw& draw, Report& report) {
//     const std::uint64_t experts = draw.size(512);
//     report.check("topk", check({.tokens = draw.size(1000), .experts = experts, .k = draw.size(experts)}));
//   }
//
// One case; the same seed and the same limit draw the same one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "kernels/support.h"

namespace cgrt::testing {

class Draw {
 public:
  // No array that a case is about is to have more than `max_bytes`.
  Draw(std::uint32_t seed, std::uint64_t max_bytes) : engine_(seed), max_bytes_(max_bytes) {}

  std::uint64_t from(std::uint64_t first, std::uint64_t last) {
    return std::uniform_int_distribution<std::uint64_t>(first, last)(engine_);
  }
  bool one_in(std::uint64_t count) { return from(1, count) == 1; }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[from(0, choices.size() - 1)];
  }
  kernels::DType float_type() {
    return of({kernels::DType::kFloat32, kernels::DType::kFloat16, kernels::DType::kBFloat16});
  }
  kernels::DType half_type() { return of({kernels::DType::kFloat16, kernels::DType::kBFloat16}); }

  // From 1 to `max`, as many small as large ones; many are 1, powers of two, multiples of 8 and 16, or beside these.
  std::uint64_t size(std::uint64_t max) {
    if (one_in(8)) return 1;
    auto some = static_cast<std::int64_t>(log_uniform(max));
    switch (from(0, 3)) {
      case 0: return static_cast<std::uint64_t>(some);
      case 1: some = std::int64_t{1} << std::llround(std::log2(static_cast<double>(some))); break;
      case 2: some = (some + 4) / 8 * 8; break;
      default: some = (some + 8) / 16 * 16; break;
    }
    some += static_cast<std::int64_t>(from(0, 2)) - 1;
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(some, 1, static_cast<std::int64_t>(max)));
  }

  // Elements of so many bytes that an array may have.
  std::uint64_t max_elements(std::uint64_t bytes) const { return std::max<std::uint64_t>(max_bytes_ / bytes, 1); }

  // Rows and columns whose product is at most `max`.
  std::pair<std::uint64_t, std::uint64_t> matrix(std::uint64_t max) {
    const std::uint64_t both = log_uniform(max), first = size(both),
                        second = size(std::max<std::uint64_t>(both / first, 1));
    return one_in(2) ? std::pair{first, second} : std::pair{second, first};
  }

  // Halves the largest of `sizes` until their product is at most `max`.
  static void shrink(std::uint64_t max, std::initializer_list<std::uint64_t*> sizes) {
    const auto product = [&] {
      double all = 1;
      for (const std::uint64_t* size : sizes) all *= static_cast<double>(*size);
      return all;
    };
    while (product() > static_cast<double>(max)) {
      std::uint64_t* const largest =
          *std::max_element(sizes.begin(), sizes.end(), [](auto* a, auto* b) { return *a < *b; });
      if (*largest == 1) return;
      *largest /= 2;
    }
  }

  // How many of `all` there are on the device: none, one, all, some, and what is no number of them.
  std::int32_t count_of(std::uint64_t all) {
    const auto count = static_cast<std::int32_t>(all);
    return of({0, 1, count, count, count - 1, -1, count + 1, static_cast<std::int32_t>(from(0, all))});
  }

  // Elements that an array begins behind an aligned address: most often none.
  std::size_t shift() { return one_in(2) ? 0 : from(1, 15); }

 private:
  std::uint64_t log_uniform(std::uint64_t max) {
    const double exponent = std::uniform_real_distribution<double>(0, std::log2(static_cast<double>(max) + 1))(engine_);
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::exp2(exponent)), 1, max);
  }

  std::mt19937 engine_;
  std::uint64_t max_bytes_;
};

// One case each, in NAME.cpp.
#define CGRT_DRAWN_FAMILY(name) void draw_##name(Draw& draw, Report& report);
#include "kernels/drawn_families.def"
#undef CGRT_DRAWN_FAMILY

}  // namespace cgrt::testing
