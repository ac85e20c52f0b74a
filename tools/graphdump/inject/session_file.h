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
inline constexpr char kPartSuffix[] = ".part";  // behind the name of a graph's file that is being written
inline constexpr std::uint64_t kSessionMagic = 0x32736e7364706467;  // "gdpdsns2"
inline constexpr std::uint32_t kMaxExecs = 1 << 16;                 // the file is sparse: it takes what is used
inline constexpr std::uint32_t kMaxListed = 1 << 22;

// A stream that is not a handle's: those have their lowest bits 0. The per-thread one: kPerThreadStream with the
// thread's number above.
inline constexpr std::uint64_t kLegacyStream = 1, kPerThreadStream = 2, kThreadShift = 2;

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
  std::int64_t thread;                          // that instantiated it, by the kernel's number
  std::int64_t capture_thread;                  // that began the capture; 0: it was not captured, or cloned since
  std::uint64_t capture_stream;                 // the handle
  std::atomic<std::uint64_t> streams[4];        // of its launches, the first ones; 0: no more
  std::atomic<std::uint64_t> destroyed_before;  // SessionHeader::execs then; 0: it was not destroyed
  std::atomic<std::uint32_t> has_more_streams;
  std::uint32_t has_user_objects;  // one was given to the graph, or to a child of it
  // From `first_listed` on in Session::listed, one behind the other: numbers of the memory of the graph's allocations,
  // host nodes with data that is neither static nor on the stack of the thread, and nodes with such memory.
  std::uint32_t first_listed, memory_count, host_data_count, stack_node_count;
  char file[160];         // the graph's, without folder; empty: none was written
  char why_no_file[216];  // empty: there is one
};

struct SessionHeader {
  std::uint64_t magic;
  std::int64_t process;
  char program[64];
  std::atomic<std::uint32_t> execs;  // may be more than kMaxExecs: those have no record
  // Outside of graphs and captures.
  std::atomic<std::uint64_t> kernel_launches;
  std::atomic<std::uint64_t> kernel_launch_ns;  // of the host, in the driver
  std::atomic<std::uint64_t> listed;  // of Session::listed; may be more than kMaxListed: the last lists are not there
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
  std::uint64_t listed[kMaxListed];
};
static_assert(std::is_standard_layout_v<Session> && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace graphdump
