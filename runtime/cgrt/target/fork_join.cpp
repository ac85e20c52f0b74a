#include "cgrt/target/fork_join.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"

namespace cgrt {

absl::StatusOr<SideStreams> SideStreams::create(ContextRef context, std::size_t count) {
  SideStreams made;
  CGRT_ASSIGN_OR_RETURN(made.fork_, Event::create(context));
  for (std::size_t i = 0; i < count; ++i) {
    Side side;
    CGRT_ASSIGN_OR_RETURN(side.stream, Stream::create(context));
    CGRT_ASSIGN_OR_RETURN(side.done, Event::create(context));
    made.sides_.push_back(std::move(side));
  }
  return made;
}

absl::Status fork_join(LaunchTarget target, SideStreams& sides, absl::Span<const Branch> branches) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a fork"));
  if (target.sink() != nullptr) return target.sink()->fork_join(branches);
  if (branches.empty()) return absl::OkStatus();
  if (branches.size() == 1) return branches[0](target.stream());
  const std::size_t needed = branches.size() - 1;
  if (needed > sides.count()) {
    return absl::InvalidArgumentError(absl::StrCat(branches.size(), " branches in a stream need ",
                                                   counted(needed, "side stream"), ", and there are ", sides.count(),
                                                   ". Make them with SideStreams::create."));
  }
  const StreamRef stream = target.stream();
  CGRT_RETURN_IF_ERROR(stream.record(sides.fork_));
  absl::Status status;
  std::size_t forked = 0;
  for (; forked < needed && status.ok(); ++forked) status = sides.sides_[forked].stream.ref().wait(sides.fork_);
  if (!status.ok()) --forked;  // that one did not
  for (std::size_t i = 0; i < branches.size() && status.ok(); ++i) {
    status = branches[i](i == 0 ? stream : sides.sides_[i - 1].stream.ref());
  }
  for (std::size_t i = 0; i < forked; ++i) {
    const SideStreams::Side& side = sides.sides_[i];
    absl::Status joined = side.stream.ref().record(side.done);
    if (joined.ok()) joined = stream.wait(side.done);
    if (status.ok()) status = std::move(joined);
  }
  return status;
}

}  // namespace cgrt
