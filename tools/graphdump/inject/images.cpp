#include "inject/images.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/cubin.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/saved/hash.h"

namespace graphdump::images {
namespace {

namespace driver = cgrt::driver;
using cgrt::internal::Cubin;

struct Image {
  std::string bytes;
  Cubin cubin;          // views of `bytes`
  int other_loads = 0;  // those that no module is known of
};

struct State {
  std::mutex mutex;
  std::list<Image> images;  // different ones; they stay in their place
  std::map<cgrt::saved::Hash, Image*> by_hash;
  absl::flat_hash_map<CUmodule, std::vector<Image*>> modules;  // that were loaded during a hooked call
};
// Never destroyed: CUPTI calls after main has returned.
State& state() {
  static State& value = *new State();
  return value;
}

// What CUPTI has told of this thread since before_load(); null: outside of such calls.
thread_local std::vector<Image*>* loaded = nullptr;

// The module that this thread is unloading.
using Unloaded = decltype(State::modules)::node_type;
thread_local Unloaded* unloaded = nullptr;

Image* add(State& all, std::string_view bytes) {
  const cgrt::saved::Hash hash = cgrt::saved::hash_of(std::as_bytes(std::span(bytes)));
  const std::lock_guard lock(all.mutex);
  Image*& known = all.by_hash[hash];
  if (known == nullptr) {
    known = &all.images.emplace_back(Image{.bytes = std::string(bytes), .cubin = {}});
    if (absl::StatusOr<Cubin> cubin = Cubin::read(known->bytes); cubin.ok()) known->cubin = *std::move(cubin);
  }
  return known;
}

// The one that a call was given, where CUPTI tells of none.
Image* add_given(State& all, const void* image) {
  const std::uint64_t bytes = image != nullptr ? cgrt::internal::image_bytes(image) : 0;
  if (bytes == 0) return nullptr;
  return add(all, {static_cast<const char*>(image), bytes});
}

// Whether either runs the same: the driver puts addresses into code that has relocations, and variables are a module's
// own.
bool are_alike(const Image& a, const Image& b, const std::string& symbol) {
  const Cubin::Function *const x = a.cubin.find(symbol), *const y = b.cubin.find(symbol);
  return a.cubin.variables.empty() && b.cubin.variables.empty() && !x->has_relocations && !y->has_relocations &&
         x->code == y->code && x->info == y->info && x->constants == y->constants && x->shared_bytes == y->shared_bytes;
}

absl::StatusOr<std::vector<std::string>> functions_of(CUmodule module) {
  const driver::Api& api = driver::api();
  unsigned count = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(api.ModuleGetFunctionCount(&count, module), "cuModuleGetFunctionCount"));
  std::vector<CUfunction> functions(count);
  CGRT_RETURN_IF_ERROR(
      driver::to_status(api.ModuleEnumerateFunctions(functions.data(), count, module), "cuModuleEnumerateFunctions"));
  std::vector<std::string> names;
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    CGRT_RETURN_IF_ERROR(driver::to_status(api.FuncGetName(&name, function), "cuFuncGetName"));
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Those that have the function, and may be the module.
std::vector<const Image*> candidates_for(State& all, CUmodule module, const std::string& symbol) {
  std::vector<const Image*> candidates;
  const std::lock_guard lock(all.mutex);
  const auto known = all.modules.find(module);
  if (known != all.modules.end()) {
    // A fatbin that was given is no cubin, and all that is known.
    for (const Image* one : known->second) {
      if (one->cubin.find(symbol) != nullptr || one->cubin.functions.empty()) candidates.push_back(one);
    }
    return candidates;
  }
  for (const Image& one : all.images) {
    if (one.other_loads > 0 && one.cubin.find(symbol) != nullptr) candidates.push_back(&one);
  }
  return candidates;
}

bool has_functions(const Image& image, const std::vector<std::string>& names) {
  return std::equal(names.begin(), names.end(), image.cubin.functions.begin(), image.cubin.functions.end(),
                    [](const std::string& name, const Cubin::Function& one) { return name == one.symbol; });
}

}  // namespace

void on_loaded(std::string_view cubin) {
  State& all = state();
  Image* const image = add(all, cubin);
  if (loaded != nullptr) {
    loaded->push_back(image);
  } else {
    const std::lock_guard lock(all.mutex);
    ++image->other_loads;
  }
}

void before_load() {
  if (loaded == nullptr) loaded = new std::vector<Image*>();
  loaded->clear();
}

void after_load(CUmodule module, const void* image) {
  State& all = state();
  std::vector<Image*> images = loaded != nullptr ? *loaded : std::vector<Image*>();
  delete std::exchange(loaded, nullptr);
  if (module == nullptr) return;
  if (images.empty()) {
    if (Image* const given = add_given(all, image); given != nullptr) images.push_back(given);
  }
  const std::lock_guard lock(all.mutex);
  if (images.empty()) {
    all.modules.erase(module);
  } else {
    all.modules[module] = std::move(images);
  }
}

void before_unload(CUmodule module) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  unloaded = new Unloaded(all.modules.extract(module));
}

void after_unload(CUresult result) {
  const std::unique_ptr<Unloaded> module(std::exchange(unloaded, nullptr));
  if (module == nullptr || result == CUDA_SUCCESS) return;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.modules.insert(std::move(*module));
}

absl::StatusOr<std::string_view> image_of(CUfunction function, const std::string& symbol) {
  CUmodule module = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().FuncGetModule(&module, function), "cuFuncGetModule"));
  std::vector<const Image*> candidates = candidates_for(state(), module, symbol);
  if (candidates.empty()) {
    return absl::NotFoundError(
        "It was not seen being loaded. Run the command with CUPTI (the toolkit's package cuda-cupti-13-0 or the Python "
        "package nvidia-cuda-cupti), and without another tool that holds it.");
  }
  const auto are_one = [&] {
    return std::all_of(candidates.begin(), candidates.end(), [&](const Image* one) {
      return one == candidates.front() || are_alike(*one, *candidates.front(), symbol);
    });
  };
  const std::size_t count = candidates.size();
  if (!are_one()) {
    CGRT_ASSIGN_OR_RETURN(const std::vector<std::string> names, functions_of(module));
    std::erase_if(candidates, [&](const Image* one) { return !has_functions(*one, names); });
  }
  if (candidates.empty() || !are_one()) {
    return absl::NotFoundError(absl::StrCat("It is one of ", count,
                                            " images that have a kernel of this name, and it is not certain which one. "
                                            "Give the kernels names that differ."));
  }
  return candidates.front()->bytes;
}

}  // namespace graphdump::images
