// Proof that graphs of a bundle are movable, by replays at other addresses. Internal: for graphdump save.
//
//   const auto moved = [](const std::vector<std::string>& graphs) {
//     return TrialProcess::create([graphs] {
//       return LoadedTrials::create("step.bundle", graphs, DeviceRef(0), BundlePlacement::kAnywhere);
//     }, absl::Seconds(20));
//   };
//   CGRT_ASSIGN_OR_RETURN(graphs, prove_movable("step.bundle", std::move(graphs), moved));
//
// Two saves say which words are addresses (saved/movable.h), but for those that are open. A graph is movable if a
// replay with all memory elsewhere, where nothing is accessible at the addresses that memory had, leaves what the
// launch that was saved did, and if it leaves the same with random bytes, their complement, and zeros in place of all
// that is open: then nothing of that matters, and no address was overlooked. What differs from replay to replay is not
// compared.
#pragma once

#include "cgrt/base/language.h"  // first

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/bundle/trials.h"
#include "cgrt/saved/movable.h"

namespace cgrt {

// `graphs`: what compare_saves() says of the bundle at `path`. Returns it with nothing open: a graph that needs any of
// that, or leaves other memory, or cannot be replayed, is not movable and says why. Writes variants of the graphs into
// the bundle, which are in it no more in the end: for a bundle that nobody else has open. Blocks.
absl::StatusOr<std::vector<saved::Movability>> prove_movable(const std::string& path,
                                                             std::vector<saved::Movability> graphs,
                                                             const MakeTrials& make_trials);

}  // namespace cgrt
