#include "cgrt/record/origin.h"

#include "support/catch.h"

namespace cgrt::record {
namespace {

TEST_CASE("a record of the simulator names no driver", "[record]") {
  Record record;

  describe_machine(record, "simulated H200", 13000, true);

  CHECK(record.simulated);
  CHECK(record.device == "simulated H200");
  CHECK(record.driver == "simulated");
  CHECK(record.cuda == "13.0");
  CHECK(record.date == utc_date());
}

TEST_CASE("a command is written as it was given", "[record]") {
  const char* const argv[] = {"./build/graphbench", "--nodes", "1,10"};

  CHECK(command_line("graphbench", 3, argv) == "graphbench --nodes 1,10");
}

}  // namespace
}  // namespace cgrt::record
