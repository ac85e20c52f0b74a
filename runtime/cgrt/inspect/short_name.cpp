#include "cgrt/inspect/short_name.h"

#include <cstddef>

#include "absl/strings/ascii.h"

namespace cgrt::inspect {

std::string short_name(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  const auto is_word = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i, 2) != "::") {
      out += name[i];
      continue;
    }
    ++i;
    if (out.ends_with(kUnnamed)) {
      out.resize(out.size() - kUnnamed.size());
    } else if (!out.empty() && is_word(out.back())) {
      while (!out.empty() && is_word(out.back())) out.pop_back();
    } else {
      out += "::";  // of a template or a function: no namespace
    }
  }
  return out;
}

}  // namespace cgrt::inspect
