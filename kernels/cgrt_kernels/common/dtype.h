// Element types of the kernels that have several. Plain: no Abseil.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cgrt::kernels {

// Each family says which of them it takes.
enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kFloat64, kInt32, kInt64 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kFloat16:
    case DType::kBFloat16: return 2;
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kFloat64:
    case DType::kInt64: break;
  }
  return 8;
}
constexpr const char* to_string(DType type) {
  switch (type) {
    case DType::kFloat32: return "float32";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat64: return "float64";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
  }
  return "unknown";
}

}  // namespace cgrt::kernels
