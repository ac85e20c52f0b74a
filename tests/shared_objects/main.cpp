// shared_objects_test A.so B.so: two shared objects, each with its own copy of this library and of the
// CUDA runtime, in one process. Exit 0: each ran its own kernel; 77: no device.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  int (*run[2])() = {};
  for (int i = 0; i < 2; ++i) {
    void* object = argc == 3 ? dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (object == nullptr) {
      std::printf("%s\n", argc == 3 ? dlerror() : "usage: shared_objects_test A.so B.so");
      return 1;
    }
    run[i] = reinterpret_cast<int (*)()>(dlsym(object, "run_twin"));
  }
  int worst = 0;
  for (int turn = 0; turn < 4; ++turn) {
    const int answer = run[turn % 2] != nullptr ? run[turn % 2]() : 1;
    if (answer == 2 && std::getenv("CGRT_REQUIRE_GPU") == nullptr) {
      std::printf("skipped: no CUDA device\n");
      return 77;
    }
    worst = answer != 0 ? 1 : worst;
  }
  std::printf(worst == 0 ? "each shared object ran its own kernel\n" : "FAILED\n");
  return worst;
}
