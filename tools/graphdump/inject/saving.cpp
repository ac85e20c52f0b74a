#include "inject/saving.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/save.h"
#include "cgrt/graph/walk.h"
#include "cgrt/saved/manifest.h"
#include "inject/environment.h"
#include "inject/graph_clone.h"
#include "inject/images.h"
#include "inject/marks.h"
#include "inject/nvtx.h"
#include "inject/session.h"

namespace graphdump::saving {
namespace {

using cgrt::Saver;

// What the user asked for.
struct Wishes {
  std::string folder = {};               // empty: nothing
  std::set<std::uint32_t> numbers = {};  // none: all
  std::string range = {};                // empty: all
  std::uint64_t launch = 1;
  std::vector<cgrt::BufferMark> inputs = {}, outputs = {};  // of graphs without marks
};

std::string text_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

std::vector<cgrt::BufferMark> operands_in(const char* variable) {
  std::vector<cgrt::BufferMark> operands;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(text_of(variable), '\n', absl::SkipEmpty()))) {
    if (absl::StatusOr<cgrt::BufferMark> operand = parse_operand(text); operand.ok()) {
      operands.push_back(*std::move(operand));
    } else {
      note(std::string(operand.status().message()));
    }
  }
  return operands;
}

const Wishes& wishes() {
  static const Wishes& value = *[] {
    auto* read = new Wishes{.folder = text_of(kSaveVariable), .range = text_of(kSaveRangeVariable)};
    const std::string numbers = text_of(kSaveGraphsVariable);
    for (const std::string& one : std::vector<std::string>(absl::StrSplit(numbers, ',', absl::SkipEmpty()))) {
      if (std::uint32_t number = 0; absl::SimpleAtoi(one, &number)) read->numbers.insert(number);
    }
    if (std::uint64_t launch = 0; absl::SimpleAtoi(text_of(kSaveLaunchVariable), &launch)) read->launch = launch;
    read->inputs = operands_in(kSaveInputsVariable);
    read->outputs = operands_in(kSaveOutputsVariable);
    return read;
  }();
  return value;
}

struct Exec {
  std::uint32_t number = 0;
  cgrt::SavedMarks marks = {};
  std::shared_ptr<Saver::Prepared> prepared = {};
  std::unique_ptr<GraphClone> clone = {};  // null: it could not be made, or is not what the executable is any more
  bool was_set = false;                    // it has parameters that `prepared` has not
  std::uint64_t launches = 0;
  bool is_saved = false, was_passed_over = false;
};

struct State {
  std::mutex mutex;
  std::optional<Saver> saver;
  absl::flat_hash_map<CUgraphExec, Exec> execs;  // that are to be saved, or to be compared
  std::set<std::uint32_t> waiting;               // numbers of those that are to be saved
  cgrt::SavedMarks marks;                        // since a graph was prepared with some
  bool are_marks_used = false;
  std::vector<cgrt::MemoryRange> dead;
};
// Never destroyed: the process may use CUDA after main has returned.
State& state() {
  static State& value = *new State();
  return value;
}

// The launch of this thread that is being saved, with the lock of the state; null: none.
struct Launch {
  std::unique_lock<std::mutex> lock;
  CUgraphExec exec;
};
thread_local Launch* current = nullptr;

// The executable that this thread is destroying.
using Destroyed = decltype(State::execs)::node_type;
thread_local Destroyed* destroyed = nullptr;

void note_not_saved(std::uint32_t number, const absl::Status& why) {
  note(absl::StrCat("Graph ", number, " was not saved: ", why.message()));
}

// Says at the end which graphs were launched too seldom.
void note_waiting() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.waiting.empty()) return;
  note(absl::StrCat("Not saved, since launched fewer than ", cgrt::counted(wishes().launch, "time"), ": ",
                    all.waiting.size() == 1 ? "graph " : "graphs ", absl::StrJoin(all.waiting, ", "), "."));
}

