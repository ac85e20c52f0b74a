// Checks of a cache of keys and values, for the plans of families. Internal.
#pragma once

#include "absl/status/status.h"
#include "cgrt_kernels/common/kv_cache.h"
#include "cgrt_kernels/common/kv_cache_shape.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {

// The same with the strides that are 0 there.
KvCacheDesc with_strides(KvCacheDesc cache);

// Refuses sizes of 0 and of 2^31 and more, rows of the block table whose pages hold fewer than `positions` positions,
// and, of a descriptor with strides, blocks that are more than 2^60 elements.
absl::Status check_kv_cache(OperationName name, const KvCacheDesc& cache);

// Of a descriptor with strides that was checked.
KvCacheShape shape_of(const KvCacheDesc& cache);

}  // namespace cgrt::kernels
