#include "options.h"

#include <CLI/CLI.hpp>

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // prints the help, or what is wrong
  }
}

std::optional<int> parse_no_options(const char* program, const char* about, int argc, char** argv) {
  CLI::App app(about, program);
  return parse(app, argc, argv);
}

std::optional<int> parse_file(const char* program, const char* about, int argc, char** argv, std::string& file,
                              std::string (*error_of)(const std::string&)) {
  CLI::App app(about, program);
  app.add_option("FILE", file, "The file to write")->check(error_of)->capture_default_str();
  return parse(app, argc, argv);
}
