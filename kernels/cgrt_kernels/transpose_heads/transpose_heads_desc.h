// The transposition between heads and tokens around an attention, with and without padding: what can be asked for.
// Plain: no Abseil. The functions that plan and launch are in transpose_heads.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

enum class TransposeHeadsOp : std::uint8_t {
  kMerge,  // [sequences, heads, positions, head_size] to rows of tokens: what an attention gives
  kSplit,  // rows of tokens to [sequences, heads, positions, head_size]: what an attention takes
};
constexpr const char* to_string(TransposeHeadsOp op) {
  return op == TransposeHeadsOp::kMerge ? "merge_heads" : "split_heads";
}

// Rows of tokens, of [heads, head_size] each.
enum class TokenRows : std::uint8_t {
  kPadded,  // [sequences, positions]: `positions` for each sequence
  kPacked,  // [tokens]: those of all sequences, one after the other, without padding
};

// With one head the order stays, and packed rows are those without padding: kMerge removes it, kSplit puts it back.
struct TransposeHeadsDesc {
  TransposeHeadsOp op = TransposeHeadsOp::kMerge;
  DType type = DType::kFloat16;  // or bfloat16, float32: elements are moved as they are
  TokenRows rows = TokenRows::kPadded;
  std::uint64_t sequences = 0, positions = 0, heads = 0, head_size = 0;
  std::uint64_t tokens = 0;  // packed rows, at most
};

// Device addresses of contiguous arrays that do not overlap, aligned to the size of their elements.
//
// Of packed rows sequence i has those from offsets[i] to offsets[i + 1] - 1, `positions` at most: more are left out, as
// are rows from `tokens` on, and all of a sequence that begins below 0. kMerge writes no other rows; kSplit writes
// zeros behind a sequence's end.
struct TransposeHeadsArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const std::int32_t* offsets = nullptr;  // [sequences + 1], with kPacked
};

}  // namespace cgrt::kernels
