// graphdump verify: whether all files of a bundle are as they were written.

#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/text.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {

int verify(const std::string& path) {
  const absl::StatusOr<cgrt::saved::Folder> folder = cgrt::saved::Folder::open(path);
  if (!folder.ok()) return fail(folder.status());
  std::string out;
  for (const std::string& sentence : folder->verify()) absl::StrAppend(&out, cgrt::ir::printable(sentence), "\n");
  if (!out.empty()) return print(out, "", kDifferent);
  return print(
      absl::StrCat(cgrt::ir::printable(path), ": ", cgrt::saved::summary(folder->manifest()), ": all hashes right\n"),
      "", kOk);
}

}  // namespace graphdump