absl::Status make_saver(State& all) {
  if (all.saver.has_value()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(Saver saver,
                        Saver::create(absl::StrCat(wishes().folder, "/", file_prefix()), &images::image_of));
  all.saver.emplace(std::move(saver));
  std::atexit(&note_waiting);
  return absl::OkStatus();
}

bool is_in_range(std::string_view scope) {
  for (std::string_view rest = scope;;) {
    const std::size_t slash = rest.find('/');
    if (rest.substr(0, slash) == wishes().range) return true;
    if (slash == std::string_view::npos) return false;
    rest.remove_prefix(slash + 1);
  }
}

bool is_chosen(const cgrt::internal::Walk& walk, std::uint32_t number) {
  const Wishes& wanted = wishes();
  if (walk.nodes.size() < limits().min_nodes) return false;
  if (!wanted.numbers.empty() && !wanted.numbers.contains(number)) return false;
  return wanted.range.empty() || is_in_range(current_scope()) ||
         std::any_of(walk.nodes.begin(), walk.nodes.end(),
                     [&](const auto& node) { return is_in_range(walk.scope_of(node)); });
}

// Those since the last graph; where there are none its, as far as the graph uses that memory.
cgrt::SavedMarks marks_for_next(State& all) {
  const bool has_marks = !all.marks.inputs.empty() || !all.marks.outputs.empty();
  const bool are_of_another = std::exchange(all.are_marks_used, true);
  cgrt::SavedMarks marks = has_marks ? all.marks : cgrt::SavedMarks{wishes().inputs, wishes().outputs};
  if (!has_marks || !are_of_another) return marks;
  for (std::vector<cgrt::BufferMark>* list : {&marks.inputs, &marks.outputs}) {
    for (cgrt::BufferMark& mark : *list) mark.is_optional = true;
  }
  return marks;
}

void replace(std::vector<cgrt::BufferMark>& marks, cgrt::BufferMark mark) {
  std::erase_if(marks, [&](const cgrt::BufferMark& one) { return one.name == mark.name; });
  marks.push_back(std::move(mark));
}

void compare(State& all, const Exec& exec) {
  const absl::StatusOr<cgrt::OutsideChanges> changes = all.saver->compare(exec.prepared);
  if (!changes.ok()) {
    return note(absl::StrCat("What changes between launches of graph ", exec.number,
                             " is not known: ", changes.status().message()));
  }
  if (changes->places == 0) return;
  note(absl::StrCat("Between launches of graph ", exec.number, " ", cgrt::counted(changes->bytes, "byte"),
                    " of its memory change in ", cgrt::counted(changes->places, "place"),
                    ", which no input is named for: a replay has there what the saved launch had."));
}

// False: it cannot be saved, which is said.
bool prepare(State& all, Exec& exec, CUgraph graph, GraphClone::NoteOf note_of) {
  exec.prepared = nullptr;  // its name is free again
  absl::StatusOr<std::shared_ptr<Saver::Prepared>> prepared =
      all.saver->prepare(graph, absl::StrCat("graph-", exec.number), exec.marks, note_of);
  if (!prepared.ok()) {
    note_not_saved(exec.number, prepared.status());
    return false;
  }
  exec.prepared = *std::move(prepared);
  return true;
}

std::unique_ptr<GraphClone> clone_of(CUgraph graph, GraphClone::NoteOf note_of) {
  auto clone = std::make_unique<GraphClone>();
  if (clone->make(graph, note_of) != NotFollowed::kNone) return nullptr;
  return clone;
}

absl::Status is_changed(std::string_view how) {
  return absl::UnimplementedError(absl::StrCat(std::string(how),
                                               " after it was instantiated. Save an earlier launch, "
                                               "or instantiate the graph as it is to be."));
}

void give_up(State& all, absl::flat_hash_map<CUgraphExec, Exec>::iterator exec) {
  all.waiting.erase(exec->second.number);
  all.execs.erase(exec);
}

}  // namespace

bool is_on() { return !wishes().folder.empty(); }

void on_instantiate(CUgraph graph, CUgraphExec exec, std::uint32_t number, ExecRecord* record,
                    absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)> note_of) {
  const absl::StatusOr<cgrt::internal::Walk> walk = cgrt::internal::walk(graph, note_of);
  if (exec == nullptr) return;
  if (!walk.ok()) return note_not_saved(number, walk.status());
  if (record != nullptr) record->nodes = walk->nodes.size();
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.execs.erase(exec);
  if (!is_chosen(*walk, number)) return;
  if (const absl::Status status = make_saver(all); !status.ok()) return note_not_saved(number, status);
  Exec made{.number = number, .marks = marks_for_next(all)};
  if (!prepare(all, made, graph, note_of)) return;
  made.clone = clone_of(graph, note_of);
  all.execs[exec] = std::move(made);
  all.waiting.insert(number);
}

