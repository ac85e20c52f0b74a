#include "cgrt/inspect/text_table.h"

#include "absl/strings/ascii.h"

namespace cgrt::inspect {

std::size_t width_of(std::string_view text) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts));
}

std::string count_of(std::uint64_t count, const char* singular, const char* plural) {
  return absl::StrCat(count, " ", count == 1 ? singular : plural);
}

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
