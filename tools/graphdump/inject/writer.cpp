#include "inject/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cgrt/inspect/json.h"
#include "inject/session.h"

namespace graphdump::writer {
namespace {

struct Job {
  cgrt::ir::GraphIr graph;
  std::string name;
  ExecRecord* record;
  std::function<bool(const cgrt::ir::GraphIr&)> is_wanted;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;  // the first is being written
  bool is_running = false;
};
State& state() {
  static State& value = *new State();
  return value;
}

template <std::size_t kSize>
void put(char (&to)[kSize], const std::string& text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// False with errno.
bool write_to(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

// Some filesystems cannot refuse to replace: EINVAL.
bool move_to(const std::string& from, const std::string& to) {
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ||
         (errno == EINVAL && rename(from.c_str(), to.c_str()) == 0);
}

// Why the text was not written; empty: it was. A process that ends meanwhile leaves no half of a file by this name.
std::string write_text(const std::string& path, const std::string& text) {
  const std::string part = path + kPartSuffix;
  const int file = open(part.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return std::strerror(errno);
  const absl::Cleanup close_file = [&] { close(file); };
  if (write_to(file, text) && move_to(part, path)) return "";
  const int error = errno;
  unlink(part.c_str());
  return std::strerror(error);
}

void write_one(const Job& job) {
  static std::uint64_t written_bytes = 0;  // of this thread alone
  if (job.is_wanted != nullptr && !job.is_wanted(job.graph)) return;
  const std::string text = cgrt::inspect::to_json(job.graph);
  std::string why;
  if (limits().max_bytes != 0 && written_bytes + text.size() > limits().max_bytes) {
    why = "--max-mb reached";
  } else {
    written_bytes += text.size();
    why = write_text(absl::StrCat(session_folder(), "/", job.name), text);
  }
  if (job.record == nullptr) return;
  if (why.empty()) {
    put(job.record->file, job.name);
  } else {
    put(job.record->why_no_file, why);
  }
}

void run() {
  pthread_setname_np(pthread_self(), "graphdump");
  State& all = state();
  std::unique_lock lock(all.mutex);
  for (;;) {
    all.changed.wait(lock, [&] { return !all.jobs.empty(); });
    const Job& job = all.jobs.front();  // stays in its place while others come
    lock.unlock();
    write_one(job);
    lock.lock();
    all.jobs.pop_front();
    all.changed.notify_all();
  }
}

// A child process that fork() has made has no thread that writes, and the jobs are its parent's.
void before_fork() { state().mutex.lock(); }
void after_fork_in_parent() { state().mutex.unlock(); }
void after_fork_in_child() {
  State& all = state();
  all.jobs.clear();
  all.is_running = false;
  new (&all.changed) std::condition_variable();  // the old one counts a thread that is not here
  all.mutex.unlock();
}

// The process's signals are for its own threads.
void start() {
  sigset_t all_signals, before;
  sigfillset(&all_signals);
  pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  std::thread(&run).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit(&flush);
    pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  });
}

}  // namespace

void write(cgrt::ir::GraphIr graph, std::string name, ExecRecord* record,
           std::function<bool(const cgrt::ir::GraphIr&)> is_wanted) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.jobs.push_back({std::move(graph), std::move(name), record, std::move(is_wanted)});
  if (!std::exchange(all.is_running, true)) start();
  all.changed.notify_all();
}

void flush() {
  State& all = state();
  std::unique_lock lock(all.mutex);
  all.changed.wait(lock, [&] { return all.jobs.empty(); });
}

}  // namespace graphdump::writer
