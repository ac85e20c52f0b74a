#include "cgrt/launch/function_name.h"

#include "support/catch.h"

namespace cgrt::internal {
namespace {

TEST_CASE("symbols become the names of the source", "[launch]") {
  CHECK(function_name("_ZN2ns5scaleIfEEvPT_i") == "ns::scale<float>");
  CHECK(function_name("_Z4stepPFviE") == "step");
  CHECK(function_name("plain_c_name") == "plain_c_name");
}

TEST_CASE("values of enumerations are numbers, whose types are written out", "[launch]") {
  CHECK(function_name("_ZN2ns4normILNS_2OpE3EfEEvPT0_i") == "ns::norm<(ns::Op)3, float>");
  CHECK(function_name("_ZN2ns4normILNS_2OpEn1EfEEvPT0_i") == "ns::norm<(ns::Op)-1, float>");
}

TEST_CASE("the name of a tag is that of its kernel", "[launch]") {
  CHECK(function_name("N4cgrt8internal9KernelTagIXadL_ZN2ns4normILNS2_2OpE3EfEEvPT0_iEEEE") ==
        "ns::norm<(ns::Op)3, float>");
  CHECK(function_name("N4cgrt8internal9KernelTagIXadL_ZL4stepPFviEEEEE") == "step");
  CHECK(function_name("N4cgrt8internal9KernelTagIXadL_Z12plain_c_nameEEEE") == "plain_c_name");
  CHECK(function_name("N4cgrt8internal9KernelTagIXadL_ZN12_GLOBAL__N_15scaleEvEEEE") == "scale");
}

TEST_CASE("a C name that reads like a mangled type is left alone", "[launch]") {
  CHECK(function_name("f") == "f");  // the demangler would say "float"
  CHECK(function_name("i") == "i");
}

}  // namespace
}  // namespace cgrt::internal
