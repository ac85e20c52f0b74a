#include "cgrt/bundle/trial_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cgrt/base/status_macros.h"

namespace cgrt {
namespace {

// A message is the number of its words, and these. A question begins with what is asked, an answer with a status code.
using Words = std::vector<std::uint64_t>;
enum Question : std::uint64_t { kReplay, kUnexpected, kHashes };

constexpr absl::Duration kLoadLimit = absl::Minutes(10);
// What has been loaded once may find an address taken in another process.
constexpr int kMaxStarts = 3;

void add(Words& words, const Spans& spans) {
  words.push_back(spans.size());
  for (const Span& span : spans) {
    words.push_back(span.begin);
    words.push_back(span.end);
  }
}

Spans take_spans(const Words& words, std::size_t& at) {
  Spans spans(words[at++]);
  for (Span& span : spans) {
    span.begin = words[at++];
    span.end = words[at++];
  }
  return spans;
}

Words words_of(const TrialRequest& request) {
  Words words = {kReplay, request.graph, static_cast<std::uint64_t>(request.poison.fill), request.poison.seed};
  add(words, request.poisoned);
  add(words, request.varied);
  return words;
}

TrialRequest request_of(const Words& words) {
  TrialRequest request;
  request.graph = words[1];
  request.poison = {static_cast<Poison::Fill>(words[2]), words[3]};
  std::size_t at = 4;
  request.poisoned = take_spans(words, at);
  request.varied = take_spans(words, at);
  return request;
}

void add(Words& words, std::string_view text) {
  const std::size_t at = words.size();
  words.resize(at + 1 + (text.size() + 7) / 8);
  words[at] = text.size();
  if (!text.empty()) std::memcpy(&words[at + 1], text.data(), text.size());
}

std::string take_text(const Words& words, std::size_t& at) {
  std::string text(words[at++], '\0');
  if (!text.empty()) std::memcpy(text.data(), &words[at], text.size());
  at += (text.size() + 7) / 8;
  return text;
}

Words words_of(const absl::Status& status) {
  Words words = {static_cast<std::uint64_t>(status.code())};
  add(words, std::string_view(status.message().data(), status.message().size()));
  status.ForEachPayload([&words](absl::string_view name, const absl::Cord& content) {
    add(words, std::string_view(name.data(), name.size()));
    add(words, std::string(content));
  });
  return words;
}

absl::Status status_of(const Words& words) {
  if (words[0] == 0) return absl::OkStatus();
  std::size_t at = 1;
  absl::Status status(static_cast<absl::StatusCode>(words[0]), take_text(words, at));
  while (at < words.size()) {
    const std::string name = take_text(words, at);
    status.SetPayload(name, absl::Cord(take_text(words, at)));
  }
  return status;
}

// Waits for the other side at most until `until`.
bool move_bytes(int file, std::byte* bytes, std::size_t count, short direction, absl::Time until) {
  while (count > 0) {
    const std::int64_t left = std::max<std::int64_t>(0, absl::ToInt64Milliseconds(until - absl::Now()));
    pollfd one = {.fd = file, .events = direction, .revents = 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, 999'999)) + 1);
    if (ready == 0 && left == 0) return false;
    if (ready <= 0) {
      if (ready == 0 || errno == EINTR) continue;
      return false;
    }
    const ssize_t moved = direction == POLLIN ? read(file, bytes, count) : write(file, bytes, count);
    if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (moved <= 0) return false;
    bytes += moved;
    count -= static_cast<std::size_t>(moved);
  }
  return true;
}

bool send(int file, const Words& words, absl::Time until) {
  Words message = {words.size()};
  message.insert(message.end(), words.begin(), words.end());
  return move_bytes(file, reinterpret_cast<std::byte*>(message.data()), message.size() * 8, POLLOUT, until);
}

bool receive(int file, Words& words, absl::Time until) {
  std::uint64_t count = 0;
  if (!move_bytes(file, reinterpret_cast<std::byte*>(&count), 8, POLLIN, until)) return false;
  words.resize(count);
  return move_bytes(file, reinterpret_cast<std::byte*>(words.data()), count * 8, POLLIN, until);
}

Words answer(Trials& trials, const Words& question) {
  if (question[0] == kHashes) {
    std::vector<saved::Range> ranges;
    for (std::size_t at = 1; at + 2 < question.size(); at += 3) {
      ranges.push_back({static_cast<std::uint32_t>(question[at]), question[at + 1], question[at + 2]});
    }
    const absl::StatusOr<Words> hashes = trials.hashes(ranges);
    if (!hashes.ok()) return words_of(hashes.status());
    Words words = {0};
    words.insert(words.end(), hashes->begin(), hashes->end());
    return words;
  }
  if (question[0] == kUnexpected) {
    const absl::StatusOr<Spans> spans = trials.unexpected();
    if (!spans.ok()) return words_of(spans.status());
    Words words = {0};
    add(words, *spans);
    return words;
  }
  const absl::StatusOr<Trial> trial = trials.replay(request_of(question));
  if (!trial.ok()) return words_of(trial.status());
  Words words = {0, static_cast<std::uint64_t>(trial->end)};
  add(words, trial->left);
  add(words, trial->changed);
  return words;
}

[[noreturn]] void serve(const TrialProcess::Make& make, int from_parent, int to_parent) {
  const absl::StatusOr<std::unique_ptr<Trials>> trials = make();
  send(to_parent, words_of(trials.status()), absl::InfiniteFuture());
  Words question;
  while (trials.ok() && receive(from_parent, question, absl::InfiniteFuture())) {
    if (!send(to_parent, answer(**trials, question), absl::InfiniteFuture())) break;
  }
  _exit(0);  // what is the parent's is not flushed or ended here
}

void close_all(const int (&pipe)[2]) {
  for (const int file : pipe) {
    if (file >= 0) close(file);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trials>> TrialProcess::create(Make make, absl::Duration limit) {
  std::unique_ptr<TrialProcess> trials(new TrialProcess(std::move(make), limit));
  CGRT_RETURN_IF_ERROR(trials->start());
  return trials;
}

TrialProcess::~TrialProcess() { stop(); }

absl::Status TrialProcess::start() {
  int questions[2] = {-1, -1}, answers[2] = {-1, -1};
  const pid_t parent = getpid();
  const bool has_pipes = pipe2(questions, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0;
  child_ = has_pipes ? fork() : -1;
  if (child_ < 0) {
    const int code = errno;
    close_all(questions);
    close_all(answers);
    return absl::ResourceExhaustedError(absl::StrCat("No process for trials: ", std::strerror(code)));
  }
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int one : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) signal(one, SIG_DFL);  // no crash to report
    if (getppid() != parent) _exit(1);
    close(questions[1]);
    close(answers[0]);
    serve(make_, questions[0], answers[1]);
  }
  close(questions[0]);
  close(answers[1]);
  to_child_ = questions[1];
  from_child_ = answers[0];
  for (const int file : {to_child_, from_child_}) fcntl(file, F_SETFL, O_NONBLOCK);
  Words words;
  const bool has_answer = receive(from_child_, words, absl::Now() + kLoadLimit);
  const absl::Status status =
      has_answer ? status_of(words) : absl::AbortedError("The process for trials ended while it loaded the bundle.");
  if (!status.ok()) stop();
  return status;
}

absl::Status TrialProcess::start_again() {
  absl::Status status;
  for (int i = 0; i < kMaxStarts && child_ < 0; ++i) status = start();
  return status;
}

void TrialProcess::stop() {
  if (child_ < 0) return;
  close(to_child_);
  close(from_child_);
  kill(child_, SIGKILL);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = to_child_ = from_child_ = -1;
}

TrialProcess::End TrialProcess::ask(const Words& question, Words& answer) const {
  const absl::Time until = absl::Now() + limit_;
  if (send(to_child_, question, until) && receive(from_child_, answer, until)) return End::kAnswered;
  return absl::Now() >= until ? End::kTimeLimit : End::kDied;
}

absl::StatusOr<Trial> TrialProcess::replay(const TrialRequest& request) {
  CGRT_RETURN_IF_ERROR(start_again());
  Words words;
  const End end = ask(words_of(request), words);
  if (end != End::kAnswered) {
    stop();
    return Trial{.end = end == End::kDied ? Trial::End::kFault : Trial::End::kTimeLimit};
  }
  CGRT_RETURN_IF_ERROR(status_of(words));
  Trial trial = {.end = static_cast<Trial::End>(words[1])};
  std::size_t at = 2;
  trial.left = take_spans(words, at);
  trial.changed = take_spans(words, at);
  if (trial.end != Trial::End::kReplayed) stop();
  return trial;
}

absl::StatusOr<TrialProcess::Words> TrialProcess::ask_of_first(const Words& question) {
  CGRT_RETURN_IF_ERROR(start_again());
  Words words;
  if (ask(question, words) != End::kAnswered) {
    stop();
    return absl::FailedPreconditionError("a replay from the saved state ends its process: graphdump play says more");
  }
  CGRT_RETURN_IF_ERROR(status_of(words));
  words.erase(words.begin());
  return words;
}

absl::StatusOr<Spans> TrialProcess::unexpected() {
  CGRT_ASSIGN_OR_RETURN(const Words words, ask_of_first({kUnexpected}));
  std::size_t at = 0;
  return take_spans(words, at);
}

absl::StatusOr<std::vector<std::uint64_t>> TrialProcess::hashes(const std::vector<saved::Range>& ranges) {
  Words words = {kHashes};
  for (const saved::Range& range : ranges) words.insert(words.end(), {range.block, range.offset, range.bytes});
  return ask_of_first(words);
}

}  // namespace cgrt
