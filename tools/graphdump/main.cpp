// graphdump: looks at graphs saved as .cgrt.json or dumped by the driver, on machines with or without a GPU.

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>

#include "cgrt/inspect/json.h"
#include "cgrt/saved/manifest.h"
#include "cgrt/version.h"
#include "command.h"

namespace {

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Looks at CUDA graphs that were saved as .cgrt.json files, or as DOT by CUDA itself "
      "(cudaGraphDebugDotPrint), or in bundles. FILE may be - for standard input, or BUNDLE:GRAPH.",
      "graphdump");
  app.set_version_flag("--version", "graphdump " CGRT_VERSION ", reads " + std::string(cgrt::inspect::kGraphSchema) +
                                        " version " + std::to_string(cgrt::inspect::kGraphVersion) + " and " +
                                        cgrt::saved::kBundleSchema + " version " +
                                        std::to_string(cgrt::saved::kBundleVersion));
  app.require_subcommand(1);

  graphdump::Action action;
  graphdump::add_show(app, action);
  graphdump::add_stats(app, action);
  graphdump::add_diff(app, action);
  graphdump::add_run(app, action);
  graphdump::add_time(app, action);
  graphdump::add_explain(app, action);
  graphdump::add_emit(app, action);
  graphdump::add_lint(app, action);
#ifdef GRAPHDUMP_LOADS_BUNDLES
  graphdump::add_save(app, action);
  graphdump::add_play(app, action);
  graphdump::add_shrink(app, action);
#endif
  graphdump::add_verify(app, action);
  graphdump::add_why(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);  // 0 for --help and --version
    return graphdump::print(out.str(), err.str(), code == 0 ? graphdump::kOk : graphdump::kError);
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `graphdump show big.cgrt.json | head` ends quietly
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return graphdump::print("", std::string("graphdump: ") + error.what() + "\n", graphdump::kError);
  }
}
