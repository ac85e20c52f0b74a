// What is in a cubin: its kernels, as bytes that can be compared with those of another one, and its variables.
//
//   CGRT_ASSIGN_OR_RETURN(const internal::Cubin cubin, internal::Cubin::read(image));
//   for (const internal::Cubin::Variable& one : cubin.variables) ...
//
// Made for images of unknown origin: what does not lie in the image is an error. Internal to bundle/ and graphdump.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cgrt::internal {

// Valid as long as the image.
struct Cubin {
  struct Function {
    std::string_view symbol;
    std::string_view code;       // its section
    std::string_view info;       // registers, parameters and the like, as the compiler wrote them
    std::string_view constants;  // of its own
    std::uint64_t shared_bytes = 0;
    bool has_relocations = false;  // the driver puts addresses into its code
    // It, or a function that it calls: by code of 7.5 to 12.0. What is called through a pointer is not seen.
    bool uses_textures = false;  // or surfaces
    bool uses_heap = false;      // malloc and free of the device
  };
  // __device__ or __constant__, also where it is static or of a function.
  struct Variable {
    std::string_view symbol;
    std::uint64_t bytes = 0;
    std::string_view initial = {};              // empty: zeros
    std::vector<std::uint64_t> relocated = {};  // offsets of 8 bytes each, where the driver puts an address

    // Whether that is its content when the module is loaded.
    bool is_initial(std::span<const std::byte> content) const;
  };

  // kInvalidArgument: no cubin, or one that is damaged.
  static absl::StatusOr<Cubin> read(std::string_view image);
  // Null: there is none of that name.
  const Function* find(std::string_view symbol) const;
  const Variable* find_variable(std::string_view symbol) const;

  std::vector<Function> functions = {};  // kernels, ascending by symbol
  std::vector<Variable> variables = {};  // ascending by symbol
};

// Names of variables that a cubin, a fatbin or PTX has, ascending. kInvalidArgument: it is damaged, or none of these;
// kUnimplemented: a fatbin of compressed code alone.
absl::StatusOr<std::vector<std::string>> variables_in(std::string_view image);

bool is_cubin(std::string_view image);
bool is_fatbin(std::string_view image);
// Of an ELF file or fatbin that begins there, as long as its head says; 0: it is neither, or its head is damaged.
std::uint64_t image_bytes(const void* image);

}  // namespace cgrt::internal
