#include "cgrt/bundle/cubin.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/image.h"

namespace cgrt::internal {
namespace {

constexpr unsigned kMachine = 190;      // EM_CUDA
constexpr unsigned char kEntry = 0x10;  // in st_other: a kernel

absl::Status damaged(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("The cubin is damaged: ", std::string(what), "."));
}

class Elf {
 public:
  static absl::StatusOr<Elf> read(std::string_view image) {
    Elf elf(image);
    Elf64_Ehdr header;
    if (!is_cubin(image) || !elf.get(0, header)) return absl::InvalidArgumentError("The image of code is no cubin.");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return damaged("its sections have another size");
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!elf.get(header.e_shoff + i * sizeof(section), section)) return damaged("its sections are cut short");
      elf.sections_.push_back(section);
    }
    if (header.e_shstrndx >= elf.sections_.size()) return damaged("its sections have no names");
    elf.names_ = elf.sections_[header.e_shstrndx];
    return elf;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  // Nullopt: it does not lie in the image.
  std::optional<std::string_view> content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return std::string_view();
    if (section.sh_offset > image_.size() || section.sh_size > image_.size() - section.sh_offset) return std::nullopt;
    return image_.substr(section.sh_offset, section.sh_size);
  }
  std::string_view name(const Elf64_Shdr& section) const { return text(names_, section.sh_name); }
  std::string_view text(const Elf64_Shdr& strings, std::uint32_t at) const {
    const std::string_view all = content(strings).value_or("");
    if (at >= all.size()) return "";
    const std::string_view rest = all.substr(at);
    return rest.substr(0, rest.find('\0'));
  }
  template <class T>
  bool get(std::uint64_t at, T& out) const {
    if (at > image_.size() || sizeof(T) > image_.size() - at) return false;
    std::memcpy(&out, image_.data() + at, sizeof(T));
    return true;
  }

 private:
  explicit Elf(std::string_view image) : image_(image) {}
  std::string_view image_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_{};
};

bool is_variable_section(std::string_view name) {
  return name == ".nv.global" || name == ".nv.global.init" || name == ".nv.constant3";
}

// By the part of their names behind ".text.", ".nv.info." and the like.
using Sections = std::map<std::string_view, const Elf64_Shdr*>;

absl::StatusOr<Cubin::Function> read_function(const Elf& elf, const Sections& sections, std::string_view symbol) {
  Cubin::Function function{.symbol = symbol, .code = {}, .info = {}, .constants = {}};
  const auto section = [&](std::string_view prefix) -> const Elf64_Shdr* {
    const auto found = sections.find(absl::StrCat(std::string(prefix), std::string(symbol)));
    return found != sections.end() ? found->second : nullptr;
  };
  for (const auto& [prefix, content] :
       {std::pair{".text.", &function.code}, {".nv.info.", &function.info}, {".nv.constant0.", &function.constants}}) {
    const Elf64_Shdr* const found = section(prefix);
    if (found == nullptr) continue;
    const std::optional<std::string_view> bytes = elf.content(*found);
    if (!bytes.has_value()) return damaged(absl::StrCat("a section of ", std::string(symbol), " is cut short"));
    *content = *bytes;
  }
  if (const Elf64_Shdr* const shared = section(".nv.shared."); shared != nullptr)
    function.shared_bytes = shared->sh_size;
  for (const char* prefix : {".rel.text.", ".rela.text."}) {
    const Elf64_Shdr* const found = section(prefix);
    function.has_relocations = function.has_relocations || (found != nullptr && found->sh_size != 0);
  }
  return function;
}

// `at`: where it begins in its section.
absl::StatusOr<Cubin::Variable> read_variable(const Elf& elf, std::size_t section, std::string_view symbol,
                                              std::uint64_t at, std::uint64_t bytes) {
  Cubin::Variable variable{symbol, bytes};
  const std::optional<std::string_view> content = elf.content(elf.sections()[section]);
  if (!content.has_value()) return damaged("its variables are cut short");
  if (!content->empty()) {
    if (at > content->size() || bytes > content->size() - at) return damaged("a variable does not lie in its section");
    variable.initial = content->substr(at, bytes);
  }
  for (const Elf64_Shdr& table : elf.sections()) {
    const bool is_table = table.sh_type == SHT_REL || table.sh_type == SHT_RELA;
    if (!is_table || table.sh_info != section) continue;
    const std::size_t step = table.sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
    const std::optional<std::string_view> entries = elf.content(table);
    if (!entries.has_value()) return damaged("its relocations are cut short");
    for (std::size_t i = 0; i + step <= entries->size(); i += step) {
      std::uint64_t offset = 0;  // both kinds begin with it
      std::memcpy(&offset, entries->data() + i, sizeof(offset));
      if (offset >= at && offset - at < bytes) variable.relocated.push_back(offset - at);
    }
  }
  return variable;
}

