#include "support/default_stream.h"

namespace cgrt::testing {

LaunchTarget zero_of_a_legacy_file() {
  const CUstream zero = nullptr;
  return LaunchTarget(zero);
}

}  // namespace cgrt::testing
