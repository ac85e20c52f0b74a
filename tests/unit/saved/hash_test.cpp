#include "cgrt/saved/hash.h"

#include <cstddef>
#include <span>
#include <string>

#include "support/catch.h"

namespace cgrt::saved {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// The values are those of the command xxhsum.
TEST_CASE("hashes are XXH3 of 128 and 64 bits", "[saved][hash]") {
  CHECK(to_string(hash_of({})) == "99aa06d3014798d86001c324468d497f");
  CHECK(short_hash_of({}) == 0x2d06800538d394c2);
  CHECK(to_string(hash_of(bytes_of("abc"))) == "06b05ab6733a618578af5f94892f3950");
  CHECK(short_hash_of(bytes_of("abc")) == 0x78af5f94892f3950);
}

TEST_CASE("a hash as text is read again, and no other text is", "[saved][hash]") {
  const Hash hash{.high = 0x0123456789abcdef, .low = 1};

  CHECK(to_string(hash) == "0123456789abcdef0000000000000001");
  CHECK(parse_hash(to_string(hash)) == hash);
  for (const char* text :
       {"", "0123456789abcdef000000000000001", "0123456789abcdef00000000000000010", "0123456789ABCDEF0000000000000001",
        "0x23456789abcdef0000000000000001", "../../../../../../../../etc/shad", " 123456789abcdef0000000000000001"}) {
    INFO(text);
    CHECK_FALSE(parse_hash(text).has_value());
  }
}

}  // namespace
}  // namespace cgrt::saved