// What code of 7.5 to 12.0 has in the low 12 bits of instructions for textures and surfaces, 16 bytes each: measured
// with what nvcc 13.0 makes of fetches, filtered and gathered reads, gradients and queries of textures, and of reads,
// writes and reductions of surfaces, with handles from arguments and from memory.
constexpr std::uint16_t kTextureCodes[] = {0x361, 0x364, 0x367, 0x36d, 0x370, 0x3a0, 0x59f, 0x99a,
                                           0x99e, 0xb60, 0xb63, 0xb66, 0xb6c, 0xb6f, 0xb99, 0xb9d,
                                           0xf60, 0xf63, 0xf66, 0xf6c, 0xf6f, 0xf99, 0xf9d, 0xf9f};
constexpr auto kIsTextureCode = [] {
  std::array<bool, 0x1000> is_one{};
  for (const std::uint16_t code : kTextureCodes) is_one[code] = true;
  return is_one;
}();

bool has_texture_codes(std::string_view code) {
  constexpr std::size_t kInstructionBytes = 16;
  for (std::size_t at = 0; at + kInstructionBytes <= code.size(); at += kInstructionBytes) {
    std::uint16_t word = 0;
    std::memcpy(&word, code.data() + at, sizeof(word));
    if (kIsTextureCode[word & 0xfff]) return true;
  }
  return false;
}

// The functions of a cubin, and which calls which, by the numbers of their symbols.
class Calls {
 public:
  explicit Calls(std::string_view pairs) {
    for (std::size_t at = 0; at + 8 <= pairs.size(); at += 8) {
      std::uint32_t caller = 0, callee = 0;
      std::memcpy(&caller, pairs.data() + at, sizeof(caller));
      std::memcpy(&callee, pairs.data() + at + 4, sizeof(callee));
      callees_.emplace(caller, callee);  // some callees are marks of another kind, which no function has
    }
  }
  // `code`: of its section; none where it is the driver's.
  void add(std::uint32_t number, std::string_view name, std::string_view code) { functions_[number] = {name, code}; }

  void describe(std::uint32_t kernel, Cubin::Function& function) const {
    std::set<std::uint32_t> seen = {kernel};
    for (std::vector<std::uint32_t> next = {kernel}; !next.empty();) {
      const std::uint32_t number = next.back();
      next.pop_back();
      const auto found = functions_.find(number);
      if (found == functions_.end()) continue;
      const auto& [name, code] = found->second;
      function.uses_textures = function.uses_textures || has_texture_codes(code);
      function.uses_heap = function.uses_heap || (code.empty() && (name == "malloc" || name == "free"));
      const auto [first, last] = callees_.equal_range(number);
      for (auto one = first; one != last; ++one) {
        if (seen.insert(one->second).second) next.push_back(one->second);
      }
    }
  }

 private:
  std::multimap<std::uint32_t, std::uint32_t> callees_;
  std::map<std::uint32_t, std::pair<std::string_view, std::string_view>> functions_;
};

// The name is the last word of a declaration: ".visible .global .align 4 .b8 table[16];".
void add_variables_of_ptx(std::string_view ptx, std::vector<std::string>& names) {
  for (const std::string_view space : {".global ", ".const "}) {
    for (std::size_t at = ptx.find(space); at != std::string_view::npos; at = ptx.find(space, at + 1)) {
      const std::string_view declaration = ptx.substr(at, ptx.find_first_of(";=[", at) - at);
      const std::size_t end = declaration.find_last_not_of(" \t\n\r") + 1;
      names.emplace_back(declaration.substr(0, end).substr(declaration.find_last_of(" \t\n\r", end - 1) + 1));
    }
  }
}

absl::Status add_variables_of_cubin(std::string_view image, std::vector<std::string>& names) {
  CGRT_ASSIGN_OR_RETURN(const Cubin cubin, Cubin::read(image));
  for (const Cubin::Variable& variable : cubin.variables) names.emplace_back(variable.symbol);
  return absl::OkStatus();
}

