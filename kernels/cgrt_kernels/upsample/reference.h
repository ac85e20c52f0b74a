// What nearest upsampling means, in plain C++: the tests' reference and the simulator's host body.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/upsample/shape.h"

namespace cgrt::kernels {

// For each position of the output its source.
inline std::vector<std::size_t> upsample_sources(const UpsampleAxis& axis) {
  std::vector<std::size_t> sources(axis.out_size);
  for (std::uint32_t at = 0; at < axis.out_size; ++at) {
    const float exact = std::floor(static_cast<float>(at) * axis.scale), last = static_cast<float>(axis.size - 1);
    sources[at] = static_cast<std::size_t>(std::fmin(exact, last));
  }
  return sources;
}

// Calls visit(position in the larger image's array, position in the image's array) for each element of
// the larger one, in order.
template <class Visit>
void visit_upsampled(const UpsampleShape& shape, Visit visit) {
  const std::vector<std::size_t> rows = upsample_sources(shape.rows), columns = upsample_sources(shape.columns);
  std::size_t large = 0;
  for (std::size_t image = 0; image < shape.images; ++image) {
    for (const std::size_t row : rows) {
      for (const std::size_t column : columns) {
        const std::size_t pixel = (image * shape.rows.size + row) * shape.columns.size + column;
        for (std::size_t channel = 0; channel < shape.channels; ++channel) {
          visit(large++, pixel * shape.channels + channel);
        }
      }
    }
  }
}

inline std::size_t upsample_pixels(const UpsampleShape& shape) {
  return std::size_t{shape.images} * shape.rows.size * shape.columns.size * shape.channels;
}

// The gradient in double.
inline std::vector<double> upsample_backward_reference(const UpsampleShape& shape, const std::vector<double>& large) {
  std::vector<double> sums(upsample_pixels(shape));
  visit_upsampled(shape, [&](std::size_t from, std::size_t to) { sums[to] += large[from]; });
  return sums;
}

}  // namespace cgrt::kernels
