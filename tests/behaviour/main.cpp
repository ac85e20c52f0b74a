// behaviour_tests simulator|gpu [--transcript FILE] [--write FILE] [--only TEXT] [--list]
//
// Runs every row. With --transcript, a row whose notes differ from the file's, or that the file does
// not have, fails; one that this machine cannot run says why and counts as neither. Exit 0: all passed; 1: some failed;
// 77: no device (skipped), unless CGRT_REQUIRE_GPU=1 makes that a failure.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "behaviour/behaviour.h"
#include "behaviour/exemptions.h"
#include "cgrt/base/json_writer.h"
#include "support/no_device.h"
#include "support/skip.h"

namespace {

using cgrt::testing::Notes;
using Transcript = std::map<std::string, std::vector<std::string>>;

std::optional<Transcript> read_transcript(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded() || !json.contains("rows")) return std::nullopt;
  return json["rows"].get<Transcript>();
}

void write_transcript(const std::string& path, const std::string& device, const Transcript& transcript) {
  cgrt::JsonWriter json;
  json.begin_object();
  json.member("schema", "cgrt-transcript-1");
  json.member("device", device);
  json.key("rows");
  json.begin_object();
  for (const auto& [name, lines] : transcript) {
    json.key(name);
    json.begin_array();
    for (const std::string& line : lines) json.value(line);
    json.end_array();
  }
  json.end_object();
  json.end_object();
  std::ofstream(path) << std::move(json).finish();
}

// What differs, as text; empty when nothing does.
std::string difference(const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  std::ostringstream text;
  for (std::size_t i = 0; i < ours.size() || i < theirs.size(); ++i) {
    const std::string here = i < ours.size() ? ours[i] : "(nothing)";
    const std::string there = i < theirs.size() ? theirs[i] : "(nothing)";
    if (here != there) text << "      here:       " << here << "\n      transcript: " << there << "\n";
  }
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  std::string backend = argc > 1 ? argv[1] : "", transcript_path, write_path, only;
  for (int i = 2; i < argc; ++i) {
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (std::strcmp(argv[i], "--transcript") == 0)
      transcript_path = value();
    else if (std::strcmp(argv[i], "--write") == 0)
      write_path = value();
    else if (std::strcmp(argv[i], "--only") == 0)
      only = value();
    else if (std::strcmp(argv[i], "--list") == 0)
      backend = "list";
  }
  if (backend == "list") {
    for (const auto& row : cgrt::testing::all_behaviours()) std::puts(row.name.c_str());
    return 0;
  }
  if (backend != "simulator" && backend != "gpu") {
    std::fputs("usage: behaviour_tests simulator|gpu [--transcript FILE] [--write FILE] [--only TEXT]\n", stderr);
    return 2;
  }
  const bool simulated = backend == "simulator";
  if (!simulated) {
    if (const auto code = cgrt::testing::exit_code_without_device()) return *code;
  }
  std::optional<Transcript> expected;
  if (!transcript_path.empty()) {
    expected = read_transcript(transcript_path);
    if (!expected.has_value()) {
      std::printf("FAILED: %s is not a transcript\n", transcript_path.c_str());
      return 1;
    }
  }

  Transcript seen;
  int passed = 0, failed = 0, exempt = 0;
  std::set<std::string> skipped;
  std::string device;
  for (const auto& row : cgrt::testing::all_behaviours()) {
    if (!only.empty() && row.name.find(only) == std::string::npos) continue;
    std::unique_ptr<cgrt::Simulator> simulator;
    if (simulated) simulator = std::make_unique<cgrt::Simulator>(cgrt::SimulatorOptions{.device_count = 2});
    Notes notes;
    std::string trouble, missing;
    {
      cgrt::testing::World world(simulator.get());
      device = cgrt::DeviceRef(0).name().value_or("?");
      const absl::Status status = row.run(world, notes);
      if (cgrt::testing::is_skip(status)) {
        missing = std::string(status.message());
      } else if (!status.ok()) {
        trouble += "      returned: " + status.ToString() + "\n";
      }
    }
    for (const std::string& failure : notes.failures()) trouble += "      expected: " + failure + "\n";
    cgrt::collect_released();
    if (simulated && simulator->live_handles() != 0)
      trouble += "      left behind: " + simulator->live_handles_text() + "\n";
    if (trouble.empty() && !missing.empty()) {
      std::printf("  skipped %s\n      %s\n", row.name.c_str(), missing.c_str());
      skipped.insert(row.name);
      continue;
    }
    const char* exemption = cgrt::testing::exemption(row.name.c_str());
    if (expected.has_value() && exemption == nullptr) {
      const auto found = expected->find(row.name);
      trouble += found == expected->end() ? "      the transcript does not have this row\n"
                                          : difference(notes.lines(), found->second);
    }
    seen[row.name] = notes.lines();
    exempt += exemption != nullptr;
    std::printf("  %s %s\n%s", trouble.empty() ? "ok    " : "FAILED", row.name.c_str(), trouble.c_str());
    std::fflush(stdout);
    ++(trouble.empty() ? passed : failed);
  }
  if (expected.has_value() && only.empty()) {
    for (const auto& [name, lines] : *expected) {
      if (seen.contains(name) || skipped.contains(name)) continue;
      std::printf("  FAILED %s\n      the transcript has this row, and it was not run\n", name.c_str());
      ++failed;
    }
  }
  if (!write_path.empty()) write_transcript(write_path, device, seen);
  std::printf("behaviour on %s: %d passed, %d failed, %d not compared, %zu skipped\n", device.c_str(), passed, failed,
              exempt, skipped.size());
  return failed == 0 && passed > 0 ? 0 : 1;
}
