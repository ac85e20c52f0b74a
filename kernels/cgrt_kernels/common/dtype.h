// Element types of the kernels that have several. Plain: no Abseil.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cgrt::kernels {

enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16 };

constexpr std::size_t size_of(DType type) { return type == DType::kFloat32 ? 4 : 2; }
constexpr const char* to_string(DType type) {
  switch (type) {
    case DType::kFloat32: return "float32";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
  }
  return "unknown";
}

}  // namespace cgrt::kernels
