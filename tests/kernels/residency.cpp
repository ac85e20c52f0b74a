// Kernels whose blocks wait for others end also where other work holds the multiprocessors, and two of them beside each
// other end. On a device: what is launched beside a kernel that leaves it one multiprocessor, but for launches of
// clusters, which may need more than one; then two of each in parallel branches of a graph, again and again, and all of
// them in one. A hang is a failure, not a test that hangs.
//
// What each family waits for, and why it ends, is in docs/kernels.md.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "kernels/hold.h"
#include "kernels/residency_works.h"
#include "kernels/support.h"
#include "support/idle_sink.h"

namespace cgrt::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLimit(10);             // until what has not ended counts as a hang
constexpr std::uint64_t kMaxHeld = 90'000'000'000ull;  // nanoseconds, if the host does not come back

// Whether the stream's work ended within the limit.
absl::StatusOr<bool> ends(StreamRef stream, std::chrono::nanoseconds limit = kLimit) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    CGRT_ASSIGN_OR_RETURN(const bool is_complete, stream.is_complete());
    if (is_complete) return true;
    if (Clock::now() - begin > limit) return false;
    std::this_thread::yield();
  }
}

// There is no way back: memory cannot be freed while a kernel runs for ever.
[[noreturn]] void leave_hung(Report& report, const std::string& name) {
  report.check(name, absl::DeadlineExceededError("never ends"));
  std::printf("residency: the device hangs, and the program ends here\n");
  std::fflush(stdout);
  std::_Exit(1);
}

// Sees what a launch asks for.
class Requests final : public IdleSink {
 public:
  bool has_clusters = false, is_cooperative = false;

  absl::Status add_kernel(const KernelLaunch& launch, EdgeKind) override {
    if (launch.attributes == nullptr) return absl::OkStatus();
    has_clusters |= launch.attributes->cluster.count() > 1;
    is_cooperative |= launch.attributes->cooperative;
    return absl::OkStatus();
  }
};

struct Tried {
  std::string name;
  Work first, second;  // the same, with memory of their own
  bool needs_room;     // of several multiprocessors at once
  Bytes expected;
};

absl::StatusOr<Bytes> found(StreamRef stream, const Work& work) {
  Bytes bytes(work.out_bytes);
  CGRT_RETURN_IF_ERROR(copy(stream, bytes.data(), work.out, work.out_bytes));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return bytes;
}

absl::Status poison(StreamRef stream, const Work& work) { return fill8(stream, work.out, work.before, work.out_bytes); }

absl::Status expect(StreamRef stream, const Tried& tried, const Work& work) {
  CGRT_ASSIGN_OR_RETURN(const Bytes bytes, found(stream, work));
  return bytes == tried.expected ? absl::OkStatus() : absl::InternalError("other bits than alone");
}

// Each alone, which also loads its code: loading waits for what runs.
absl::StatusOr<Tried> try_alone(Arena& arena, const NamedWork& named) {
  Tried tried{named.name, {}, {}, false, {}};
  CGRT_ASSIGN_OR_RETURN(tried.first, named.make(arena));
  CGRT_ASSIGN_OR_RETURN(tried.second, named.make(arena));
  Requests requests;
  CGRT_RETURN_IF_ERROR(tried.first.launch(LaunchTarget::into(requests)));
  tried.needs_room = requests.has_clusters || requests.is_cooperative;
  for (const Work* work : {&tried.first, &tried.second}) {
    CGRT_RETURN_IF_ERROR(poison(arena.stream(), *work));
    CGRT_RETURN_IF_ERROR(work->launch(arena.stream()));
  }
  CGRT_ASSIGN_OR_RETURN(tried.expected, found(arena.stream(), tried.first));
  CGRT_RETURN_IF_ERROR(expect(arena.stream(), tried, tried.second));
  return tried;
}

