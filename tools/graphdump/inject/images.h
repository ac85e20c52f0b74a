// The images of code that were loaded into this process, and which of them a function is from. CUPTI tells each as it
// is loaded, but not as what: cuModuleLoad and its kind are hooked, so that one which is loaded during such a call is
// known to be that module; of the others, as libraries of kernels are, the names and the code decide. Thread-safe.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace graphdump::images {

// CUPTI's view: a cubin was loaded by a call of this thread. It is copied.
void on_loaded(std::string_view cubin);

// The process's: this thread calls what loads a module, and that has returned. `image`: what was given to it; null: a
// file was.
void before_load();
void after_load(CUmodule module, const void* image);
void before_unload(CUmodule module);
void after_unload(CUresult result);

// The image of a function of the current context, valid for the life of the process. kNotFound: none that was loaded
// has it, or it is not certain which one it is.
absl::StatusOr<std::string_view> image_of(CUfunction function, const std::string& symbol);

}  // namespace graphdump::images
