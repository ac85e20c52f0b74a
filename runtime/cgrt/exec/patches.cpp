#include "cgrt/exec/patches.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/launch_resources.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/keep.h"

namespace cgrt::internal {
namespace {

using driver::NodeWord;

absl::StatusOr<std::uint64_t> id_of(StreamRef stream) {
  unsigned long long id = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamGetId(stream.get(), &id), "cuStreamGetId"));
  return id;
}

template <std::size_t kCapacity>
absl::Status launch_kernel(StreamRef stream, PatchList<kMaxPatches>& list) {
  void* arguments[] = {&list};
  return launch(stream,
                KernelLaunch{patch_kernel<kCapacity>().identity(), Dim3((list.count + kPatchBlock - 1) / kPatchBlock),
                             Dim3(kPatchBlock), 0, arguments});
}

}  // namespace

absl::Status Patches::begin(CUcontext context, std::size_t words) {
  context_ = context;
  places_.resize(words);
  CGRT_ASSIGN_OR_RETURN(launched_, Event::create(context));
  return absl::OkStatus();
}

absl::Status Patches::upload_words(const std::vector<NodeWord>& words) {
  if (words.empty()) return absl::OkStatus();
  const std::size_t bytes = words.size() * sizeof(NodeWord);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(context_, bytes));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(context_));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), words.data(), bytes));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  words_ = std::make_shared<DeviceBuffer>(std::move(buffer));
  return absl::OkStatus();
}

void Patches::set(std::uint32_t word, std::uint64_t value) {
  std::uint32_t& place = places_[word];
  if (place >= pending_count_ || pending(place).word != word) {
    place = static_cast<std::uint32_t>(pending_count_++);
    if (place / kMaxPatches == pending_.size()) pending_.push_back(std::make_unique<PendingList>());
  }
  pending(place) = {word, static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

absl::Status Patches::launch_kernels(StreamRef stream) {
  for (std::size_t i = 0; i * kMaxPatches < pending_count_; ++i) {
    PendingList& list = *pending_[i];
    list.words = words_->as<const NodeWord>();
    list.count = static_cast<std::uint32_t>(std::min(pending_count_ - i * kMaxPatches, kMaxPatches));
    constexpr const auto& kCapacities = kPatchCapacities;
    CGRT_RETURN_IF_ERROR(list.count <= kCapacities[0]   ? launch_kernel<kCapacities[0]>(stream, list)
                         : list.count <= kCapacities[1] ? launch_kernel<kCapacities[1]>(stream, list)
                         : list.count <= kCapacities[2] ? launch_kernel<kCapacities[2]>(stream, list)
                         : list.count <= kCapacities[3] ? launch_kernel<kCapacities[3]>(stream, list)
                                                        : launch_kernel<kCapacities[4]>(stream, list));
  }
  return absl::OkStatus();
}

// Patches must come from the device of the nodes.
absl::Status Patches::check_device(StreamRef stream) const {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, stream.context());
  if (context == context_) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(context).device());
  CGRT_ASSIGN_OR_RETURN(const DeviceRef ours, ContextRef(context_).device());
  if (device == ours) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "The stream is one of device ", device.ordinal(), ", and the executable that was rebound runs on device ",
      ours.ordinal(), ", from where its nodes must be changed. Launch it into a stream of that device."));
}

absl::Status Patches::patch(CUgraphExec exec, StreamRef stream) {
  CGRT_ASSIGN_OR_RETURN(const bool is_capturing, stream.is_capturing());
  if (is_capturing) return absl::OkStatus();  // which takes no executables; patches would become nodes of it
  CGRT_RETURN_IF_ERROR(check_device(stream));
  CGRT_RETURN_IF_ERROR(wait_for_last(stream));
  if (!is_uploaded_) {  // CUDA wants that of an executable before its nodes are changed
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphUpload(exec, stream.get()), "cuGraphUpload"));
    is_uploaded_ = true;
  }
  has_patched_ = true;
  if (absl::Status launched = launch_kernels(stream); !launched.ok()) {  // the first of several may be under way
    after_failure(stream);
    return launched;
  }
  pending_count_ = 0;
  return absl::OkStatus();
}

absl::Status Patches::after_launch(StreamRef stream) {
  is_uploaded_ = true;
  has_patched_ = false;
  return note_last(stream);
}

absl::Status Patches::upload(CUgraphExec exec, StreamRef stream) {
  if (ABSL_PREDICT_FALSE(has_patched_)) CGRT_RETURN_IF_ERROR(wait_for_last(stream));
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphUpload(exec, stream.get()), "cuGraphUpload"));
  is_uploaded_ = true;
  return note_last(stream);
}

void Patches::finish() {
  const RelaxedCaptureMode relaxed;
  if (ABSL_PREDICT_FALSE(has_patched_)) launched_.ref().synchronize().IgnoreError();
  if (words_ != nullptr && last_stream_.has_value()) keep_until(std::move(launched_), std::move(words_));
  words_.reset();
}

absl::Status Patches::wait_for_last(StreamRef stream) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t id, id_of(stream));
  return last_stream_.has_value() && *last_stream_ != id ? stream.wait(launched_.ref()) : absl::OkStatus();
}

absl::Status Patches::note_last(StreamRef stream) {
  CGRT_RETURN_IF_ERROR(record_last(launched_, stream));
  CGRT_ASSIGN_OR_RETURN(last_stream_, id_of(stream));
  return absl::OkStatus();
}

}  // namespace cgrt::internal
