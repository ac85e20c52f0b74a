// Libraries: images of code, whose kernels are found by name. The parameters of a kernel of PTX are read there; of
// others they are what the first who resolves the kernel says. Variables begin as the image says in an ELF file, and as
// 0 in PTX.
#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string_view>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

// As long as its head says; a driver is not told either.
std::string copy_image(const void* code, bool* is_text) {
  const auto* bytes = static_cast<const char*>(code);
  *is_text = false;
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    std::memcpy(&header, code, sizeof(header));
    return std::string(bytes, header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize);
  }
  constexpr std::uint32_t kFatbin = 0xba55ed50;
  struct {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  } header;
  std::memcpy(&header.magic, code, sizeof(header.magic));
  if (header.magic == kFatbin) {
    std::memcpy(&header, code, sizeof(header));
    return std::string(bytes, header.header_bytes + header.bytes);
  }
  *is_text = true;
  return bytes;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.'; }

// The words of a piece of PTX, and the brackets around the sizes of arrays.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end != i) {
      words.push_back(text.substr(i, end - i));
    } else if (text[i] == '[') {
      words.push_back(text.substr(end++, 1));
    } else {
      ++end;
    }
    i = end;
  }
  return words;
}

// Bytes of ".u64", ".b8", ...; 0: no type.
std::uint32_t bytes_of_type(std::string_view type) {
  if (type.size() < 3 || type[0] != '.' || std::string_view("bfsu").find(type[1]) == std::string_view::npos) return 0;
  std::uint32_t bits = 0;
  for (const char c : type.substr(2)) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return 0;
    bits = bits * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return bits / 8;
}

// ".param .align 8 .b8 f_param_0[16]", ".param .u64 .ptr .align 1 f_param_1"
void add_parameter(std::string_view declaration, LoadedKernel& kernel) {
  const std::vector<std::string_view> words = words_of(declaration);
  std::uint32_t bytes = 0, alignment = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == ".align" && bytes == 0) {  // after the type it is that of what is pointed to
      alignment = static_cast<std::uint32_t>(std::stoul(std::string(words[i + 1])));
    } else if (bytes == 0) {
      bytes = bytes_of_type(words[i]);
    } else if (words[i] == "[") {
      bytes *= static_cast<std::uint32_t>(std::stoul(std::string(words[i + 1])));
    }
  }
  if (alignment == 0) alignment = bytes;
  const std::uint32_t end = kernel.offsets.empty() ? 0 : kernel.offsets.back() + kernel.sizes.back();
  kernel.offsets.push_back((end + alignment - 1) / alignment * alignment);
  kernel.sizes.push_back(bytes);
}

// What follows the name of that entry in PTX: "(" when it has parameters. npos: there is no such entry.
std::size_t parameters_at(std::string_view ptx, std::string_view name) {
  constexpr std::string_view kEntry = ".entry ";
  for (std::size_t at = ptx.find(kEntry); at != std::string_view::npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    if (ptx.substr(at, name.size()) != name) continue;
    const std::size_t end = at + name.size();
    if (end < ptx.size() && !is_word(ptx[end])) return ptx.find_first_not_of(" \t\r\n", end);
  }
  return std::string_view::npos;
}

