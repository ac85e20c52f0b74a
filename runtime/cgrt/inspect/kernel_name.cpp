#include "cgrt/inspect/kernel_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "absl/strings/ascii.h"

namespace cgrt::inspect {
namespace {

// Mangled names refer to parts of themselves (S_, S0_, T_), and such parts to others: what 300 characters say can be
// longer than any memory. With r references the name is at most 3^(r/3) times as long as the symbol: no way to share
// them out among the parts gives more.
bool is_short_enough(std::string_view symbol) {
  constexpr double kMaxSize = 1 << 24;
  double size = static_cast<double>(symbol.size());
  for (std::size_t i = 0; i < symbol.size() && size <= kMaxSize; ++i) {
    if (symbol[i] != 'S' && symbol[i] != 'T') continue;
    std::size_t end = i + 1;
    while (end < std::min(i + 4, symbol.size()) && absl::ascii_isalnum(static_cast<unsigned char>(symbol[end]))) ++end;
    if (end < symbol.size() && symbol[end] == '_') size *= 1.4423;  // the third root of 3
  }
  return size <= kMaxSize;
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

// "void ns::(anonymous namespace)::scale<float>(float*)" -> "ns::scale<float>"
std::string without_signature(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::", kVoid = "void ";
  std::string out;
  out.reserve(name.size());
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t next = std::min(name.find(kUnnamed, at), name.size());
    out += name.substr(at, next - at);
    at = next + kUnnamed.size();
  }
  const std::size_t parameters = opening_of_last(out);
  if (parameters != std::string::npos) out.resize(parameters);
  if (out.starts_with(kVoid)) out.erase(0, kVoid.size());  // kernels return nothing; only templates spell it
  return out;
}

}  // namespace

std::string kernel_name(const std::string& symbol) {
  if (!symbol.starts_with("_Z") || !is_short_enough(symbol)) return symbol;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && name != nullptr ? without_signature(name.get()) : symbol;
}

}  // namespace cgrt::inspect
