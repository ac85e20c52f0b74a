#include "again.h"

#include <sys/personality.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cgrt/base/text_file.h"

namespace graphdump {

void run_again_without_randomization() {
  constexpr char kDone[] = "CGRT_GRAPHDUMP_ADDRESSES";  // in the environment: what this has been done for
  if (std::getenv(kDone) != nullptr) return;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "rb");
  if (file == nullptr) return;
  absl::StatusOr<std::string> text = cgrt::read_text(file, "/proc/self/cmdline");
  std::fclose(file);
  if (!text.ok()) return;
  std::vector<char*> arguments;  // each ends in a 0
  for (std::size_t at = 0; at < text->size(); at = text->find('\0', at) + 1) arguments.push_back(text->data() + at);
  arguments.push_back(nullptr);
  constexpr unsigned long kAsk = 0xffffffff;
  const int now = personality(kAsk);
  if (now == -1 || personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) == -1) return;
  setenv(kDone, "fixed", 1);
  execv("/proc/self/exe", arguments.data());
}

}  // namespace graphdump
