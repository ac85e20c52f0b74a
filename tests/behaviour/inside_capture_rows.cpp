// What every public operation does inside a capture: one row for each, generated from tests/operations.
//
// A line says where the operation's own stream is: "captured" is that very stream, "beside" a stream that is not
// captured while another one is. Then, for each capture mode, the answer of the call and of the capture: on the
// capturing thread, and on another one. An answer is the CUresult, or else the status code.
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "operations/operations.h"

namespace cgrt::testing {
namespace {

std::string answer(const absl::Status& status) {
  const std::optional<CUresult> result = cuda_result(status);
  if (result.has_value()) return absl::StrCat(static_cast<int>(*result));
  return status.ok() ? "0" : absl::StatusCodeToString(status.code());
}

// The answers of the operation and of the capture in which it is made.
std::string inside_capture(const Operation& operation, bool is_own_stream, CaptureMode mode, bool is_other_thread) {
  Objects objects = operation.objects();
  const absl::StatusOr<Stream> beside = Stream::create(objects.device);
  if (!beside.ok()) return answer(beside.status());
  absl::Status call;
  const absl::Status captured = capture(
                                    is_own_stream ? objects.stream.ref() : beside->ref(),
                                    [&](StreamRef s) -> absl::Status {
                                      CGRT_RETURN_IF_ERROR(objects.step(s));
                                      if (is_other_thread) {
                                        std::thread([&] { call = operation.run(objects); }).join();
                                      } else {
                                        call = operation.run(objects);
                                      }
                                      return absl::OkStatus();
                                    },
                                    mode)
                                    .status();
  static_cast<void>(objects.stream.ref().synchronize());
  static_cast<void>(objects.side.ref().synchronize());
  collect_released();
  return absl::StrCat(answer(call), "/", answer(captured));
}

absl::Status note_all(Notes& notes, const Operation& operation) {
  if (operation.check != nullptr) CGRT_RETURN_IF_ERROR(operation.check());
  for (const bool is_own_stream : {true, false}) {
    std::string line = is_own_stream ? "captured:" : "beside:";
    const std::pair<const char*, CaptureMode> modes[] = {{"thread-local", CaptureMode::kThreadLocal},
                                                         {"global", CaptureMode::kGlobal},
                                                         {"relaxed", CaptureMode::kRelaxed}};
    for (const auto& [name, mode] : modes) {
      absl::StrAppend(&line, mode == CaptureMode::kThreadLocal ? " " : ", ", name);
      for (const bool is_other_thread : {false, true}) {
        absl::StrAppend(&line, " ", inside_capture(operation, is_own_stream, mode, is_other_thread));
      }
    }
    notes.line(std::move(line));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Behaviour> all_behaviours() {
  std::vector<Behaviour> all = behaviours();
  std::map<std::string, int> seen;
  for (const Operation& operation : operations()) {
    const std::string name = operation.name;
    if (name.starts_with("and::")) continue;
    const int number = ++seen[name];
    all.push_back({absl::StrCat("inside a capture: ", name, number == 1 ? "" : absl::StrCat(" (", number, ")")),
                   [&operation](World&, Notes& notes) { return note_all(notes, operation); }});
  }
  return all;
}

}  // namespace cgrt::testing
