// The version of this copy of cgrt. CMake reads it from here; docs/install.md says what a version promises.
//
//   static_assert(CGRT_VERSION_MAJOR == 0 && CGRT_VERSION_MINOR >= 2);
//   std::puts("made with cgrt " CGRT_VERSION);
#pragma once

#define CGRT_VERSION_MAJOR 0
#define CGRT_VERSION_MINOR 2
#define CGRT_VERSION_PATCH 0

#define CGRT_INTERNAL_TEXT_OF(x) #x
#define CGRT_INTERNAL_DOTTED(x, y, z) CGRT_INTERNAL_TEXT_OF(x) "." CGRT_INTERNAL_TEXT_OF(y) "." CGRT_INTERNAL_TEXT_OF(z)

#define CGRT_VERSION CGRT_INTERNAL_DOTTED(CGRT_VERSION_MAJOR, CGRT_VERSION_MINOR, CGRT_VERSION_PATCH)
