// NAME-PROCESS.session: what the recorder counts in a process, in memory that is this file's. So the counts are on disk
// whenever the process ends, however it ends, and cost an addition each. `graphdump run` reads the file afterwards.
//
// Plain: shared by the injected library and graphdump.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace graphdump {

inline constexpr char kSessionSuffix[] = ".session";
inline constexpr std::uint64_t kSessionMagic = 0x31736e7364706467;  // "gdpdsns1"
inline constexpr std::uint32_t kMaxExecs = 1 << 16;                 // the file is sparse: it takes what is used

// Why nodes of an executable that were set one by one are not followed (followed.h): the first reason.
enum class NotFollowed : std::uint32_t {
  kNone,
  kNoFile,
  kGraphDestroyed,
  kGraphChanged,
  kChildGraph,
  kNoClone,
  kRefused,
  kUpdated,
  kNotRead,
};

// An executable graph, in order of instantiation.
struct ExecRecord {
  std::atomic<std::uint64_t> launches, uploads, updates, refused_updates, set_params;
  std::atomic<std::uint64_t> set_enabled;  // calls that enabled or disabled a node
  std::atomic<NotFollowed> not_followed;
  std::uint64_t nodes;
  std::int64_t thread;           // that instantiated it, by the kernel's number
  std::int64_t capture_thread;   // that began the capture; 0: it was not captured, or cloned since
  std::uint64_t capture_stream;  // the handle
  char file[160];                // the graph's, without folder; empty: none was written
  char why_no_file[216];         // empty: there is one
};

struct SessionHeader {
  std::uint64_t magic;
  std::int64_t process;
  char program[64];
  std::atomic<std::uint32_t> execs;  // may be more than kMaxExecs: those have no record
  // Outside of graphs and captures.
  std::atomic<std::uint64_t> kernel_launches;
  std::atomic<std::uint64_t> kernel_launch_ns;  // of the host, in the driver
  // Of all that ran on the devices, from the first start to the last end, and the part with something running; 0: not
  // measured.
  std::uint64_t device_span_ns, device_busy_ns;
  // Sentences for the user, a line each.
  std::atomic<std::uint32_t> notes_bytes;
  char notes[8192];
};

struct Session {
  SessionHeader header;
  ExecRecord execs[kMaxExecs];
};
static_assert(std::is_standard_layout_v<Session> && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace graphdump
