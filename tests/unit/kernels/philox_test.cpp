// Philox4x32-10 against the answers that its authors publish (Random123, kat_vectors).
#include "cgrt_kernels/common/philox.h"

#include <algorithm>

#include "support/catch.h"

namespace cgrt::testing {
namespace {

using kernels::philox;
using kernels::Random4;

bool are(const Random4& found, const Random4& expected) { return std::ranges::equal(found.of, expected.of); }

TEST_CASE("philox gives the published numbers") {
  CHECK(are(philox({}, 0, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(are(philox({{kOnes, kOnes, kOnes, kOnes}}, kOnes, kOnes), {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  CHECK(are(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
            {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST_CASE("seed and counter are of 64 bits") {
  const Random4 found = kernels::random4(0x299f31d0a4093822, 0x85a308d3243f6a88);
  CHECK(are(found, philox({{0x243f6a88, 0x85a308d3, 0, 0}}, 0xa4093822, 0x299f31d0)));
}

}  // namespace
}  // namespace cgrt::testing
