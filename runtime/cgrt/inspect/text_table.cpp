#include "cgrt/inspect/text_table.h"

namespace cgrt::inspect {

std::size_t width_of(std::string_view text) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts));
}

std::string count_of(std::uint64_t count, const char* singular, const char* plural) {
  return absl::StrCat(count, " ", count == 1 ? singular : plural);
}

}  // namespace cgrt::inspect
