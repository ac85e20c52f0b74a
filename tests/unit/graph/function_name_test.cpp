#include "cgrt/graph/function_name.h"

#include "support/catch.h"

namespace cgrt::internal {
namespace {

TEST_CASE("symbols become the names of the source", "[graph]") {
  CHECK(function_name("_ZN2ns5scaleIfEEvPT_i") == "ns::scale<float>");
  CHECK(function_name("_Z4stepPFviE") == "step");
  CHECK(function_name("plain_c_name") == "plain_c_name");
}

TEST_CASE("a C name that reads like a mangled type is left alone", "[graph]") {
  CHECK(function_name("f") == "f");  // the demangler would say "float"
  CHECK(function_name("i") == "i");
}

}  // namespace
}  // namespace cgrt::internal
