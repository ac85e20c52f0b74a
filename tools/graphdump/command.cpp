#include "command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/json.h"
#include "cgrt/ir/describe.h"

namespace graphdump {

absl::StatusOr<cgrt::ir::GraphIr> read_graph(const std::string& file) {
  return file == "-" ? cgrt::inspect::read_stream(stdin, "standard input") : cgrt::inspect::read_file(file);
}

int print(const std::string& out, const std::string& err, ExitStatus status) {
  std::fwrite(err.data(), 1, err.size(), stderr);
  const bool is_written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  if (is_written || errno == EPIPE) return status;
  std::fprintf(stderr, "graphdump: standard output cannot be written: %s\n", std::strerror(errno));
  return kError;
}

int fail(std::string_view sentence) {
  return print("", absl::StrCat("graphdump: ", cgrt::ir::printable(sentence), "\n"), kError);
}

int fail(const absl::Status& status) {
  return fail(std::string_view(status.message().data(), status.message().size()));
}

void Lines::add(const std::string& line) {
  ++count_;
  if (limit_ == 0 || count_ <= limit_) absl::StrAppend(&text_, line, "\n");
}

std::string Lines::finish() && {
  if (limit_ != 0 && count_ > limit_) {
    absl::StrAppend(&text_, "and ", cgrt::counted(count_ - limit_, "line"), " more: --limit 0 prints all\n");
  }
  return std::move(text_);
}

}  // namespace graphdump