// Each of its images begins with a head of its own.
absl::Status add_variables_of_fatbin(std::string_view image, std::vector<std::string>& names) {
  struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
  };
  constexpr std::uint16_t kCubin = 2;
  FatbinHeader header;
  std::memcpy(&header, image.data(), sizeof(header));
  bool is_read = false;
  for (std::uint64_t at = header.header_bytes; at < image.size();) {
    Entry entry;
    if (sizeof(entry) > image.size() - at) return absl::InvalidArgumentError("The fatbin is cut short.");
    std::memcpy(&entry, image.data() + at, sizeof(entry));
    const std::uint64_t room = image.size() - at;
    if (entry.header_bytes < sizeof(entry) || entry.header_bytes > room || entry.bytes > room - entry.header_bytes) {
      return absl::InvalidArgumentError("The fatbin is damaged: an image of it does not lie in it.");
    }
    const std::string_view content = image.substr(at + entry.header_bytes, entry.bytes);
    if (entry.kind == kCubin && is_cubin(content)) {
      CGRT_RETURN_IF_ERROR(add_variables_of_cubin(content, names));
      is_read = true;
    }
    at += entry.header_bytes + entry.bytes;
  }
  if (is_read) return absl::OkStatus();
  return absl::UnimplementedError(
      "The variables of a fatbin without an uncompressed cubin are not known. Give its cubin in its place.");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> variables_in(std::string_view image) {
  std::vector<std::string> names;
  if (is_cubin(image)) {
    CGRT_RETURN_IF_ERROR(add_variables_of_cubin(image, names));
  } else if (is_fatbin(image)) {
    CGRT_RETURN_IF_ERROR(add_variables_of_fatbin(image, names));
  } else if (image.find(".target") != std::string_view::npos) {
    add_variables_of_ptx(image, names);
  } else {
    return absl::InvalidArgumentError("The image of code is no cubin, no fatbin and no PTX.");
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_cubin(std::string_view image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof(header)) return false;
  std::memcpy(&header, image.data(), sizeof(header));
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_machine == kMachine;
}

bool is_fatbin(std::string_view image) {
  std::uint32_t magic = 0;
  if (image.size() < sizeof(FatbinHeader)) return false;
  std::memcpy(&magic, image.data(), sizeof(magic));
  return magic == kFatbinMagic;
}

std::uint64_t image_bytes(const void* image) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic == kFatbinMagic) {
    FatbinHeader header;
    std::memcpy(&header, image, sizeof(header));
    return image_bytes(header).value_or(0);
  }
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  return image_bytes(header).value_or(0);
}

absl::StatusOr<Cubin> Cubin::read(std::string_view image) {
  CGRT_ASSIGN_OR_RETURN(const Elf elf, Elf::read(image));
  Sections sections;
  for (const Elf64_Shdr& section : elf.sections()) sections.emplace(elf.name(section), &section);
  const auto callgraph = sections.find(".nv.callgraph");
  Calls calls(callgraph != sections.end() ? elf.content(*callgraph->second).value_or("") : "");
  std::map<std::string_view, std::uint32_t> kernels;  // numbers of their symbols
  Cubin cubin;
  for (const Elf64_Shdr& table : elf.sections()) {
    if (table.sh_type != SHT_SYMTAB) continue;
    const std::optional<std::string_view> symbols = elf.content(table);
    if (!symbols.has_value() || table.sh_link >= elf.sections().size()) return damaged("its symbols are cut short");
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols->data() + at, sizeof(symbol));
      const auto number = static_cast<std::uint32_t>(at / sizeof(Elf64_Sym));
      const std::string_view name = elf.text(elf.sections()[table.sh_link], symbol.st_name);
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC && symbol.st_shndx == SHN_UNDEF) calls.add(number, name, "");
      if (name.empty() || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= elf.sections().size()) continue;
      const Elf64_Shdr& section = elf.sections()[symbol.st_shndx];
      if (type == STT_FUNC) calls.add(number, name, elf.content(section).value_or(""));
      if (type == STT_FUNC && (symbol.st_other & kEntry) != 0) {
        CGRT_ASSIGN_OR_RETURN(Cubin::Function function, read_function(elf, sections, name));
        cubin.functions.push_back(function);
        kernels.emplace(name, number);
      } else if (type == STT_OBJECT && symbol.st_size != 0 && is_variable_section(elf.name(section))) {
        CGRT_ASSIGN_OR_RETURN(Cubin::Variable variable,
                              read_variable(elf, symbol.st_shndx, name, symbol.st_value, symbol.st_size));
        cubin.variables.push_back(std::move(variable));
      }
    }
  }
  for (Cubin::Function& function : cubin.functions) calls.describe(kernels.at(function.symbol), function);
  const auto by_symbol = [](const auto& a, const auto& b) { return a.symbol < b.symbol; };
  std::sort(cubin.functions.begin(), cubin.functions.end(), by_symbol);
  std::sort(cubin.variables.begin(), cubin.variables.end(), by_symbol);
  return cubin;
}

namespace {

template <class Named>
const Named* find_in(const std::vector<Named>& all, std::string_view symbol) {
  const auto found = std::lower_bound(all.begin(), all.end(), symbol,
                                      [](const Named& one, std::string_view name) { return one.symbol < name; });
  return found != all.end() && found->symbol == symbol ? &*found : nullptr;
}

}  // namespace

const Cubin::Function* Cubin::find(std::string_view symbol) const { return find_in(functions, symbol); }
const Cubin::Variable* Cubin::find_variable(std::string_view symbol) const { return find_in(variables, symbol); }

bool Cubin::Variable::is_initial(std::span<const std::byte> content) const {
  if (content.size() != bytes) return false;
  std::vector<std::byte> wanted(bytes);
  const auto in_image = std::as_bytes(std::span(initial));
  std::copy(in_image.begin(), in_image.end(), wanted.begin());
  for (const std::uint64_t at : relocated) {
    const std::size_t end = std::min<std::size_t>(at + sizeof(std::uint64_t), bytes);
    std::memcpy(wanted.data() + at, content.data() + at, end - at);
  }
  return std::memcmp(wanted.data(), content.data(), bytes) == 0;
}

}  // namespace cgrt::internal