// Blocks that each fill a multiprocessor by its shared memory, until they are released.
class Holder {
 public:
  static absl::StatusOr<Holder> create() {
    CGRT_ASSIGN_OR_RETURN(const int bytes, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    for (const KernelRef kernel : {KernelRef(hold_kernel()), KernelRef(meet_kernel())}) {
      CGRT_RETURN_IF_ERROR(set_max_shared_bytes(kernel, kDevice, static_cast<std::uint32_t>(bytes)));
      CGRT_RETURN_IF_ERROR(preload(kernel, kDevice));
    }
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
    CGRT_ASSIGN_OR_RETURN(PinnedBuffer memory, PinnedBuffer::create(kDevice, sizeof(Hold)));
    return Holder(std::move(stream), std::move(memory), static_cast<std::uint32_t>(bytes));
  }
  Holder(Holder&&) = default;
  ~Holder() {
    if (memory_.data() == nullptr) return;  // moved from
    release();
    wait().IgnoreError();
  }

  // Whether all blocks run.
  absl::StatusOr<bool> hold(std::uint32_t blocks, std::uint64_t nanoseconds) {
    std::memset(memory_.data(), 0, sizeof(Hold));
    blocks_ = blocks;
    CGRT_RETURN_IF_ERROR(launch(stream_.ref(), config(blocks), hold_kernel(), memory_.as<Hold>(), nanoseconds));
    const Clock::time_point begin = Clock::now();
    while (Clock::now() - begin < kLimit) {
      if (all_begun()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  void release() { write(memory_.as<Hold>()->released, 1); }
  // Of blocks that fill a multiprocessor each.
  LaunchConfig config(std::uint32_t blocks) const { return {.grid = blocks, .block = 32, .shared_bytes = bytes_}; }
  absl::StatusOr<bool> is_over() const { return stream_.ref().is_complete(); }
  bool gave_up() const { return read(memory_.as<Hold>()->gave_up) != 0; }
  absl::Status wait() const { return stream_.ref().synchronize(); }

 private:
  Holder(Stream stream, PinnedBuffer memory, std::uint32_t bytes)
      : stream_(std::move(stream)), memory_(std::move(memory)), bytes_(bytes) {}
  static std::uint32_t read(const volatile std::uint32_t& word) { return word; }
  static void write(volatile std::uint32_t& word, std::uint32_t value) { word = value; }
  bool all_begun() const {
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      if (read(memory_.as<Hold>()->begun[block]) == 0) return false;
    }
    return true;
  }

  Stream stream_;
  PinnedBuffer memory_;
  std::uint32_t bytes_, blocks_ = 0;
};

// Whether kernels of two streams run at once here: not where launches block, for one.
absl::StatusOr<bool> streams_overlap(Holder& holder, const Work& small) {
  constexpr std::uint64_t kShort = 1'000'000'000;
  CGRT_ASSIGN_OR_RETURN(const Stream beside, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(const bool is_held, holder.hold(1, kShort));
  CGRT_RETURN_IF_ERROR(small.launch(beside.ref()));
  CGRT_ASSIGN_OR_RETURN(const bool ended, ends(beside.ref(), std::chrono::milliseconds(500)));
  CGRT_ASSIGN_OR_RETURN(const bool is_over, holder.is_over());
  holder.release();
  CGRT_RETURN_IF_ERROR(holder.wait());
  return is_held && ended && !is_over;
}

// That a hang would be seen: this kernel ends only when all multiprocessors are free.
class Control {
 public:
  static absl::StatusOr<Control> create(Arena& arena) {
    CGRT_ASSIGN_OR_RETURN(void* const begun, arena.output(4));
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
    return Control(static_cast<std::uint32_t*>(begun), std::move(stream));
  }
  absl::Status check_does_not_end(const Holder& holder, std::uint32_t blocks) const {
    CGRT_RETURN_IF_ERROR(launch(stream_.ref(), holder.config(blocks), meet_kernel(), begun_, kMaxHeld));
    CGRT_ASSIGN_OR_RETURN(const bool ended, ends(stream_.ref(), std::chrono::milliseconds(300)));
    return ended ? absl::InternalError("ended: multiprocessors are not held") : absl::OkStatus();
  }
  absl::StatusOr<bool> does_end() const { return ends(stream_.ref()); }

 private:
  Control(std::uint32_t* begun, Stream stream) : begun_(begun), stream_(std::move(stream)) {}
  std::uint32_t* begun_;
  Stream stream_;
};

// What waits for room has a stream of its own.
absl::Status check_beside(Report& report, Arena& arena, const std::vector<Tried>& all) {
  CGRT_ASSIGN_OR_RETURN(const int sms, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const auto blocks = static_cast<std::uint32_t>(sms) - 1;
  if (blocks == 0 || blocks > std::size(Hold{}.begun)) {
    return absl::UnimplementedError(absl::StrCat(sms, " multiprocessors: none can be held, or too many"));
  }
  CGRT_ASSIGN_OR_RETURN(Holder holder, Holder::create());
  CGRT_ASSIGN_OR_RETURN(const bool overlap, streams_overlap(holder, all.back().first));
  if (!overlap) {
    return absl::FailedPreconditionError(
        "kernels of two streams do not run at once here (CUDA_LAUNCH_BLOCKING, or a tool that orders launches), so "
        "none "
        "was tried beside another");
  }
  CGRT_ASSIGN_OR_RETURN(Stream beside, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(const Control control, Control::create(arena));
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
    if (all[i].needs_room) streams.push_back(std::move(stream));
    CGRT_RETURN_IF_ERROR(poison(arena.stream(), all[i].first));
  }
  CGRT_RETURN_IF_ERROR(arena.stream().synchronize());
  CGRT_ASSIGN_OR_RETURN(const bool is_held, holder.hold(blocks, kMaxHeld));
  if (!is_held) return absl::InternalError(absl::StrCat(blocks, " blocks do not run at once"));
  bool is_hung = false;
  for (const Tried& tried : all) {
    if (tried.needs_room || is_hung) continue;
    CGRT_RETURN_IF_ERROR(tried.first.launch(beside.ref()));
    CGRT_ASSIGN_OR_RETURN(const bool ended, ends(beside.ref()));
    is_hung = !ended;
    report.check(absl::StrCat(tried.name, " beside a kernel that leaves it one multiprocessor"),
                 ended ? absl::OkStatus() : absl::DeadlineExceededError("does not end before that kernel does"));
  }
  if (!is_hung)
    report.check("what needs all multiprocessors beside it", control.check_does_not_end(holder, blocks + 1));
  std::size_t next = 0;
  for (const Tried& tried : all) {
    if (tried.needs_room) CGRT_RETURN_IF_ERROR(tried.first.launch(streams[next++].ref()));
  }
  if (holder.gave_up()) return absl::InternalError("took so long that the multiprocessors were no longer held");
  holder.release();
  streams.push_back(std::move(beside));
  for (const Stream& stream : streams) {
    CGRT_ASSIGN_OR_RETURN(const bool ended, ends(stream.ref()));
    if (!ended) leave_hung(report, "what waited for room, when the other kernel has ended");
  }
  CGRT_ASSIGN_OR_RETURN(const bool control_ended, control.does_end());
  if (!control_ended) leave_hung(report, "what needs all multiprocessors, when it has them");
  for (const Tried& tried : all) {
    if (is_hung) break;
    report.check(absl::StrCat(tried.name, " has the result that it has alone"),
                 expect(arena.stream(), tried, tried.first));
  }
  return holder.wait();
}

// `runs` launches of a graph of both, or of all, side by side.
absl::Status check_branches(Report& report, Arena& arena, const std::string& name,
                            const std::vector<const Tried*>& some, int runs) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  for (const Tried* tried : some) {
    for (const Work* work : {&tried->first, &tried->second}) {
      Cursor branch = graph.cursor();
      CGRT_RETURN_IF_ERROR(work->launch(branch));
    }
  }
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  for (int run = 0; run < runs; ++run) {
    for (const Tried* tried : some) {
      CGRT_RETURN_IF_ERROR(poison(arena.stream(), tried->first));
      CGRT_RETURN_IF_ERROR(poison(arena.stream(), tried->second));
    }
    CGRT_RETURN_IF_ERROR(exec.launch(arena.stream()));
    CGRT_ASSIGN_OR_RETURN(const bool ended, ends(arena.stream()));
    if (!ended) leave_hung(report, absl::StrCat(name, ", run ", run));
  }
  for (const Tried* tried : some) {
    CGRT_RETURN_IF_ERROR(expect(arena.stream(), *tried, tried->first));
    CGRT_RETURN_IF_ERROR(expect(arena.stream(), *tried, tried->second));
  }
  return absl::OkStatus();
}

// Code of this build has clusters where the device has them (a whole one, not a slice), or nothing above would have
// tried them.
absl::Status check_clusters(const std::vector<Tried>& all) {
  CGRT_ASSIGN_OR_RETURN(const int major, kDevice.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CGRT_ASSIGN_OR_RETURN(const int sms, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  if (major < 9 || sms < 100) return absl::OkStatus();
  for (const Tried& tried : all) {
    if (tried.needs_room) return absl::OkStatus();
  }
  return absl::InternalError("no plan has clusters");
}

absl::Status check_all(Report& report) {
  CGRT_ASSIGN_OR_RETURN(Arena arena, Arena::create(report.is_simulated() ? 256 : 1));
  std::vector<Tried> all;
  for (const NamedWork& named : residency_works()) {
    absl::StatusOr<Tried> tried = try_alone(arena, named);
    if (absl::IsUnimplemented(tried.status())) {
      std::printf("residency: %s is skipped. %s\n", named.name.c_str(), tried.status().ToString().c_str());
      continue;
    }
    report.check(absl::StrCat(named.name, " alone"), tried.status());
    if (tried.ok()) all.push_back(*std::move(tried));
  }
  if (all.empty()) return absl::InternalError("nothing can be launched");
  report.check("clusters", check_clusters(all));
  if (!report.is_simulated()) CGRT_RETURN_IF_ERROR(check_beside(report, arena, all));
  const int runs = report.is_simulated() ? 1 : 40;
  std::vector<const Tried*> together;
  for (const Tried& tried : all) {
    together.push_back(&tried);
    const std::string name = absl::StrCat(tried.name, " twice side by side");
    report.check(name, check_branches(report, arena, name, {&tried}, runs));
  }
  return check_branches(report, arena, "all side by side", together, runs);
}

}  // namespace

void check_residency(Report& report) { report.check("residency", check_all(report)); }

}  // namespace cgrt::testing
