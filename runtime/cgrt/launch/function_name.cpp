#include "cgrt/launch/function_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

namespace cgrt::internal {
namespace {

void remove_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

std::optional<std::string> demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         &std::free);
  if (status != 0 || text == nullptr) return std::nullopt;
  return text.get();
}

// Where the parenthesis that closes the text opens; npos when none does.
std::size_t opening_of_last(std::string_view text) {
  int depth = 0;
  for (std::size_t i = text.ends_with(')') ? text.size() : 0; i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// "void ns::scale<float>(float*)" -> "ns::scale<float>"
std::string without_signature(std::string name) {
  remove_all(name, "(anonymous namespace)::");
  const std::size_t parameters = opening_of_last(name);
  if (parameters != std::string_view::npos) name.resize(parameters);
  constexpr std::string_view kVoid = "void ";  // kernels return nothing; only templates spell it
  if (name.starts_with(kVoid)) name.erase(0, kVoid.size());
  return name;
}

// "cgrt::internal::KernelTag<&(void ns::scale<float>(float*))>" -> "void ns::scale<float>(float*)", and
// "cgrt::internal::KernelTag<&ns::scale>" -> "ns::scale", as the demangler writes functions that are no templates.
std::optional<std::string> kernel_of_tag(std::string_view tag) {
  const std::size_t begin = tag.find("<&"), end = tag.rfind('>');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 3) return std::nullopt;
  std::string_view kernel = tag.substr(begin + 2, end - begin - 2);
  while (kernel.ends_with(' ')) kernel.remove_suffix(1);
  if (opening_of_last(kernel) == 0) kernel = kernel.substr(1, kernel.size() - 2);
  return std::string(kernel);
}

}  // namespace

std::string function_name(const char* symbol) {
  const std::string_view text(symbol);
  if (text.starts_with("N4cgrt8internal9KernelTagI")) {
    if (const std::optional<std::string> tag = demangled(symbol)) {
      if (std::optional<std::string> kernel = kernel_of_tag(*tag)) return without_signature(*std::move(kernel));
    }
  } else if (text.starts_with("_Z")) {  // "f" would come back as "float"
    if (std::optional<std::string> name = demangled(symbol)) return without_signature(*std::move(name));
  }
  return symbol;
}

bool has_name(std::string_view name, std::string_view wanted) {
  for (const std::string_view one : {name, name.substr(0, name.find('<'))}) {
    if (!one.ends_with(wanted)) continue;
    const std::string_view before = one.substr(0, one.size() - wanted.size());
    if (before.empty() || before.ends_with("::")) return true;
  }
  return false;
}

}  // namespace cgrt::internal
