// What two_graphs.py saved, with no framework: prefill reads a prompt, and decode makes tokens from the cache that it
// has filled. Prints whether they are those of the framework; exit status 1 where they are not.
//
//   two_graphs BUNDLE FOLDER COUNT      FOLDER: what two_graphs.py wrote, chained.*; COUNT: of tokens

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/memory/copy.h"
#include "cgrt/stream/stream.h"

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

absl::StatusOr<std::string> replay(const std::string& path, std::string prompt, int count) {
  const cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(const cgrt::Bundle bundle, cgrt::Bundle::open(path));
  CGRT_ASSIGN_OR_RETURN(cgrt::LoadedBundle loaded, bundle.load(device));
  const std::string& prefill = bundle.folder().manifest().graphs.front().name;
  const std::string& decode = bundle.folder().manifest().graphs.back().name;
  CGRT_ASSIGN_OR_RETURN(const cgrt::NamedBuffer input, loaded.input(prefill, "prompt"));
  CGRT_ASSIGN_OR_RETURN(const cgrt::NamedBuffer output, loaded.output(decode, "tokens"));
  if (prompt.size() != input.bytes) return absl::InvalidArgumentError("The prompt has another length.");

  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream.ref(), input.data, prompt.data(), input.bytes));
  CGRT_RETURN_IF_ERROR(loaded.launch(prefill, stream.ref()));
  for (int i = 0; i < count; ++i) CGRT_RETURN_IF_ERROR(loaded.launch(decode, stream.ref()));
  std::string tokens(output.bytes, '\0');
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream.ref(), tokens.data(), output.data, output.bytes));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return tokens;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::puts("two_graphs BUNDLE FOLDER COUNT");
    return 2;
  }
  const std::string folder = argv[2];
  const auto tokens = replay(argv[1], read_file(folder + "/chained.prompt"), std::atoi(argv[3]));
  if (!tokens.ok()) {
    std::cout << tokens.status().message() << "\n";
    return 1;
  }
  const bool are_equal = *tokens == read_file(folder + "/chained.tokens");
  std::cout << tokens->size() << " bytes of tokens " << (are_equal ? "are equal" : "differ") << "\n";
  return are_equal ? 0 : 1;
}
