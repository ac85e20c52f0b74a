// The library that `graphdump run` preloads (LD_PRELOAD) into every process of the command. Most of these know no CUDA,
// so it is small and needs nothing: it waits until a function of the driver is looked up, and then loads the recorder,
// which says what is handed out in its place.
//
// Programs find the driver in three ways: the CUDA runtime and most others ask dlsym() for cuGetProcAddress_v2 or for a
// function; those linked against libcuda.so.1 call its symbols, which are exported here as well.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "inject/environment.h"

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
  const char* const path = std::getenv(graphdump::kLibraryVariable);
  if (path == nullptr) return nullptr;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return reinterpret_cast<Replace>(real_dlsym(library, "graphdump_replace"));
  std::fprintf(stderr, "graphdump: nothing is recorded of process %d: %s\n", getpid(), dlerror());
  return nullptr;
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
// Each exported function jumps to where its slot says: at first to code that looks the driver's up, on the first call,
// since the library that calls may have been loaded with the driver long after this one. It keeps the arguments: of
// the functions in the list all are integers and pointers.
extern "C" [[gnu::used]] void graphdump_fill(const char* name, void** slot) {
  if (real_dlsym == nullptr) real_dlsym = find_dlsym();
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const function = real_dlsym(library != nullptr ? library : RTLD_NEXT, name);
  if (function == nullptr) std::abort();  // as the loader ends a program that calls what no library has
  *slot = replace(name, function);
}
#define GRAPHDUMP_EXPORT(name)                                                                                  \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n  endbr64\n  jmp *slot_" #name          \
      "(%rip)\n.size " #name ", .-" #name "\nfill_" #name                                                       \
      ":\n  endbr64\n  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n  push %rax\n" \
      "  lea name_" #name "(%rip), %rdi\n  lea slot_" #name                                                     \
      "(%rip), %rsi\n  call graphdump_fill\n"                                                                   \
      "  pop %rax\n  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n  jmp *slot_" #name    \
      "(%rip)\n.section .rodata\nname_" #name ": .asciz \"" #name "\"\n.data\n.balign 8\nslot_" #name           \
      ": .quad fill_" #name "\n.text\n");
#define GRAPHDUMP_HOOK(name, after, ...) GRAPHDUMP_EXPORT(name)
#define GRAPHDUMP_HOOK_AROUND(name, before, after, ...) GRAPHDUMP_EXPORT(name)
#define GRAPHDUMP_LAUNCH_HOOK(name, ...) GRAPHDUMP_EXPORT(name)
#include "inject/hooked.def"
#undef GRAPHDUMP_HOOK
#undef GRAPHDUMP_HOOK_AROUND
#undef GRAPHDUMP_LAUNCH_HOOK
#endif