void read_parameters(std::string_view ptx, LoadedKernel& kernel) {
  const std::size_t open = parameters_at(ptx, kernel.name);
  kernel.is_known = true;
  if (ptx[open] != '(') return;  // none
  std::string_view list = ptx.substr(open + 1, ptx.find(')', open) - open - 1);
  while (list.find(".param") != std::string_view::npos) {
    const std::size_t comma = list.find(',');
    add_parameter(list.substr(0, comma), kernel);
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
}

// In the order of the image. In an ELF file each kernel has a section with its name.
std::vector<std::string> names_in(const CUlib_st& library) {
  const std::string_view image = library.image;
  const std::string_view mark = library.is_text ? std::string_view(".entry ") : std::string_view("\0.text.", 7);
  std::vector<std::string> names;
  for (std::size_t at = image.find(mark); at != std::string_view::npos; at = image.find(mark, at)) {
    at += mark.size();
    std::size_t end = at;
    while (end < image.size() && is_word(image[end])) ++end;
    std::string name(image.substr(at, end - at));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

// What an image says of a variable; `bytes` is 0 when it has none of that name.
struct DeclaredVariable {
  std::size_t bytes = 0;
  std::string_view value;  // empty: zeros
};

// In "// .globl counter" and ".global .align 4 .b8 table[16];".
DeclaredVariable variable_in_ptx(std::string_view ptx, std::string_view name) {
  for (const std::string_view space : {".global ", ".const "}) {
    for (std::size_t at = ptx.find(space); at != std::string_view::npos; at = ptx.find(space, at + 1)) {
      const std::vector<std::string_view> words = words_of(ptx.substr(at, ptx.find_first_of(";={", at) - at));
      const auto named = std::find(words.begin(), words.end(), name);
      if (named == words.end() || named - words.begin() < 2) continue;
      std::size_t bytes = bytes_of_type(*std::prev(named));
      for (auto word = named; word != words.end(); ++word) {
        if (*word == "[" && std::next(word) != words.end()) bytes *= std::stoul(std::string(*std::next(word)));
      }
      return {bytes, {}};
    }
  }
  return {};
}

DeclaredVariable variable_in_elf(std::string_view image, std::string_view name) {
  const auto read = [&](std::uint64_t at, auto& out) {
    if (at > image.size() || sizeof(out) > image.size() - at) return false;
    std::memcpy(&out, image.data() + at, sizeof(out));
    return true;
  };
  Elf64_Ehdr header;
  if (!read(0, header)) return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (!read(header.e_shoff + i * sizeof(Elf64_Shdr), sections[i])) return {};
  }
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    Elf64_Sym symbol;
    for (std::uint64_t at = 0; at + sizeof(symbol) <= section.sh_size; at += sizeof(symbol)) {
      if (!read(section.sh_offset + at, symbol)) return {};
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections.size()) continue;
      const std::uint64_t name_at = names.sh_offset + symbol.st_name;
      if (name_at >= image.size() || std::string_view(image.data() + name_at) != name) continue;
      const Elf64_Shdr& place = sections[symbol.st_shndx];
      const std::uint64_t value_at = place.sh_offset + symbol.st_value;
      const bool has_value = place.sh_type == SHT_PROGBITS && value_at + symbol.st_size <= image.size();
      return {symbol.st_size, has_value ? image.substr(value_at, symbol.st_size) : std::string_view()};
    }
  }
  return {};
}

// Of an image or, in a fatbin, of an image in it.
DeclaredVariable find_variable(const CUlib_st& library, std::string_view name) {
  const std::string_view image = library.image;
  if (library.is_text) return variable_in_ptx(image, name);
  for (std::size_t at = image.find(ELFMAG); at != std::string_view::npos; at = image.find(ELFMAG, at + 1)) {
    const DeclaredVariable found = variable_in_elf(image.substr(at), name);
    if (found.bytes != 0) return found;
  }
  return {};
}

CUkernel handle_of(LoadedKernel& kernel) { return reinterpret_cast<CUkernel>(&kernel.identity); }

CUkernel kernel_of(CUlibrary library, const std::string& name) {
  for (LoadedKernel& kernel : state->loaded_kernels) {
    if (kernel.library == library && kernel.name == name) return handle_of(kernel);
  }
  LoadedKernel& kernel = state->loaded_kernels.emplace_back();
  kernel.library = library;
  kernel.name = name;
  kernel.identity.name = kernel.name.c_str();
  kernel.identity.symbol = &kernel.identity;
  if (library->is_text) read_parameters(library->image, kernel);
  if (const auto provided = state->provided.find(name); provided != state->provided.end()) {
    learn(kernel, *provided->second);
  }
  kernel.identity.parameter_sizes = kernel.sizes.data();
  kernel.identity.parameter_offsets = kernel.offsets.data();
  kernel.identity.parameter_count = kernel.sizes.size();
  state->kernels.emplace(&kernel.identity, &kernel.identity);
  return handle_of(kernel);
}

CUlib_st* find_library(CUlibrary library) {
  const auto found = state->libraries.find(library);
  return found != state->libraries.end() ? found->second.get() : nullptr;
}

}  // namespace

LoadedKernel* find_loaded(const void* symbol) {
  for (LoadedKernel& kernel : state->loaded_kernels) {
    if (&kernel.identity == symbol) return &kernel;
  }
  return nullptr;
}

void learn(LoadedKernel& kernel, const driver::KernelIdentity& identity) {
  if (identity.host_body != nullptr) {
    kernel.identity.host_body = identity.host_body;
    kernel.identity.resources = identity.resources;
  }
  if (kernel.is_known || identity.parameter_sizes == nullptr) return;
  kernel.is_known = true;
  kernel.sizes.assign(identity.parameter_sizes, identity.parameter_sizes + identity.parameter_count);
  kernel.offsets.assign(identity.parameter_offsets, identity.parameter_offsets + identity.parameter_count);
  kernel.identity.parameter_sizes = kernel.sizes.data();
  kernel.identity.parameter_offsets = kernel.offsets.data();
  kernel.identity.parameter_count = kernel.sizes.size();
}

