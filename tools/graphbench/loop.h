// Loops that end when a number on the device says so: a while node, and the same work tested by the host.
#pragma once

#include "absl/status/statusor.h"
#include "measure.h"
#include "setup.h"

namespace graphbench {

// An operation is one turn: `kernels` of the chain's kernels and the test. The setup must outlive the side.
absl::StatusOr<Side> while_node(const Setup& setup, int kernels);
// One graph of the turn's kernels and of one that writes the result of the test to pinned memory; launched, waited for
// and looked at for every turn.
absl::StatusOr<Side> host_checked_loop(const Setup& setup, int kernels);

}  // namespace graphbench
