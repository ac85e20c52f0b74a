// LoadedTrials: trials of graphs of a bundle that this process has loaded. Internal: for graphdump.
//
//   CGRT_ASSIGN_OR_RETURN(const auto trials, LoadedTrials::create("step.bundle", {"decode"}, DeviceRef(0)));
//
// A replay with poison may fault, which ends what the process can do with its context, or never end: see
// bundle/trial_process.h. Keeps all memory of the bundle on the host, twice where a replay changes it. Not thread-safe.
#pragma once

#include <cuda.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/bundle/address_space.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/bundle/transfer.h"
#include "cgrt/bundle/trials.h"
#include "cgrt/device/context.h"
#include "cgrt/stream/stream.h"

namespace cgrt {

class LoadedTrials : public Trials {
 public:
  // Loads the bundle, with no graphs but these. Blocks. With kAnywhere all memory is at addresses that the bundle had
  // none at, and nothing is accessible where it was, unless something else of this process is there. Errors: those of
  // Bundle::open and Bundle::load.
  static absl::StatusOr<std::unique_ptr<Trials>> create(const std::string& path, const std::vector<std::string>& graphs,
                                                        ContextRef context,
                                                        BundlePlacement placement = BundlePlacement::kAsSaved);

  // Any error of the driver from the launch on is a fault.
  absl::StatusOr<Trial> replay(const TrialRequest& request) override;
  absl::StatusOr<Spans> unexpected() override;
  absl::StatusOr<std::vector<std::uint64_t>> hashes(const std::vector<saved::Range>& ranges) override;

 private:
  using Bytes = std::unique_ptr<std::byte[]>;
  using Line = std::bitset<kLineBytes>;
  // Memory of one block, at most kMaxPieceBytes of it.
  struct Part {
    Span span = {};  // where it was in the process that was saved; a line is in one part
    internal::Chunk chunk = {};
    Bytes saved = {};                  // null: zeros
    Bytes reference = {};              // after a replay; null: as `saved`
    const std::byte* content() const;  // of `saved`
    void keep(std::span<const std::byte> bytes);
  };
  class Sweep;

  LoadedTrials(Bundle bundle, std::unique_ptr<internal::AddressSpace> old, LoadedBundle loaded, Stream stream,
               std::unique_ptr<internal::Transfers> transfers, std::vector<std::string> graphs)
      : bundle_(std::move(bundle)),
        old_(std::move(old)),
        loaded_(std::move(loaded)),
        stream_(std::move(stream)),
        transfers_(std::move(transfers)),
        graphs_(std::move(graphs)) {}
  absl::Status read_saved();
  // Makes `reference`, from another replay than before where `varied` is new. False: that faulted.
  absl::StatusOr<bool> set_varied(const Spans& varied);
  // Puts poison where all is as it was saved.
  absl::Status write(const Poison& poison, const Spans& spans);
  absl::Status make_reference();  // of the saved state
  // False: it faulted.
  bool run(std::size_t graph);
  std::span<const std::byte> reference_of(const Part& part) const;
  // Calls `visit(unit, bytes)` for each unit of kExpectedBytes of the ranges with what the reference has there.
  template <class Visit>
  void visit_units(const std::vector<saved::Range>& ranges, Visit visit) const;

  const Bundle bundle_;
  const std::unique_ptr<internal::AddressSpace> old_;  // addresses that are not accessible
  LoadedBundle loaded_;
  const Stream stream_;
  const std::unique_ptr<internal::Transfers> transfers_;
  const std::vector<std::string> graphs_;
  std::vector<Part> parts_;
  std::vector<internal::Chunk> chunks_;    // of parts_
  std::optional<Spans> varied_;            // of the replay that `reference` is from
  std::map<std::uint64_t, Line> varying_;  // by address: the bytes that differ from replay to replay
};

}  // namespace cgrt
