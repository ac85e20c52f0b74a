// Which words of a bundle are addresses, told by a second save of the same command in which memory had other addresses:
// what moved with its memory is one. A bundle for which that is known can be loaded anywhere.
//
//   CGRT_ASSIGN_OR_RETURN(const saved::Folder first, saved::Folder::open("step.bundle"));
//   CGRT_ASSIGN_OR_RETURN(const saved::Folder second, saved::Folder::open("second.bundle"));
//   CGRT_ASSIGN_OR_RETURN(const std::vector<saved::Movability> graphs, saved::compare_saves(first, second));
//   CGRT_RETURN_IF_ERROR(saved::mark_movable(first, graphs));
//
// Blocks of the two correspond by what points to them: allocations of the graphs first, then words of memory. Two equal
// graphs whose memory has other addresses say that each pointer moved. Other bytes of arguments are none where they are
// equal. Where they differ as an address that moved, whole, in its low half, or shifted, or are an address in one of
// the saves only, they are open: replays decide
// (bundle/prove_movable.h). A word of memory that points into a block is an address where the
// other save has the same place of the corresponding block. A word that points into none is a number, unless it moved
// as a block did. A word of memory that is neither address nor number by these rules makes the graph not movable, and
// so does one that points to memory which has the same address in both. Not seen here, but by replays at other
// addresses: values that a program made of an address in another way, as one in two halves apart.
//
// Thread-safe. Blocks, and reads in several threads; files are verified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {

// Bytes of a kernel node's arguments that may be of an address, at most one word of them. Structures have such bytes in
// them between their members: what was on the stack of the program.
struct OpenBytes {
  std::uint32_t node = 0;
  std::vector<std::uint32_t> at = {};  // in the parameter buffer, ascending
  std::string why_not = {};            // of a graph that needs what is in them
};

struct Movability {
  std::string why_not = {};                 // a sentence that names the word; empty: it is movable
  std::vector<AddressWord> addresses = {};  // ascending; none if it is not
  std::vector<OpenBytes> open = {};         // it is movable if it does the same whatever these are
};

// Of each graph of `first`, in their order. An error: a file is damaged.
absl::StatusOr<std::vector<Movability>> compare_saves(const Folder& first, const Folder& second);

// Writes into the manifest which graphs are movable: those of which nothing is open any more.
absl::Status mark_movable(const Folder& folder, const std::vector<Movability>& graphs);

}  // namespace cgrt::saved
