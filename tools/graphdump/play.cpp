// graphdump play: replays the graphs of a bundle, and compares with what they did when they were saved.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "again.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/ir/describe.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/memory/copy.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

using Clock = std::chrono::steady_clock;

constexpr cgrt::DeviceRef kDevice(0);

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// As the kernel has it, in hundredths of a second.
std::optional<double> ms_since_process_start() {
  std::FILE* const file = std::fopen("/proc/self/stat", "r");
  if (file == nullptr) return std::nullopt;
  absl::StatusOr<std::string> text = cgrt::read_text(file, "/proc/self/stat");
  std::fclose(file);
  unsigned long long ticks = 0;
  const std::size_t name_end = text.ok() ? text->rfind(')') : std::string::npos;
  const bool is_known =
      name_end != std::string::npos &&
      std::sscanf(text->c_str() + name_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) == 1;
  timespec now{};
  if (!is_known || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const double start = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - start) * 1e3;
}

struct NamedFile {
  std::string name, file;
};
absl::StatusOr<std::vector<NamedFile>> named_files(const std::vector<std::string>& texts, const char* option) {
  std::vector<NamedFile> files;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return absl::InvalidArgumentError(absl::StrCat(option, " takes NAME=FILE, and was given \"", text, "\"."));
    }
    files.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return files;
}

// One graph of a loaded bundle, and what the command line says of it.
class Player {
 public:
  Player(cgrt::LoadedBundle& loaded, std::string name, const cgrt::Stream& stream)
      : loaded_(loaded), name_(std::move(name)), stream_(stream) {}

  absl::Status read_inputs(const std::vector<NamedFile>& files) {
    for (const NamedFile& one : files) {
      CGRT_ASSIGN_OR_RETURN(const cgrt::NamedBuffer buffer, loaded_.input(name_, one.name));
      const File file(std::fopen(one.file.c_str(), "rb"));
      if (file == nullptr) return cgrt::file_error(errno, one.file, "cannot be opened");
      CGRT_ASSIGN_OR_RETURN(std::string content, cgrt::read_text(file.get(), one.file));
      if (content.size() != buffer.bytes) {
        return absl::InvalidArgumentError(absl::StrCat(one.file, " has ", cgrt::counted(content.size(), "byte"),
                                                       ", and input \"", one.name, "\" takes ", buffer.bytes, "."));
      }
      inputs_.emplace_back(buffer, std::move(content));
    }
    return absl::OkStatus();
  }

  // Memory as it was saved, but for the inputs.
  absl::Status begin() {
    CGRT_RETURN_IF_ERROR(loaded_.restore(name_));
    return write_inputs();
  }
  absl::Status write_inputs() {
    for (const auto& [buffer, content] : inputs_) {
      CGRT_RETURN_IF_ERROR(cgrt::copy(stream_, buffer.data, content.data(), buffer.bytes));
    }
    return stream_.ref().synchronize();
  }

  absl::Status replay(std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) CGRT_RETURN_IF_ERROR(loaded_.launch(name_, stream_));
    return stream_.ref().synchronize();
  }

  // By the device's clock, from the end of what was before.
  absl::StatusOr<absl::Duration> time(std::uint64_t times) {
    CGRT_ASSIGN_OR_RETURN(const cgrt::Event start, cgrt::Event::create(kDevice, cgrt::EventTiming::kEnabled));
    CGRT_ASSIGN_OR_RETURN(const cgrt::Event end, cgrt::Event::create(kDevice, cgrt::EventTiming::kEnabled));
    CGRT_RETURN_IF_ERROR(stream_.ref().record(start));
    for (std::uint64_t i = 0; i < times; ++i) CGRT_RETURN_IF_ERROR(loaded_.launch(name_, stream_));
    CGRT_RETURN_IF_ERROR(stream_.ref().record(end));
    CGRT_RETURN_IF_ERROR(stream_.ref().synchronize());
    return cgrt::elapsed_time(start, end);
  }

  absl::Status write_outputs(const std::vector<NamedFile>& files) const {
    for (const NamedFile& one : files) {
      CGRT_ASSIGN_OR_RETURN(const cgrt::NamedBuffer buffer, loaded_.output(name_, one.name));
      std::string content(buffer.bytes, '\0');
      CGRT_RETURN_IF_ERROR(cgrt::copy(stream_, content.data(), buffer.data, buffer.bytes));
      CGRT_RETURN_IF_ERROR(stream_.ref().synchronize());
      CGRT_RETURN_IF_ERROR(cgrt::write_text_file(one.file, content));
    }
    return absl::OkStatus();
  }

 private:
  cgrt::LoadedBundle& loaded_;
  std::string name_;
  const cgrt::Stream& stream_;
  std::vector<std::pair<cgrt::NamedBuffer, std::string>> inputs_;
};

std::string load_text(double context_ms, const cgrt::LoadTimes& times) {
  const double memory_ms = absl::ToDoubleMilliseconds(times.memory);
  return absl::StrFormat(
      "context %.1f ms, addresses %.1f ms, code %.1f ms, memory %.1f ms (%.1f MB, %.1f GB/s), graphs %.1f ms\n",
      context_ms, absl::ToDoubleMilliseconds(times.addresses), absl::ToDoubleMilliseconds(times.code), memory_ms,
      static_cast<double>(times.memory_bytes) / 1e6, static_cast<double>(times.memory_bytes) / 1e6 / memory_ms,
      absl::ToDoubleMilliseconds(times.graphs));
}

