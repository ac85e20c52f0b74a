// Which words of kernels' arguments differ between captures of one program, and which do not but might have to: a step
// counter, a length or the seed of random numbers that was baked into the graph.
//
//   const ir::GraphIr captures[] = {before, after};
//   for (const ir::VaryingWord& word : ir::find_varying(captures).varying) std::puts(word.values[0].c_str());
//
// Capture the steps that are to differ: of captures of one step nothing can be learned. Addresses are compared as
// (allocation, offset), so that a buffer that merely lies elsewhere does not vary.
//
// Thread-safe: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

// An argument of 8 bytes or fewer is one word. In a longer one an address is a word, and every 4 bytes beside.
struct WordPlace {
  std::size_t argument = 0;           // position
  std::uint32_t byte = 0, bytes = 0;  // in the argument
  auto operator<=>(const WordPlace&) const = default;
};
std::string describe(const WordPlace& place);  // "argument 2, 4 bytes", "argument 2 byte 16, 8 bytes"

struct VaryingWord {
  std::uint32_t node = 0;  // of the first graph
  WordPlace place;
  std::vector<std::string> values = {};  // in each graph
};

// The same in all graphs, in nodes of which another word varies. No address.
struct ConstantWord {
  std::uint32_t function = 0;  // of the first graph
  WordPlace place;
  std::size_t nodes = 0;            // of that function
  std::vector<std::string> values;  // those that there are, each once
};

struct Varying {
  std::size_t nodes = 0;               // kernels that all graphs have
  std::size_t left_out = 0;            // of the first graph, kernels that not all have
  std::vector<VaryingWord> varying;    // in the order of nodes and words
  std::vector<ConstantWord> constant;  // in the order of functions and words
  // Where a seed or offset of random numbers may be baked in: words of 8 bytes that are the same in all graphs, of
  // kernels that are named after philox, curand, rng, random or dropout; and any two such words that follow each other,
  // of which the first has more than 40 bits and is no plausible floating-point number,
  // nor two sizes or such numbers of 4 bytes.
  std::vector<VaryingWord> seeds;
};

// At least two graphs, which must be valid.
Varying find_varying(std::span<const GraphIr> graphs);

}  // namespace cgrt::ir
