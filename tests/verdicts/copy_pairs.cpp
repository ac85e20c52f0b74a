// Copies and memsets, of one row and of several.
#include "verdicts/pairs.h"

namespace cgrt::testing {
namespace {

// cuGraphExecUpdate and cuGraphExecMemcpyNodeSetParams; driver 580 takes such changes of memory that is mapped at one
// address for all.
constexpr const char* kMemoryOfOneKind = "operands stay in memory of the same kind, of the same device";

using ir::Rung;
using ir::Update;

constexpr std::size_t kBytes = kCount * sizeof(float);

template <class Params>
using Make = std::function<Params(const World&)>;

void add_copies(std::vector<Pair>& pairs) {
  const auto add = [&](const char* name, const Make<CopyParams>& a, const Make<CopyParams>& b, Rung rung, Update update,
                       Traits traits = {}) {
    const auto step = [](const Make<CopyParams>& make) {
      return [make](const World& w, LaunchTarget target) { return copy(target, make(w)); };
    };
    pairs.push_back(steps(name, step(a), step(b), rung, update, traits));
  };
  const auto row = [](int to, int from, std::size_t bytes) {
    return [=](const World& w) { return CopyParams{w.x(to), w.x(from), bytes}; };
  };
  add("a copy to another place", row(1, 0, kBytes), row(2, 0, kBytes), Rung::kSetParams, Update::kTaken);
  add("a copy from another place", row(1, 0, kBytes), row(1, 3, kBytes), Rung::kSetParams, Update::kTaken);
  add("a copy of fewer bytes", row(1, 0, kBytes), row(1, 0, kBytes / 2), Rung::kSetParams, Update::kTaken);
  add("a copy of more bytes", row(1, 0, kBytes), row(5, 0, 4 * kBytes), Rung::kSetParams, Update::kTaken);
  const auto to_host = [](const World& w) { return CopyParams{w.h(1), w.x(0), kBytes}; };
  const auto from_host = [](const World& w) { return CopyParams{w.x(1), w.h(0), kBytes}; };
  add("a copy to the host in the place of one in the device", row(1, 0, kBytes), to_host, Rung::kInstantiate,
      Update::kRefused, {.documented = kMemoryOfOneKind});
  add("a copy from the host in the place of one in the device", row(1, 0, kBytes), from_host, Rung::kInstantiate,
      Update::kRefused, {.documented = kMemoryOfOneKind});
  add("a copy the other way", to_host, from_host, Rung::kInstantiate, Update::kRefused,
      {.documented = kMemoryOfOneKind});
  add(
      "a copy to another place in the host", to_host,
      [](const World& w) {
        return CopyParams{w.h(2), w.x(0), kBytes};
      },
      Rung::kSetParams, Update::kTaken);

  const auto rows = [](int to, int from, std::size_t bytes, std::size_t height, std::size_t pitch = 64) {
    return [=](const World& w) { return CopyParams{w.x(to), w.x(from), bytes, height, 1, pitch, pitch}; };
  };
  add("rows copied to another place", rows(4, 0, 32, 4), rows(8, 0, 32, 4), Rung::kInstantiate, Update::kRefused,
      {.lenient = "sets copies of rows"});
  add("rows copied from another place", rows(4, 0, 32, 4), rows(4, 1, 32, 4), Rung::kInstantiate, Update::kRefused,
      {.lenient = "sets copies of rows"});
  constexpr const char* kAnySize = "takes copies of any size";
  add("wider rows copied", rows(4, 0, 32, 4), rows(4, 0, 48, 4), Rung::kInstantiate, Update::kRefused,
      {.lenient = kAnySize});
  add("more rows copied", rows(4, 0, 32, 4), rows(4, 0, 32, 5), Rung::kInstantiate, Update::kRefused,
      {.lenient = kAnySize});
  add("rows copied with another pitch", rows(4, 0, 32, 4), rows(4, 0, 32, 4, 128), Rung::kInstantiate, Update::kRefused,
      {.lenient = kAnySize});
  add("rows copied in the place of one", row(1, 0, 32), rows(1, 0, 32, 4), Rung::kInstantiate, Update::kRefused,
      {.lenient = kAnySize});
}

void add_memsets(std::vector<Pair>& pairs) {
  const auto add = [&](const char* name, FillParams a, FillParams b, Rung rung, Update update, Traits traits = {}) {
    // The destination is an offset into the memory.
    const auto step = [](FillParams fill) {
      return [fill](const World& w, LaunchTarget target) {
        FillParams placed = fill;
        placed.destination = w.memory.as<char>() + reinterpret_cast<std::uintptr_t>(fill.destination);
        return cgrt::fill(target, placed);
      };
    };
    pairs.push_back(steps(name, step(a), step(b), rung, update, traits));
  };
  const auto at = [](std::uintptr_t offset) { return reinterpret_cast<void*>(offset); };
  const FillParams row{at(0), 7, 4, 64};
  const auto changed = [](FillParams fill, auto change) {
    change(fill);
    return fill;
  };
  const FillParams other_value = changed(row, [](FillParams& fill) { fill.value = 9; });
  add("another value of a memset", row, other_value, Rung::kSetParams, Update::kTaken);
  add("a memset elsewhere", row, changed(row, [&](FillParams& fill) { fill.destination = at(1024); }), Rung::kSetParams,
      Update::kTaken);
  add("a shorter memset", row, changed(row, [](FillParams& fill) { fill.count = 32; }), Rung::kSetParams,
      Update::kMayBeRefused);
  add("a longer memset", row, changed(row, [](FillParams& fill) { fill.count = 1024; }), Rung::kSetParams,
      Update::kMayBeRefused);
  add("a memset of other elements", row, changed(row, [](FillParams& fill) { fill.element_bytes = 1; }),
      Rung::kSetParams, Update::kMayBeRefused);
  pairs.push_back(steps(
      "a memset of host memory in the place of one of the device",
      [](const World& w, LaunchTarget target) { return fill32(target, w.x(0), 7, kCount); },
      [](const World& w, LaunchTarget target) { return fill32(target, w.h(0), 7, kCount); }, Rung::kInstantiate,
      Update::kRefused, {.documented = kMemoryOfOneKind}));

  const FillParams rows{at(0), 7, 4, 4, 3, 64};
  constexpr const char* kAnySize = "takes memsets of any size";
  add("another value of rows", rows, changed(rows, [](FillParams& fill) { fill.value = 9; }), Rung::kSetParams,
      Update::kTaken);
  add("rows set elsewhere", rows, changed(rows, [&](FillParams& fill) { fill.destination = at(1024); }),
      Rung::kSetParams, Update::kTaken);
  add("more rows set", rows, changed(rows, [](FillParams& fill) { fill.height = 4; }), Rung::kInstantiate,
      Update::kRefused, {.lenient = kAnySize});
  add("wider rows set", rows, changed(rows, [](FillParams& fill) { fill.count = 8; }), Rung::kInstantiate,
      Update::kRefused, {.lenient = kAnySize});
  add("rows set in other elements", rows, changed(rows, [](FillParams& fill) { fill.element_bytes = 2; }),
      Rung::kInstantiate, Update::kRefused, {.lenient = kAnySize});
  add("rows set with another pitch", rows, changed(rows, [](FillParams& fill) { fill.pitch = 128; }),
      Rung::kInstantiate, Update::kRefused, {.lenient = kAnySize});
  add("rows set in the place of one", row, rows, Rung::kInstantiate, Update::kRefused, {.lenient = kAnySize});
}

}  // namespace

std::vector<Pair> copy_pairs() {
  std::vector<Pair> pairs;
  add_copies(pairs);
  add_memsets(pairs);
  return pairs;
}

}  // namespace cgrt::testing
