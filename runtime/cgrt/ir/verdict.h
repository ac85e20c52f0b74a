// What it takes to make an executable of one graph do what another graph does, and why.
//
//   const ir::Differences changes = ir::differences(before, after);
//   const ir::Verdicts verdicts = ir::judge(before, after, changes);
//   std::puts(ir::to_string(verdicts.rung));                          // "rebind", ..., "instantiate anew"
//   if (verdicts.update == ir::Update::kRefused) std::puts(verdicts.update_rule.c_str());
//
// The rules are those of CUDA 13.0 as documented, and as measured on an H200 with driver 580 where the documentation
// leaves room; tests/verdicts asks a driver about each. What a graph's file does not say is not judged: absolute
// addresses (buffers that moved need the same rung as another argument, even where no difference is seen), host
// functions, which events and semaphores, and whether a kernel launches work from the device.
//
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cgrt/ir/diff.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

// From the cheapest up. Each can do what those before it can, but kWholeUpdate: see Update.
enum class Rung : std::uint8_t {
  kNone,         // the executable does it already
  kRebind,       // GraphExec::rebind of a rebindable executable: arguments and grids, on the device
  kSetParams,    // cuGraphExecKernelNodeSetParams and the like, of each node that changes
  kWholeUpdate,  // cuGraphExecUpdate
  kInstantiate,  // a new executable
};
const char* to_string(Rung rung);  // "none", "rebind", "set-params", "whole-graph update", "instantiate anew"

// What cuGraphExecUpdate makes of a change, in a plain executable.
enum class Update : std::uint8_t {
  kTaken,
  kMayBeRefused,  // the driver decides, by resources that no file tells of
  kLost,          // it succeeds, and the executable keeps what it had
  kRefused,
};
const char* to_string(Update update);  // "taken over", "may be refused", "succeeds and loses it", "refused"

struct Verdict {
  Rung rung = Rung::kNone;
  Update update = Update::kTaken;
  std::string rule = {};  // a sentence without a full stop; empty where the rung says it all
};

struct Verdicts {
  std::vector<Verdict> changes;    // one for each of Differences::changes
  Verdict nodes, edges;            // of nodes and edges that one graph has alone; kNone where there are none
  Rung rung = Rung::kNone;         // that does all of them
  bool is_by_position = false;     // only where nodes are taken as match_by_position does
  std::string rule = {};           // where it is another than the highest of the changes: why
  Update update = Update::kTaken;  // what cuGraphExecUpdate makes of the whole
  std::string update_rule = {};    // of the first change that it does not take
};

// Each node of `a` with that of its id in `b`, where both are of one kind: how cuGraphExecUpdate pairs the nodes of two
// graphs that were made in the same order.
std::vector<std::uint32_t> match_by_position(const GraphIr& a, const GraphIr& b);

// `changes` are the differences of `a`, whose executable it is, and `b`. Both graphs must be valid.
Verdicts judge(const GraphIr& a, const GraphIr& b, const Differences& changes);

}  // namespace cgrt::ir
