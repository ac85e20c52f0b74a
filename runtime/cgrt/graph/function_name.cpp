#include "cgrt/graph/function_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace cgrt::internal {
namespace {

void remove_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

}  // namespace

std::string function_name(const char* symbol) {
  if (!std::string_view(symbol).starts_with("_Z")) return symbol;  // "f" would come back as "float"
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                              &std::free);
  if (status != 0 || demangled == nullptr) return symbol;
  std::string name = demangled.get();
  remove_all(name, "(anonymous namespace)::");
  if (!name.empty() && name.back() == ')') {  // the parameter list, which may hold parentheses itself
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
      if (name[i] == ')') ++depth;
      if (name[i] == '(' && --depth == 0) {
        name.resize(i);
        break;
      }
    }
  }
  constexpr std::string_view kVoid = "void ";  // kernels return nothing; only templates spell it
  if (name.starts_with(kVoid)) name.erase(0, kVoid.size());
  return name;
}

}  // namespace cgrt::internal
