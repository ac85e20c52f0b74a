// Catch2 2.13 (Debian 12) and 3 (Ubuntu 24.04, vcpkg), whichever is installed.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
namespace Catch {
using Matchers::MatcherBase;  // where version 2 has it
}
#else
#include <catch2/catch.hpp>
#endif