void on_update(CUgraphExec exec, CUgraph graph, GraphClone::NoteOf note_of) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.execs.find(exec);
  if (found == all.execs.end() || found->second.is_saved) return;
  if (!prepare(all, found->second, graph, note_of)) return give_up(all, found);
  found->second.clone = nullptr;  // nodes that are set are still those of the graph that it was made of
  found->second.was_set = false;
}

void on_set_params(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.execs.find(exec);
  if (found == all.execs.end() || found->second.is_saved) return;
  Exec& one = found->second;
  if (one.clone != nullptr && one.clone->set(node, params) == NotFollowed::kNone) {
    one.was_set = true;
    return;
  }
  note_not_saved(one.number, is_changed("parameters of a node were set"));
  give_up(all, found);
}

void on_change(CUgraphExec exec, std::string_view how) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.execs.find(exec);
  if (found == all.execs.end() || found->second.is_saved) return;
  note_not_saved(found->second.number, is_changed(how));
  give_up(all, found);
}

void before_exec_destroy(CUgraphExec exec) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  destroyed = new Destroyed(all.execs.extract(exec));
}

void after_exec_destroy(CUresult result) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const std::unique_ptr<Destroyed> gone(std::exchange(destroyed, nullptr));
  if (gone != nullptr && result != CUDA_SUCCESS) all.execs.insert(std::move(*gone));
}

void before_launch(CUgraphExec exec, bool is_capturing) {
  State& all = state();
  std::unique_lock lock(all.mutex);
  const auto found = all.execs.find(exec);
  if (found == all.execs.end()) return;
  Exec& one = found->second;
  if (!one.is_saved && one.launches + 1 < wishes().launch) return;
  if (is_capturing) {
    if (!one.is_saved && !std::exchange(one.was_passed_over, true)) {
      note(absl::StrCat("Launch ", one.launches + 1, " of graph ", one.number,
                        " was passed over: a stream was being captured."));
    }
    return;
  }
  if (one.is_saved) {
    compare(all, one);
    all.execs.erase(found);
    return;
  }
  const auto note_of = [&](CUgraphNode node) { return one.clone->note_of(node); };
  if (one.was_set && !prepare(all, one, one.clone->get(), note_of)) return give_up(all, found);
  one.clone = nullptr;
  if (const absl::Status status = all.saver->begin(one.prepared, one.launches + 1, all.dead); !status.ok()) {
    note_not_saved(one.number, status);
    return give_up(all, found);
  }
  current = new Launch{std::move(lock), exec};
}

void after_launch(CUgraphExec exec, CUresult result) {
  State& all = state();
  const std::unique_ptr<Launch> saved(std::exchange(current, nullptr));
  std::unique_lock<std::mutex> lock;
  if (saved == nullptr) lock = std::unique_lock(all.mutex);
  const auto found = all.execs.find(exec);
  if (found == all.execs.end()) return;
  Exec& one = found->second;
  if (result == CUDA_SUCCESS) ++one.launches;
  if (saved == nullptr) return;
  absl::Status status = absl::AbortedError("its launch has failed.");
  if (result == CUDA_SUCCESS) {
    status = all.saver->finish(one.prepared);
  } else {
    all.saver->abandon(one.prepared);
  }
  all.waiting.erase(one.number);
  one.is_saved = status.ok();
  if (status.ok()) return;
  note_not_saved(one.number, status);
  all.execs.erase(found);
}

void on_mark(std::string_view text) {
  absl::StatusOr<std::optional<Mark>> mark = parse_mark(text);
  if (!mark.ok()) return note(std::string(mark.status().message()));
  if (!mark->has_value()) return;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  switch ((*mark)->kind) {
    case Mark::Kind::kDead: all.dead.push_back((*mark)->dead); return;
    case Mark::Kind::kNoneDead: all.dead.clear(); return;
    default: break;
  }
  if (std::exchange(all.are_marks_used, false)) all.marks = {};
  const bool is_input = (*mark)->kind == Mark::Kind::kInput;
  replace(is_input ? all.marks.inputs : all.marks.outputs, std::move((*mark)->buffer));
}

}  // namespace graphdump::saving
