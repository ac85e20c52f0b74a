// Memory at addresses that nothing else has, for tests that save it and load it there.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "cgrt/driver/api.h"
#include "support/catch.h"

namespace cgrt::testing {

// Memory that is mapped into reserved addresses, which are free again when it is gone: `pieces` of 2 MB, of each `step`
// the first.
class MappedMemory {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{2} << 20;

  explicit MappedMemory(std::size_t pieces = 1, std::size_t step = 1) {
    static CUdeviceptr next = 0x7ea000000000;  // where nothing else is, no sanitizer either
    const driver::Api& api = driver::api();
    REQUIRE(api.MemAddressReserve(&address_, kReserved, 0, next, 0) == CUDA_SUCCESS);
    REQUIRE(address_ == next);
    next += kReserved;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (std::size_t i = 0; i < pieces; ++i) {
      CUmemGenericAllocationHandle memory = 0;
      mapped_.push_back(address_ + i * step * kPieceBytes);
      REQUIRE(api.MemCreate(&memory, kPieceBytes, &prop, 0) == CUDA_SUCCESS);
      REQUIRE(api.MemMap(mapped_.back(), kPieceBytes, 0, memory, 0) == CUDA_SUCCESS);
      REQUIRE(api.MemSetAccess(mapped_.back(), kPieceBytes, &access, 1) == CUDA_SUCCESS);
      REQUIRE(api.MemRelease(memory) == CUDA_SUCCESS);
    }
  }
  ~MappedMemory() {
    for (const CUdeviceptr one : mapped_) driver::api().MemUnmap(one, kPieceBytes);
    driver::api().MemAddressFree(address_, kReserved);
  }
  MappedMemory(const MappedMemory&) = delete;

  template <class T>
  T* as(std::size_t piece = 0) const {
    return reinterpret_cast<T*>(mapped_[piece]);
  }

 private:
  static constexpr std::size_t kReserved = std::size_t{32} << 20;
  CUdeviceptr address_ = 0;
  std::vector<CUdeviceptr> mapped_;
};

}  // namespace cgrt::testing
