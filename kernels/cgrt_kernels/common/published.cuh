// How blocks of one launch pass values to each other. Each 4 bytes travel in a word of 8, beside a tag; a reader knows
// by the tag that the value has arrived, with no fence and no second flag.
//
// A block waits only for blocks that have begun. A counter or the order of tickets says which these are. A block that
// has not begun may never get a multiprocessor while this one waits: another launch may hold all others.
#pragma once

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// A ticket: in the lower half its number in this launch, from 0 on; in the upper half how many launches have drawn
// tickets before. That number plus 1 is the launch's tag.
__device__ __forceinline__ std::uint64_t draw_ticket(WorkspaceHeader* header) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(&header->launches), 1ull);
}
__device__ __forceinline__ std::uint32_t tag_of(std::uint64_t ticket) {
  return static_cast<std::uint32_t>(ticket >> 32) + 1;
}
// The block that draws the last ticket of a launch sets the counter for the next launch, as every block has its own
// tickets by then. The launch writes the first `used` of the tagged words. One of the others is zeroed: tags repeat
// after 2^32 launches, and a launch would take a word with its tag for its own.
__device__ __forceinline__ void end_if_last(WorkspaceHeader* header, std::uint64_t ticket, std::uint32_t last,
                                            std::uint32_t used) {
  if (static_cast<std::uint32_t>(ticket) != last) return;
  const std::uint32_t tag = tag_of(ticket), word = tag % WorkspaceHeader::kTaggedWords;
  header->launches = std::uint64_t{tag == ~0u ? 0 : tag} << 32;  // no tag is 0
  if (word >= used) header->tagged[word] = 0;
}

// A published value: each 4 bytes in a word with the launch's tag.
template <class Value>
struct Published {
  static constexpr int kWords = sizeof(Value) / 4;
  std::uint64_t words[kWords];

  __device__ __forceinline__ void set_zero(std::uint32_t tag) {
#pragma unroll
    for (std::uint64_t& word : words) word = std::uint64_t{tag} << 32;
  }
  __device__ __forceinline__ bool is_there(std::uint32_t tag) const {
    bool is_there = true;
#pragma unroll
    for (const std::uint64_t word : words) is_there &= word >> 32 == tag;
    return is_there;
  }
  __device__ __forceinline__ Value value() const {
    std::uint32_t parts[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) parts[i] = static_cast<std::uint32_t>(words[i]);
    Value value;
    memcpy(&value, parts, sizeof(Value));
    return value;
  }
};

__device__ __forceinline__ void store_word(std::uint64_t* at, std::uint64_t word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

template <class Value>
__device__ __forceinline__ void load_published(Published<Value>& value, const Published<Value>* from) {
#pragma unroll
  for (int i = 0; i < Published<Value>::kWords; ++i) {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value.words[i]) : "l"(from->words + i) : "memory");
  }
}

template <class Value>
__device__ __forceinline__ void publish(Published<Value>* at, Value value, std::uint32_t tag) {
  std::uint32_t parts[Published<Value>::kWords];
  memcpy(parts, &value, sizeof(Value));
#pragma unroll
  for (int i = 0; i < Published<Value>::kWords; ++i) store_word(at->words + i, std::uint64_t{tag} << 32 | parts[i]);
}

}  // namespace cgrt::kernels
