// The library that `graphdump run` preloads (LD_PRELOAD) into every process of the command. Most of these know no CUDA,
// so it is small and needs nothing: it waits until a function of the driver is looked up, and then loads the recorder,
// which says what is handed out in its place.
//
// Programs find the driver in three ways: the CUDA runtime and most others ask dlsym() for cuGetProcAddress_v2 or for a
// function; those linked against libcuda.so.1 call its symbols, which are exported here as well.

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>

namespace {

using Lookup = void* (*)(void* library, const char* name);
using Replace = void* (*)(const char* name, void* function, Lookup real_dlsym);

// glibc's own: since 2.34 in the C library, before that in libdl.
Lookup find_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version)) {
      return reinterpret_cast<Lookup>(found);
    }
  }
  std::abort();  // not glibc: nothing could be looked up
}
Lookup real_dlsym = nullptr;

Replace load_replace() {
  const char* const path = std::getenv("GRAPHDUMP_LIBRARY");
  void* const library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  return library != nullptr ? reinterpret_cast<Replace>(real_dlsym(library, "graphdump_replace")) : nullptr;
}

thread_local bool is_loading = false;  // the recorder's library looks up functions, too

void* replace(const char* name, void* function) {
  if (is_loading) return function;
  is_loading = true;
  static const Replace of_recorder = load_replace();
  is_loading = false;
  return of_recorder != nullptr ? of_recorder(name, function, real_dlsym) : function;
}

bool is_of_driver(const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

}  // namespace

// Where the name is not the driver's this must be a jump, not a call (so -O2): dlsym(RTLD_NEXT, ...) asks who calls.
extern "C" [[gnu::visibility("default")]] void* dlsym(void* handle, const char* name) noexcept {
  if (real_dlsym == nullptr) real_dlsym = find_dlsym();
  if (!is_of_driver(name)) return real_dlsym(handle, name);
  void* const function = real_dlsym(handle, name);
  return function != nullptr ? replace(name, function) : nullptr;
}

#ifdef __x86_64__
// The exported functions jump to where their slot says: at first to what looks up the driver's.
extern "C" {
#define GRAPHDUMP_HOOK(name, after, ...) [[gnu::visibility("hidden")]] void* graphdump_slot_##name = nullptr;
#define GRAPHDUMP_LAUNCH_HOOK(name, ...) [[gnu::visibility("hidden")]] void* graphdump_slot_##name = nullptr;
#include "inject/hooked.def"
#undef GRAPHDUMP_HOOK
#undef GRAPHDUMP_LAUNCH_HOOK
}
#define GRAPHDUMP_EXPORT(name)                                                                                   \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n  endbr64\n  jmp *graphdump_slot_" #name \
      "(%rip)\n.size " #name ", .-" #name "\n");
#define GRAPHDUMP_HOOK(name, after, ...) GRAPHDUMP_EXPORT(name)
#define GRAPHDUMP_LAUNCH_HOOK(name, ...) GRAPHDUMP_EXPORT(name)
#include "inject/hooked.def"
#undef GRAPHDUMP_HOOK
#undef GRAPHDUMP_LAUNCH_HOOK

namespace {

// Before the program starts: one that is linked against the driver has it loaded by now, behind this library.
[[gnu::constructor]] void fill_slots() {
  if (real_dlsym == nullptr) real_dlsym = find_dlsym();
  const auto fill = [](const char* name, void** slot) {
    void* const function = real_dlsym(RTLD_NEXT, name);
    if (function != nullptr) *slot = replace(name, function);
  };
#define GRAPHDUMP_HOOK(name, after, ...) fill(#name, &graphdump_slot_##name);
#define GRAPHDUMP_LAUNCH_HOOK(name, ...) fill(#name, &graphdump_slot_##name);
#include "inject/hooked.def"
#undef GRAPHDUMP_HOOK
#undef GRAPHDUMP_LAUNCH_HOOK
}

}  // namespace
#endif