std::string changed_text(const cgrt::saved::SavedGraph& graph) {
  std::string text;
  for (const cgrt::saved::Range& range : graph.changed_outside) {
    absl::StrAppend(&text, "warning: ", cgrt::counted(range.bytes, "byte"), " of memory ", range.block, ", from byte ",
                    range.offset,
                    ", change between launches and the graph does not write them: an input without a name, "
                    "such as a seed. Replays use what was saved.\n");
  }
  return text;
}

absl::StatusOr<std::string> timing_text(Player& player, std::uint64_t repeat) {
  constexpr std::size_t kSingle = 51;
  CGRT_RETURN_IF_ERROR(player.begin());
  std::vector<double> single;
  for (std::size_t i = 0; i < kSingle; ++i) {
    CGRT_ASSIGN_OR_RETURN(const absl::Duration took, player.time(1));
    single.push_back(absl::ToDoubleMicroseconds(took));
  }
  std::nth_element(single.begin(), single.begin() + kSingle / 2, single.end());
  std::string text = absl::StrFormat("replay: %.1f us (median of %d)", single[kSingle / 2], kSingle);
  if (repeat != 0) {
    CGRT_RETURN_IF_ERROR(player.begin());
    CGRT_ASSIGN_OR_RETURN(const absl::Duration took, player.time(repeat));
    absl::StrAppendFormat(&text, ", %.1f us (mean of %d in a row)",
                          absl::ToDoubleMicroseconds(took) / static_cast<double>(repeat), repeat);
  }
  return text + "\n";
}

struct Played {
  std::string text;
  bool is_different = false;
};

absl::StatusOr<Played> play_graph(cgrt::LoadedBundle& loaded, const cgrt::saved::SavedGraph& graph,
                                  const PlayOptions& options, bool is_first) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<NamedFile> inputs, named_files(options.inputs, "--input"));
  CGRT_ASSIGN_OR_RETURN(const std::vector<NamedFile> outputs, named_files(options.outputs, "--output"));
  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(kDevice));
  Player player(loaded, graph.name, stream);
  CGRT_RETURN_IF_ERROR(player.read_inputs(inputs));
  Played played{absl::StrCat("graph \"", graph.name, "\"\n", changed_text(graph))};
  // Loading has put the memory of the first graph there.
  CGRT_RETURN_IF_ERROR(is_first ? player.write_inputs() : player.begin());
  CGRT_RETURN_IF_ERROR(player.replay(1));
  if (const std::optional<double> ms = ms_since_process_start(); is_first && ms.has_value()) {
    absl::StrAppendFormat(&played.text, "first replay ended %.1f ms after the start of the process\n", *ms);
  }
  if (!inputs.empty()) {
    absl::StrAppend(&played.text, "not compared with the recording, since it was given inputs\n");
  } else if (!options.no_check) {
    const auto start = Clock::now();
    CGRT_ASSIGN_OR_RETURN(const std::vector<cgrt::MemoryDifference> differences, loaded.check(graph.name));
    std::uint64_t bytes = 0;
    for (const cgrt::saved::Range& range : graph.expected.ranges) bytes += range.bytes;
    played.is_different = !differences.empty();
    absl::StrAppendFormat(&played.text, "%s to the recording: %.1f MB compared in %.1f ms\n",
                          played.is_different ? "NOT EQUAL" : "bit-equal", static_cast<double>(bytes) / 1e6,
                          ms_since(start));
    for (const cgrt::MemoryDifference& one : differences) {
      absl::StrAppend(&played.text, "  differs first in ", one.text, "\n");
    }
  }
  if (options.repeat > 1) CGRT_RETURN_IF_ERROR(player.replay(options.repeat - 1));
  CGRT_RETURN_IF_ERROR(player.write_outputs(outputs));
  CGRT_ASSIGN_OR_RETURN(const std::string timing, timing_text(player, options.repeat));
  played.text += timing;
  return played;
}

absl::StatusOr<Played> play_bundle(const PlayOptions& options) {
  const auto start = Clock::now();
  CGRT_ASSIGN_OR_RETURN(const cgrt::Bundle bundle, cgrt::Bundle::open(options.path));
  CGRT_RETURN_IF_ERROR(cgrt::ContextRef(kDevice).get().status());
  const double context_ms = ms_since(start);
  cgrt::LoadOptions load;
  if (!options.graph.empty()) load.graphs.push_back(options.graph);
  if (options.is_anywhere) load.placement = cgrt::BundlePlacement::kAnywhere;
  absl::StatusOr<cgrt::LoadedBundle> loaded = bundle.load(kDevice, load);
  if (cgrt::are_addresses_taken(loaded.status())) run_again_without_randomization();
  if (!loaded.ok()) return loaded.status();

  Played all{load_text(context_ms, loaded->times())};
  const std::vector<cgrt::saved::SavedGraph>& graphs = bundle.folder().manifest().graphs;
  const bool names_buffers = !options.inputs.empty() || !options.outputs.empty();
  if (options.graph.empty() && graphs.size() > 1 && names_buffers) {
    return absl::InvalidArgumentError(absl::StrCat("The bundle has ", graphs.size(),
                                                   " graphs: say with --graph whose inputs and outputs these are."));
  }
  bool is_first = true;
  for (const cgrt::saved::SavedGraph& graph : graphs) {
    if (!options.graph.empty() && graph.name != options.graph) continue;
    CGRT_ASSIGN_OR_RETURN(const Played one, play_graph(*loaded, graph, options, std::exchange(is_first, false)));
    all.text += one.text;
    all.is_different |= one.is_different;
  }
  return all;
}

}  // namespace

int play(const PlayOptions& options) {
  const absl::StatusOr<Played> played = play_bundle(options);
  if (!played.ok()) return fail(played.status());
  return print(played->text, "", played->is_different ? kDifferent : kOk);
}

}  // namespace graphdump
