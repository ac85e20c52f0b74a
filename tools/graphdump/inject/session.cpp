#include "inject/session.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "inject/environment.h"

namespace graphdump {
namespace {

std::uint64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  std::uint64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : 0;
}

Session* map_session() {
  if (session_folder().empty()) return nullptr;
  const std::string path = absl::StrCat(session_folder(), "/", file_prefix(), kSessionSuffix);
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  if (file < 0) return nullptr;
  void* mapped = MAP_FAILED;
  if (ftruncate(file, sizeof(Session)) == 0) {
    mapped = mmap(nullptr, sizeof(Session), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (mapped == MAP_FAILED) {
    unlink(path.c_str());
    return nullptr;
  }
  auto* const made = static_cast<Session*>(mapped);
  made->header.process = getpid();
  std::strncpy(made->header.program, program_invocation_short_name, sizeof(made->header.program) - 1);
  made->header.magic = kSessionMagic;
  return made;
}

}  // namespace

const std::string& session_folder() {
  static const std::string& folder = *[] {
    const char* const text = std::getenv(kFolderVariable);
    return new std::string(text != nullptr ? text : "");
  }();
  return folder;
}

std::string file_prefix() { return absl::StrCat(program_invocation_short_name, "-", getpid()); }

Session* session() {
  static Session* const value = map_session();
  return value;
}

void note(const std::string& sentence) {
  Session* const to = session();
  if (to == nullptr) return;
  const std::string line = sentence + "\n";
  SessionHeader& header = to->header;
  const std::uint32_t at = header.notes_bytes.fetch_add(static_cast<std::uint32_t>(line.size()));
  if (at >= sizeof(header.notes)) return;
  std::memcpy(header.notes + at, line.data(), std::min(line.size(), sizeof(header.notes) - at));
}

const Limits& limits() {
  static const Limits value{number_in(kMaxBytesVariable), number_in(kMinNodesVariable)};
  return value;
}

}  // namespace graphdump
