#include "cgrt/bundle/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using internal::Cubin;

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("the kernels and variables of a cubin are told", "[bundle][cubin]") {
  const absl::StatusOr<Cubin> cubin = Cubin::read(loaded_cubin());

  REQUIRE_OK(cubin);
  REQUIRE(cubin->find("scale") != nullptr);
  CHECK(cubin->find("scale")->code.size() > 0);
  CHECK(cubin->find("scale")->constants.size() > 0);
  CHECK(cubin->find("nothing") == nullptr);
  REQUIRE(cubin->find_variable("weights") != nullptr);
  CHECK(cubin->find_variable("weights")->bytes == 8);
  CHECK(cubin->find_variable("weights")->relocated.empty());
  CHECK(cubin->find_variable("scale") == nullptr);
  CHECK(*internal::variables_in(loaded_cubin()) ==
        std::vector<std::string>{"address_of_counter", "counter", "untouched", "weights"});
}

TEST_CASE("a variable is as the image has it but for the addresses that the driver puts in", "[bundle][cubin]") {
  const absl::StatusOr<Cubin> cubin = Cubin::read(loaded_cubin());
  REQUIRE_OK(cubin);
  const auto is_initial = [&](const char* symbol, const std::vector<int>& values) {
    return cubin->find_variable(symbol)->is_initial(bytes_of(values));
  };

  CHECK(is_initial("counter", {7}));
  CHECK_FALSE(is_initial("counter", {8}));
  CHECK_FALSE(is_initial("counter", {7, 0}));
  CHECK(is_initial("untouched", {0, 0, 0}));
  CHECK_FALSE(is_initial("untouched", {0, 1, 0}));
  CHECK(cubin->find_variable("address_of_counter")->relocated == std::vector<std::uint64_t>{0});
  CHECK(is_initial("address_of_counter", {0x1234, 0x7f}));
}

TEST_CASE("kernels that use textures, surfaces or the device's heap are known", "[bundle][cubin]") {
  for (const std::string_view image : {bound_cubin_80(), bound_cubin_90()}) {
    const absl::StatusOr<Cubin> cubin = Cubin::read(image);
    REQUIRE_OK(cubin);
    for (const char* symbol : {"reads_texture", "filters_texture", "gathers_texture", "reads_surface", "writes_surface",
                               "adds_to_surface", "allocates", "frees", "is_free"}) {
      INFO(symbol);
      const Cubin::Function* const function = cubin->find(symbol);
      REQUIRE(function != nullptr);
      const std::string_view name = symbol;
      CHECK(function->uses_textures == (name.find("texture") != name.npos || name.find("surface") != name.npos));
      CHECK(function->uses_heap == (name == "allocates" || name == "frees"));
    }
  }
  const absl::StatusOr<Cubin> cubin = Cubin::read(loaded_cubin());
  REQUIRE_OK(cubin);
  for (const Cubin::Function& function : cubin->functions) CHECK((!function.uses_textures && !function.uses_heap));
}

TEST_CASE("variables are found in a fatbin and in PTX", "[bundle][cubin]") {
  CHECK(*internal::variables_in(loaded_fatbin()) == *internal::variables_in(loaded_cubin()));
  CHECK(*internal::variables_in(loaded_ptx()) == *internal::variables_in(loaded_cubin()));
  CHECK_THAT(internal::variables_in("text").status(), StatusIs(absl::StatusCode::kInvalidArgument, "no cubin"));
  CHECK(internal::image_bytes(loaded_cubin().data()) == loaded_cubin().size());
  CHECK(internal::image_bytes(loaded_fatbin().data()) == loaded_fatbin().size());
  CHECK(internal::image_bytes(loaded_ptx().data()) == 0);
}

TEST_CASE("an image whose head speaks of 2^64 bytes has none", "[bundle][cubin]") {
  std::string cubin(loaded_cubin()), fatbin(loaded_fatbin());
  const std::uint64_t far = ~std::uint64_t{0} - 7;
  std::memcpy(cubin.data() + offsetof(Elf64_Ehdr, e_shoff), &far, sizeof(far));
  std::memcpy(fatbin.data() + 8, &far, sizeof(far));  // what follows the head

  CHECK(internal::image_bytes(cubin.data()) == 0);
  CHECK(internal::image_bytes(fatbin.data()) == 0);
}

TEST_CASE("a damaged image is an error or read as far as it goes", "[bundle][cubin]") {
  for (const std::string_view whole : {loaded_cubin(), loaded_fatbin()}) {
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 13) {
      const std::string image(whole.substr(0, bytes));
      static_cast<void>(internal::variables_in(image));
    }
    std::mt19937_64 random(7);
    for (int i = 0; i < 5000; ++i) {
      std::string image(whole);
      for (int n = 0; n < 4; ++n) image[random() % (n == 0 ? 64 : image.size())] = static_cast<char>(random());
      static_cast<void>(internal::variables_in(image));
    }
  }
  CHECK_THAT(Cubin::read(loaded_cubin().substr(0, loaded_cubin().size() / 2)).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "cut short"));
}

}  // namespace
}  // namespace cgrt::testing
