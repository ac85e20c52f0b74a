// graphdump verify: whether all files of a bundle are as they were written.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/text.h"
#include "command.h"

namespace graphdump {
namespace {

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

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "verify", "Read all files of a bundle and compare their hashes: exits 0 when all are right, 1 when one is not");
  command->add_option("DIR", *path, "The bundle")->required();
  command->callback([path, &action] { action = [path] { return verify(*path); }; });
}

}  // namespace graphdump
