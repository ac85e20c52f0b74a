// Rows of any length, in chunks that blocks take in turn: first a chunk is read for the facts of its row, later, when
// all chunks of the row have been, it is read again, out of the L2 cache, and written. So the whole device works on a
// few long rows, and memory is read once.
//
//   tickets    read group 0 .. lag - 1, then in turn: read of group g + lag, write of group g; at last write the rest
//
// A block waits only for work with earlier tickets, which blocks that run have drawn. So it does not matter how many
// blocks run at once. What rows have found lies in a ring in scratch memory: who reads for a row that would take the
// place of an earlier one waits until the writers of that one have taken its facts. They have earlier tickets, too.
#pragma once

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// A row's facts are merged from Parts, of a chunk each.
template <class Part>
class ChunkedRows {
 public:
  // What the block has to do: read a chunk of `row`, or write it of the rows from `row` on; see end().
  bool is_to_write;
  std::uint32_t row, chunk, begin, count;  // `count` columns from `begin` on

  // `workspace`: see chunk_scratch_bytes.
  __device__ ChunkedRows(const RowChunks& shape, std::uint32_t rows, std::uint32_t columns, void* workspace)
      : shape_(shape),
        rows_(rows),
        columns_(columns),
        counters_(static_cast<WorkspaceHeader*>(workspace)->counters),
        parts_(reinterpret_cast<Part*>(static_cast<unsigned char*>(workspace) + kWorkspaceHeaderBytes)) {
    if (threadIdx.x == 0) ticket_ = atomicAdd(counters_ + kTicket, 1);
  }

  // The next work, for all threads; they meet in it. False when there is no more.
  __device__ bool next() {
    __shared__ uint3 items[2];  // of this time and of the last, at which slow threads may still look
    uint3& item = items[turn_ ^= 1];
    if (threadIdx.x == 0) {
      item = item_of(ticket_);
      if (item.z != kNone) ticket_ = atomicAdd(counters_ + kTicket, 1);  // of the next time
    }
    __syncthreads();
    row = item.x, chunk = item.y, is_to_write = item.z == kWrite;
    if (item.z == kNone) {
      leave();
      return false;
    }
    begin = chunk * shape_.columns;
    count = min(shape_.columns, columns_ - begin);
    return true;
  }
  // Behind the last row of this work: of a group's rows, those that are there.
  __device__ std::uint32_t end() const { return min(row + (is_to_write ? shape_.rows : 1), rows_); }

  // What the block has read. gather(part) merges what its threads have for all of them.
  template <class Gather>
  __device__ void put(Part part, Part nothing, Gather gather) {
    __shared__ bool is_last;
    const std::uint32_t place = row % shape_.ring, turn = row / shape_.ring;
    Part* const parts = parts_of(place);
    if (threadIdx.x == 0) {
      while (turn != 0 && load_acquired(taken(place)) < turn * shape_.chunks) {
      }
      parts[chunk] = part;
      is_last = add_released(read(place)) + 1 == (turn + 1) * shape_.chunks;
    }
    __syncthreads();
    if (!is_last) return;
    Part mine = nothing;
    for (std::uint32_t i = threadIdx.x; i < shape_.chunks; i += kChunkThreads) mine = merge(mine, load_part(parts + i));
    mine = gather(mine);
    if (threadIdx.x != 0) return;
    parts[shape_.chunks] = mine;
    add_released(found(place));
  }
  // The facts of a row of this group, for all threads; once of each. They meet in it.
  __device__ Part facts_of(std::uint32_t which) const {
    __shared__ Part facts[2];
    if (threadIdx.x == 0) {
      const std::uint32_t place = which % shape_.ring, turn = which / shape_.ring;
      while (load_acquired(found(place)) <= turn) {
      }
      facts[which % 2] = load_part(parts_of(place) + shape_.chunks);
      add_released(taken(place));
    }
    __syncthreads();
    return facts[which % 2];
  }

 private:
  static constexpr std::uint32_t kRead = 0, kWrite = 1, kNone = 2;

  __device__ uint3 item_of(std::uint32_t ticket) const {
    const std::uint32_t groups = (rows_ + shape_.rows - 1) / shape_.rows, lag = min(shape_.lag, groups);
    const std::uint32_t to_read = shape_.rows * shape_.chunks, both = to_read + shape_.chunks;  // of a group
    const auto read_of = [&](std::uint32_t group, std::uint32_t number) {
      const std::uint32_t in_group = number / shape_.chunks, which = group * shape_.rows + in_group;
      return uint3{which, number - in_group * shape_.chunks, kRead};
    };
    const auto write_of = [&](std::uint32_t group, std::uint32_t number) {
      return uint3{group * shape_.rows, number, kWrite};
    };
    if (ticket < lag * to_read) return read_of(ticket / to_read, ticket % to_read);
    ticket -= lag * to_read;
    if (ticket < (groups - lag) * both) {
      const std::uint32_t group = ticket / both, number = ticket - group * both, of_chunk = shape_.rows + 1;
      const std::uint32_t at = number / of_chunk, in_chunk = number - at * of_chunk;
      if (in_chunk == shape_.rows) return write_of(group, at);
      return read_of(group + lag, at * shape_.rows + in_chunk);
    }
    ticket -= (groups - lag) * both;
    if (ticket < lag * shape_.chunks) return write_of(groups - lag + ticket / shape_.chunks, ticket % shape_.chunks);
    return {0, 0, kNone};
  }

  // The last block leaves the counters as it has found them.
  __device__ void leave() const {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      __threadfence();
      is_last = atomicAdd(counters_ + kDone, 1) + 1 == gridDim.x;
    }
    __syncthreads();
    if (!is_last) return;
    for (std::uint32_t i = threadIdx.x; i < kChunkCounters + kCountersOfRow * shape_.ring; i += kChunkThreads)
      counters_[i] = 0;
  }

  // Counters, zero between launches.
  static constexpr std::uint32_t kTicket = 0, kDone = 1;  // the next one; blocks that are done
  __device__ std::uint32_t* of_row(std::uint32_t place) const {
    return counters_ + kChunkCounters + kCountersOfRow * place;
  }
  __device__ std::uint32_t* read(std::uint32_t place) const { return of_row(place); }       // chunks
  __device__ std::uint32_t* found(std::uint32_t place) const { return of_row(place) + 1; }  // facts of rows
  __device__ std::uint32_t* taken(std::uint32_t place) const { return of_row(place) + 2; }  // by so many chunks
  __device__ Part* parts_of(std::uint32_t place) const { return parts_ + std::uint64_t{place} * (shape_.chunks + 1); }

  // What was stored before another thread's add_released is seen after load_acquired has seen that, and by threads that
  // have met this one then.
  __device__ static std::uint32_t add_released(std::uint32_t* counter) {
    std::uint32_t before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
  }
  __device__ static std::uint32_t load_acquired(const std::uint32_t* counter) {
    std::uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
  }
  // Not from the L1 cache, where the place of an earlier row may be.
  __device__ static Part load_part(const Part* from) {
    constexpr int kWords = sizeof(Part) / 4;
    std::uint32_t words[kWords];
    Part part;
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldcg(reinterpret_cast<const std::uint32_t*>(from) + i);
    memcpy(&part, words, sizeof(part));
    return part;
  }

  const RowChunks shape_;
  const std::uint32_t rows_, columns_;
  std::uint32_t* const counters_;
  Part* const parts_;
  std::uint32_t ticket_ = 0, turn_ = 0;
};

}  // namespace cgrt::kernels