CUresult LibraryLoadData(CUlibrary* out, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                         unsigned) {
  const Lock lock(state->mutex);
  if (out == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  auto library = std::make_unique<CUlib_st>();
  library->image = copy_image(code, &library->is_text);
  if (library->is_text && library->image.find(".target") == std::string::npos) return CUDA_ERROR_INVALID_PTX;
  *out = library.get();
  state->libraries.emplace(*out, std::move(library));
  return CUDA_SUCCESS;
}

// The simulator compiles nothing, and so has nothing to say of PTX.
CUresult LinkCreate(unsigned, CUjit_option*, void**, CUlinkState* out) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = reinterpret_cast<CUlinkState>(++state->last_link);
  state->links.insert(*out);
  return CUDA_SUCCESS;
}

CUresult LinkAddData(CUlinkState link, CUjitInputType, void*, std::size_t, const char*, unsigned, CUjit_option*,
                     void**) {
  const Lock lock(state->mutex);
  return state->links.contains(link) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult LinkDestroy(CUlinkState link) {
  const Lock lock(state->mutex);
  return state->links.erase(link) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The module of a library is the library, and that of the program's kernels is one that has no variables.
CUresult FuncGetModule(CUmodule* module, CUfunction function) {
  const Lock lock(state->mutex);
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const LoadedKernel* const loaded = find_loaded(kernel->symbol);
  *module = loaded != nullptr ? reinterpret_cast<CUmodule>(loaded->library) : reinterpret_cast<CUmodule>(state);
  return CUDA_SUCCESS;
}

CUresult ModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  const Lock lock(state->mutex);
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUlib_st* const library = find_library(reinterpret_cast<CUlibrary>(module));
  if (library == nullptr) return CUDA_ERROR_NOT_FOUND;
  auto known = library->variables.find(name);
  if (known == library->variables.end()) {
    const DeclaredVariable declared = find_variable(*library, name);
    if (declared.bytes == 0) return CUDA_ERROR_NOT_FOUND;
    CUdeviceptr allocated = 0;
    if (const CUresult bad = allocate(&allocated, declared.bytes, true, context); bad != CUDA_SUCCESS) return bad;
    state->memory.at(allocated).origin = Origin::kVariable;
    auto* const bytes_of_it = reinterpret_cast<char*>(allocated);
    std::fill_n(std::copy(declared.value.begin(), declared.value.end(), bytes_of_it),
                declared.bytes - declared.value.size(), '\0');
    known = library->variables.emplace(name, Variable{allocated, declared.bytes}).first;
  }
  if (address != nullptr) *address = known->second.address;
  if (bytes != nullptr) *bytes = known->second.bytes;
  return CUDA_SUCCESS;
}

CUresult ModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return LibraryGetKernelCount(count, reinterpret_cast<CUlibrary>(module));
}

CUresult ModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  std::vector<CUkernel> kernels(count);
  const CUresult bad = LibraryEnumerateKernels(kernels.data(), count, reinterpret_cast<CUlibrary>(module));
  if (bad != CUDA_SUCCESS) return bad;
  for (unsigned i = 0; i < count && kernels[i] != nullptr; ++i) KernelGetFunction(&functions[i], kernels[i]);
  return CUDA_SUCCESS;
}

CUresult LibraryUnload(CUlibrary library) {
  const Lock lock(state->mutex);
  if (find_library(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  run_all();  // what is in flight may run its code
  for (LoadedKernel& kernel : state->loaded_kernels) {
    if (kernel.library != library) continue;
    kernel.library = nullptr;
    state->kernels.erase(&kernel.identity);
    state->max_dynamic_shared.erase(&kernel.identity);
    state->large_clusters.erase(&kernel.identity);
    state->carveouts.erase(&kernel.identity);
  }
  for (const auto& [name, variable] : library->variables) free_variable(variable.address);
  state->libraries.erase(library);
  return CUDA_SUCCESS;
}

CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const Lock lock(state->mutex);
  if (find_library(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::vector<std::string> names = names_in(*library);
  if (std::find(names.begin(), names.end(), name) == names.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = kernel_of(library, name);
  return CUDA_SUCCESS;
}

CUresult LibraryGetKernelCount(unsigned* count, CUlibrary library) {
  const Lock lock(state->mutex);
  if (find_library(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(names_in(*library).size());
  return CUDA_SUCCESS;
}

CUresult LibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const Lock lock(state->mutex);
  if (find_library(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::vector<std::string> names = names_in(*library);
  for (std::size_t i = 0; i < std::min<std::size_t>(count, names.size()); ++i)
    kernels[i] = kernel_of(library, names[i]);
  return CUDA_SUCCESS;
}

CUresult KernelGetName(const char** name, CUkernel kernel) {
  return FuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}

CUresult KernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  const Lock lock(state->mutex);
  const LoadedKernel* const loaded = find_loaded(kernel);
  if (loaded != nullptr && !loaded->is_known) {
    return unsupported(
        "the simulator reads the parameters of kernels from PTX alone; of another image, ask for the kernel with the "
        "types of its parameters");
  }
  return FuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, size);
}

}  // namespace cgrt::simulator
