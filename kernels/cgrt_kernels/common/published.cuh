// How blocks of one launch tell each other values: in words that carry a tag as soon as they are there.
//
// A block waits only for blocks that have begun, which a counter or the order of tickets tells it: others may never
// find a multiprocessor while this one waits, be it for a block like it of another launch.
#pragma once

#include <cstdint>
#include <cstring>

namespace cgrt::kernels {

// A counter of tickets, zero before its first launch. Its upper half counts launches: plus 1, that is a launch's
// tag. Who draws the last ticket of a launch sets it for the next one, since by then every block has its own.
__device__ __forceinline__ std::uint64_t draw_ticket(void* counter) {
  return atomicAdd(static_cast<unsigned long long*>(counter), 1ull);
}
__device__ __forceinline__ void reset_if_last(void* counter, std::uint64_t ticket, std::uint32_t last) {
  if (static_cast<std::uint32_t>(ticket) == last) *static_cast<std::uint64_t*>(counter) = ((ticket >> 32) + 1) << 32;
}
__device__ __forceinline__ std::uint32_t tag_of(std::uint64_t ticket) {
  return static_cast<std::uint32_t>(ticket >> 32) + 1;
}

// A published value: each 4 bytes in a word with a tag, so that a word says itself whether it is there. Nothing else
// has to be visible with it.
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
