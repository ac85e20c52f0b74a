// play_bundle: a decode step that another program captured, replayed without that program: token ids in, token ids out.
//
//   graphdump save -o decode.bundle -- python3 decode.py    # names the buffer "token", once as input, once as output
//   play_bundle decode.bundle 1 450 7483 310                # the ids of a prompt; prints those that follow

#include <cgrt/bundle/bundle.h>
#include <cgrt/cgrt.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"

namespace {

absl::Status run(const std::string& path, const std::vector<std::int64_t>& prompt, std::size_t steps) {
  constexpr cgrt::DeviceRef kDevice(0);
  CGRT_ASSIGN_OR_RETURN(const cgrt::Bundle bundle, cgrt::Bundle::open(path));
  CGRT_ASSIGN_OR_RETURN(cgrt::LoadedBundle loaded, bundle.load(kDevice));
  const std::string graph = bundle.folder().manifest().graphs.front().name;
  CGRT_ASSIGN_OR_RETURN(const cgrt::NamedBuffer in, loaded.input(graph, "token"));
  CGRT_ASSIGN_OR_RETURN(const cgrt::NamedBuffer out, loaded.output(graph, "token"));
  std::int64_t token = 0;
  if (in.bytes != sizeof(token) || out.bytes != sizeof(token)) {
    return absl::InvalidArgumentError("The bundle's tokens are not 64-bit integers, one at a time.");
  }

  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(kDevice));
  for (std::size_t i = 0; i < prompt.size() + steps; ++i) {
    if (i < prompt.size()) token = prompt[i];  // later on, what the step before made
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream, in.data, &token, sizeof(token)));
    CGRT_RETURN_IF_ERROR(loaded.launch(graph, stream));
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream, &token, out.data, sizeof(token)));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    if (i + 1 >= prompt.size()) std::printf("%lld\n", static_cast<long long>(token));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs a decode step that `graphdump save` saved, and prints the token ids that it makes.",
               "play_bundle");
  std::string path;
  std::vector<std::int64_t> prompt = {0};
  std::size_t steps = 16;
  app.add_option("DIR", path, "The bundle")->required();
  app.add_option("IDS", prompt, "The token ids of the prompt")->capture_default_str();
  app.add_option("--steps", steps, "Steps after the prompt")->capture_default_str();
  if (const auto exit_code = parse(app, argc, argv)) return *exit_code;
  const absl::Status status = run(path, prompt, steps);
  if (status.ok()) return 0;
  std::fprintf(stderr, "play_bundle: %s\n", status.ToString().c_str());
  return 1;
}
