#include "options.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

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

std::optional<int> parse_file(const char* program, const char* about, int argc, char** argv, std::string& file) {
  CLI::App app(about, program);
  app.add_option("FILE", file, "The file to write")->check(file_in_folder())->capture_default_str();
  return parse(app, argc, argv);
}

CLI::Validator file_in_folder() {
  const auto check = [](const std::string& file) -> std::string {
    const std::filesystem::path path(file), folder = path.parent_path();
    std::error_code ignored;
    if (path.filename().empty() || std::filesystem::is_directory(path, ignored)) {
      return "\"" + file + "\" is not the name of a file";
    }
    if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return "";
    return "\"" + file + "\" cannot be written: there is no folder " + folder.string();
  };
  return CLI::Validator(check, "");
}

std::string command_line(const char* program, int argc, char** argv) {
  std::string line = program;
  for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
  return line;
}
