// A bundle: CUDA graphs as a folder, with the code of their kernels and the memory that they use, so that another
// process can replay them (bundle/bundle.h). Here it is plain data:
//
//   DIR/manifest.json               Manifest
//   DIR/graphs/NAME.HASH.cgrt.json  a graph of it (inspect/json.h); graphdump reads it like any other
//   DIR/code/HASH                   images of code
//   DIR/memory/HASH                 pieces of memory, and what they are expected to be after a launch
//
// A GraphIr holds no addresses and no code: SavedGraph says which kernels its nodes run, and in which Block each of its
// allocations lies. saved/folder.h reads and writes the folder; bundle_schema.md describes the file.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/saved/hash.h"

namespace cgrt::saved {

inline constexpr char kBundleSchema[] = "cgrt-bundle";
inline constexpr int kBundleVersion = 1;
inline constexpr char kManifestFile[] = "manifest.json";

// A piece of memory is a file of at most this many bytes: pieces are read, checked and copied side by side, and a piece
// that several graphs have in common is one file.
inline constexpr std::uint64_t kMaxPieceBytes = std::uint64_t{4} << 20;
// ExpectedMemory has a hash for each this many bytes.
inline constexpr std::uint64_t kExpectedBytes = 4096;
inline constexpr std::uint64_t kMaxCodeBytes = std::uint64_t{1} << 30;

// What the graphs ran on.
struct Machine {
  std::string device = {};             // "NVIDIA H200"
  std::uint32_t major = 0, minor = 0;  // compute capability
  std::uint32_t multiprocessors = 0;
  std::uint32_t driver = 0;  // as cuDriverGetVersion: 13000
  // Limits of the context, in bytes; 0: not known.
  std::uint64_t stack_bytes = 0, printf_bytes = 0, heap_bytes = 0;
  bool operator==(const Machine&) const = default;
};

// An image of code: a cubin, a fatbin or PTX. Of at most kMaxCodeBytes.
struct Module {
  Hash code = {};
  std::uint64_t bytes = 0;
  bool operator==(const Module&) const = default;
};

// Memory that graphs use, one after the other by address, none overlapping. Of kind kDevice, kPinnedHost, kManaged or
// kPageableHost; the last only where operands of copies are in it.
struct Block {
  ir::MemoryKind kind = ir::MemoryKind::kDevice;
  std::uint64_t address = 0;  // in the process that was saved
  std::uint64_t bytes = 0;
  // Not empty: it is this variable (__device__ or __constant__) of `module`, whose address the driver chooses.
  std::string variable = {};
  std::uint32_t module = 0;
  bool operator==(const Block&) const = default;
};

// Of a block.
struct Range {
  std::uint32_t block = 0;
  std::uint64_t offset = 0, bytes = 0;
  bool operator==(const Range&) const = default;
};

struct Piece {
  Range range = {};               // of at most kMaxPieceBytes, unless it is all zeros
  std::optional<Hash> hash = {};  // DIR/memory/HASH; nullopt: all zeros
  bool operator==(const Piece&) const = default;
};

// What memory has in it after the launch that was saved: for each range, in order, a hash (short_hash_of) for each
// kExpectedBytes of it and for the rest, 8 bytes each in the file DIR/memory/HASH, little-endian. Ranges ascend; where
// there are none, there is no file.
struct ExpectedMemory {
  std::vector<Range> ranges = {};
  Hash hashes = {};
  bool operator==(const ExpectedMemory&) const = default;
};

// A word of 8 bytes that is an address.
struct AddressWord {
  std::uint32_t block = 0;
  std::uint64_t offset = 0;
  auto operator<=>(const AddressWord&) const = default;
};
inline constexpr std::uint64_t kAddressBytes = 8;

// Which words of a graph's pieces are addresses: their offsets are in the file DIR/memory/HASH, 8 bytes each,
// little-endian, ascending in each block, block after block. Where there are none, there is no file.
struct AddressWords {
  struct InBlock {
    std::uint32_t block = 0;
    std::uint64_t count = 0;
    bool operator==(const InBlock&) const = default;
  };
  std::vector<InBlock> blocks = {};  // ascending
  Hash offsets = {};
  bool operator==(const AddressWords&) const = default;
};

// What a kernel node runs.
struct Kernel {
  std::string symbol = {};  // as in the image: mangled
  std::uint32_t module = 0;
  // Of the function, where they were set; nullopt: not.
  std::optional<std::uint32_t> max_dynamic_shared_bytes = {};
  std::optional<std::int32_t> preferred_carveout_percent = {};
  bool allows_large_clusters = false;  // cluster sizes that are not portable
  bool operator==(const Kernel&) const = default;
};

// Rows from one slice to the next, of a copy in three dimensions: ir::MemcpyParams lacks them.
struct Slices {
  std::uint32_t node = 0;
  std::uint64_t source_rows = 0, destination_rows = 0;
  bool operator==(const Slices&) const = default;
};

// Memory with a name, for whoever replays the graph.
struct Buffer {
  std::string name = {};
  Range range = {};
  std::string dtype = {};                 // as it was named: "float16"; empty: not
  std::vector<std::uint64_t> shape = {};  // empty: not known
  bool operator==(const Buffer&) const = default;
};

struct SavedGraph {
  std::string name = {};     // is_name() holds
  Hash file = {};            // of its file in DIR/graphs
  std::uint64_t launch = 1;  // which one of the executable was saved, from 1
  std::vector<Kernel> kernels = {};
  std::vector<std::uint32_t> node_kernels = {};  // of the kernel nodes, in order: indices into `kernels`
  std::vector<Range> allocations = {};           // of GraphIr::allocations: where they are; `bytes` may be more there
  std::vector<Slices> slices = {};
  std::vector<Piece> memory = {};  // at the entry of the launch, ascending; what is in no piece may be anything
  ExpectedMemory expected = {};
  std::vector<Buffer> inputs = {}, outputs = {};
  std::vector<Range> changed_outside = {};  // ascending: changes between launches though the graph does not write it
  std::vector<Range> dead = {};             // ascending: free, as an allocator said
  // Whether its memory can have other addresses: all that have to change are those of its nodes and `addresses`
  // (saved/movable.h).
  bool is_movable = false;
  std::string why_not_movable = {};  // a sentence; empty: it was saved once
  AddressWords addresses = {};
  bool operator==(const SavedGraph&) const = default;
};

struct Manifest {
  Machine machine = {};
  std::vector<Module> modules = {};
  std::vector<Block> blocks = {};
  std::vector<SavedGraph> graphs = {};  // names differ
  bool operator==(const Manifest&) const = default;
};

// How many hashes `expected` has.
std::uint64_t expected_hashes(const ExpectedMemory& expected);

// Whether a graph or buffer can have it: 1 to 100 letters, digits, '_', '-' and '.', the first no '.'.
bool is_name(std::string_view text);

// kInvalidArgument with a sentence where an index, range, name or order is not as said above. Ranges are never empty.
absl::Status validate(const Manifest& manifest);
// The same of a graph and what the manifest says of it: all that its nodes point to, and the bytes that copies and
// memsets take, are inside of blocks.
absl::Status validate(const Manifest& manifest, const SavedGraph& saved, const ir::GraphIr& graph);

}  // namespace cgrt::saved
