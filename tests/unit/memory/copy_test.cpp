// What a refused copy or memset says of the memory on either side.
#include "cgrt/memory/copy.h"

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

struct CopyTest {
  auto refused(const std::string& text) { return StatusIs(absl::StatusCode::kInvalidArgument, text); }

  Simulator simulator;
  Stream stream = *Stream::create(DeviceRef(0));
  PinnedBuffer small = *PinnedBuffer::create(DeviceRef(0), 64), large = *PinnedBuffer::create(DeviceRef(0), 4096);
};

TEST_CASE_METHOD(CopyTest, "a refused copy names the side that is too small", "[memory]") {
  Graph graph = *Graph::create(DeviceRef(0));
  Cursor cursor = graph.cursor();
  for (const LaunchTarget target : {LaunchTarget(stream), LaunchTarget(cursor)}) {
    CHECK_THAT(copy(target, small.data(), large.data(), 65),
               refused(". The destination is too small: 65 bytes from byte 0 on, in an allocation of 64 bytes at 0x"));
    CHECK_THAT(copy(target, large.data(), small.as<char>() + 63, 2),
               refused(". The source is too small: 2 bytes from byte 63 on, in an allocation of 64 bytes at 0x"));
    CHECK_THAT(fill8(target, small.as<char>() + 8, 0, 57), refused("57 elements of 1 byte at 0x"));
    CHECK_THAT(fill8(target, small.as<char>() + 8, 0, 57),
               refused(". The destination is too small: 57 bytes from byte 8 on, in an allocation of 64 bytes at 0x"));
  }
}

TEST_CASE_METHOD(CopyTest, "rows and slices count to the end of the last row", "[memory]") {
  CopyParams params{.destination = large.data(),
                    .source = small.data(),
                    .bytes = 8,
                    .height = 4,
                    .destination_pitch = 64,
                    .source_pitch = 19};
  CHECK_THAT(copy(stream, params), refused(". The source is too small: 65 bytes from byte 0 on"));
  params.source_pitch = 18;
  CHECK_OK(copy(stream, params));
  params.depth = 2;
  params.source_rows = 5;
  CHECK_THAT(copy(stream, params), refused(". The source is too small: 152 bytes from byte 0 on"));
  CHECK_THAT(
      fill(stream, {.destination = small.data(), .value = 0, .element_bytes = 4, .count = 1, .height = 2, .pitch = 64}),
      refused(". The destination is too small: 68 bytes from byte 0 on"));
  CHECK_OK(stream.ref().synchronize());
}

TEST_CASE_METHOD(CopyTest, "a side that is null is named, and one that fits is not", "[memory]") {
  CHECK_THAT(copy(stream, nullptr, large.data(), 8), refused(". The destination is null: cuMemcpyAsync returned 1"));
  CHECK_THAT(copy(stream, large.data(), nullptr, 8), refused(". The source is null: cuMemcpyAsync returned 1"));
  CHECK_THAT(fill8(stream, nullptr, 0, 8), refused(". The destination is null: cuMemset returned 1"));
  CHECK_THAT(fill(stream, {.destination = small.data(), .value = 0, .element_bytes = 3, .count = 1}),
             refused("of 3 bytes (1, 2 or 4) at 0x"));
}

}  // namespace
}  // namespace cgrt::testing
