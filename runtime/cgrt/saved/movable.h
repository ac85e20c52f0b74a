// Which words of a bundle are addresses, told by a second save of the same command in which memory had other addresses:
// what moved with its memory is one. A bundle for which that is known can be loaded anywhere.
//
//   CGRT_ASSIGN_OR_RETURN(const saved::Folder first, saved::Folder::open("step.bundle"));
//   CGRT_ASSIGN_OR_RETURN(const saved::Folder second, saved::Folder::open("second.bundle"));
//   CGRT_RETURN_IF_ERROR(saved::mark_movable(first, second));
//
// Blocks of the two correspond by what points to them: allocations of the graphs first, then words of memory. Two equal
// graphs whose memory has other addresses say that each pointer moved. Other bytes of arguments are none where they are
// equal, and where they differ otherwise than an address that moved as a block did, whole, in its low half, or shifted.
// A word of memory that points into a block is an address where the other save has the same place of the corresponding
// block. A word that points into none is a number, unless it moved as a block did. A word that is neither address nor
// number by these rules makes the graph not movable, and so does one that points to memory which has the same address
// in both. Not seen: values that a program made of an address in another way, as one in two halves apart.
//
// Thread-safe. Blocks, and reads in several threads; files are verified.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {

struct Movability {
  std::string why_not = {};                 // a sentence that names the word; empty: it is movable
  std::vector<AddressWord> addresses = {};  // ascending; none if it is not
};

// Of each graph of `first`, in their order. An error: a file is damaged.
absl::StatusOr<std::vector<Movability>> compare_saves(const Folder& first, const Folder& second);

// Writes what compare_saves() says into the manifest of `first`.
absl::Status mark_movable(const Folder& first, const Folder& second);

}  // namespace cgrt::saved
