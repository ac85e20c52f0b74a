// copies_test simulator|gpu A.so B.so DIR: two shared objects that each have a copy of cgrt, in one process. Their
// graphs are written under different names into DIR, and events that one records in the other's capture are asked
// without harm. Exit 0: all is well; 77: no device.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "cgrt/device/device.h"
#include "cgrt/stream/completion.h"
#include "support/no_device.h"

namespace {

struct Plugin {
  explicit Plugin(const char* path) : object(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (object != nullptr) return;
    std::printf("%s\n", dlerror());
    std::exit(1);
  }
  template <class Function>
  Function* get(const char* name) const {
    void* const found = dlsym(object, name);
    if (found != nullptr) return reinterpret_cast<Function*>(found);
    std::printf("%s\n", dlerror());
    std::exit(1);
  }
  void* object;
};

int failures = 0;

void check(bool is_so, const char* what) {
  failures += !is_so;
  std::printf("%s %s\n", is_so ? "ok    " : "FAILED", what);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::puts("usage: copies_test simulator|gpu A.so B.so DIR");
    return 2;
  }
  const bool is_simulated = std::string(argv[1]) == "simulator";
  if (!is_simulated) {
    if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  }
  const std::filesystem::path directory = argv[4];
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const Plugin a(argv[2]), b(argv[3]);
  if (is_simulated) {
    const void* const table = a.get<const void*(const void*)>("start_simulator")(nullptr);
    b.get<const void*(const void*)>("start_simulator")(table);
  }

  for (const Plugin* plugin : {&a, &b}) plugin->get<void(const char*)>("dump_to")(directory.c_str());
  for (const Plugin* plugin : {&a, &b, &a, &b}) {
    check(plugin->get<int(int)>("instantiate_nodes")(plugin == &a ? 1 : 2) == 0, "a graph is instantiated");
  }
  long files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) files += entry.is_regular_file();
  check(files == 4, "each of four graphs has a file of its own");

  const int inside = a.get<int(int (*)(CUstream))>("capture_around")(b.get<int(CUstream)>("record_and_ask"));
  check(inside == static_cast<int>(cgrt::Completion::kCaptured), "an event is asked inside the other's capture");
  check(b.get<int()>("ask_again")() == CUDA_ERROR_INVALID_VALUE, "the event is of no capture afterwards");

  for (const Plugin* plugin : {&a, &b}) plugin->get<void(const char*)>("dump_to")("");
  if (is_simulated) a.get<void()>("stop_simulator")();
  std::fflush(stdout);
  std::_Exit(failures == 0 ? 0 : 1);  // B's table is A's, which is gone
}
