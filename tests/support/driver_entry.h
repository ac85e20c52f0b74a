// Driver functions that cgrt itself does not need.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cgrt::testing {

template <class Function>
absl::StatusOr<Function> driver_entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, &result) != cudaSuccess ||
      found == nullptr) {
    return absl::NotFoundError(name);
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace cgrt::testing
