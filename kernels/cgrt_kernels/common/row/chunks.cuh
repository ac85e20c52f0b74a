// Rows of any length, in chunks that blocks take in turn: first a chunk is read for the facts of its row, later, when
// all chunks of the row have been, it is read again, out of the L2 cache, and written. So the whole device works on a
// few long rows, and memory is read once.
//
//   tickets    read group 0 .. lag - 1, then in turn: read of group g + lag, write of group g; at last write the rest
//
// A ticket is a chunk of a group of rows, one after the other: what they have in common is fetched once. A block has
// the next chunks in flight. It waits only for work with earlier tickets, which blocks that run have drawn; so it does
// not matter how many blocks run at once. What rows have found lies in a ring in scratch memory: who reads for a row
// that would take the place of an earlier one waits until the writers of that one have taken its facts. They have
// earlier tickets, too.
#pragma once

#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/published.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/row/scalars.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/common/row/window.cuh"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// What threads keep of a chunk: packs, or single elements where the same columns of all rows are wanted, or floats.
template <class T, int kArrays>
using ChunkTile = Tile<T, chunk_packs(kArrays), 32, Alignment::kUnaligned>;
template <class T, int kArrays>
using ChunkScalars = Scalars<T, chunk_elements(sizeof(T), kArrays)>;

// A row's facts are merged from Parts, of a chunk of kArrays arrays each.
template <class T, class Part, int kArrays>
class ChunkedRows {
 public:
  // What the block has to do: read `count` columns of a row from `begin` on, or write them. is_new, is_last: the row is
  // the first, the last one of its group.
  bool is_to_write, is_new, is_last;
  std::uint32_t row, begin, count;

  // `workspace`: see chunk_scratch_bytes. `landing`: shared memory for shape.stages. One thread asks for the first
  // work.
  __device__ ChunkedRows(const RowChunks& shape, std::uint32_t rows, std::uint32_t columns, void* workspace,
                         uint4* landing, const void* const (&arrays)[kArrays])
      : shape_(shape),
        rows_(rows),
        columns_(columns),
        header_(static_cast<WorkspaceHeader*>(workspace)),
        parts_(reinterpret_cast<Part*>(static_cast<unsigned char*>(workspace) + kWorkspaceHeaderBytes)),
        landing_(reinterpret_cast<unsigned char*>(landing)) {
#pragma unroll
    for (int a = 0; a < kArrays; ++a) arrays_[a] = static_cast<const T*>(arrays[a]);
    if (threadIdx.x == 0) {
      next_ticket_ = atomicAdd(header_->counters + kTicket, 1);
#if __CUDA_ARCH__ >= 900
      for (std::uint32_t s = 0; s < shape_.stages; ++s) barriers()[s].initialize();
      make_barriers_visible();
#endif
    }
#if __CUDA_ARCH__ >= 900
    __syncthreads();
    if (threadIdx.x == 0) {
      for (std::uint32_t s = 0; s < shape_.stages; ++s) fetch(s);
    }
#endif
  }

  // The next work, for all threads. False when there is no more.
  __device__ bool next() {
#if __CUDA_ARCH__ >= 900
    barriers()[stage_].wait(phase_);
    const Item item = items()[stage_];
#else
    __syncthreads();  // all have the last one
    if (threadIdx.x == 0) items()[0] = next_item();
    __syncthreads();
    const Item item = items()[0];
#endif
    merge_if_last();
    if (item.kind == kNone) {
      leave();
      return false;
    }
    row = item.row, chunk_ = item.chunk, is_to_write = item.kind == kWrite, is_new = item.is_new;
    is_last = row + 1 == rows_ || (row + 1) % shape_.rows == 0;
    turn_ ^= 1;
    if (threadIdx.x == kWaiter) wait_for_others();
    begin = chunk_ * shape_.columns, count = min(shape_.columns, columns_ - begin);
#if __CUDA_ARCH__ >= 900
    begins_of(
        at_, [&](int a) { return window_of(item, a); }, [&](int a) { return landing(stage_, a); });
#endif
    return true;
  }
  // What a thread has of an array's columns.
  template <class Row>
  __device__ __forceinline__ void load(Row& x, int array, const typename Row::Where& place) const {
#if __CUDA_ARCH__ >= 900
    x.load_shared(at_[array], place);
#else
    const T* const all = arrays_[array];
    const T* const from = all + std::uint64_t{row} * columns_ + begin;
    if constexpr (requires { x.load(from, place, all); }) {
      x.load(from, place, all + std::uint64_t{rows_} * columns_);
    } else {
      x.load_shared(from, place);
    }
#endif
  }
  // All threads have what they need of this work in registers, and have met: others may come to its place.
  __device__ void release() {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) fetch(stage_);
    if (++stage_ == shape_.stages) stage_ = 0, phase_ ^= 1;
#endif
  }

  // What all threads know of the chunk that was read.
  __device__ void publish_part(const Part& part) {
    if (threadIdx.x != kPublisher) return;
    const std::uint32_t place = row % shape_.ring;
    parts_of(place)[chunk_] = part;
    published_row_ = row;
    asm volatile("atom.add.release.gpu.global.u32 %0, [%1], 1;" : "=r"(parts_before_) : "l"(read(place)) : "memory");
  }
  // The facts of the row that is to be written, for all threads. They meet in it.
  __device__ Part facts() const {
    __syncthreads();
    return facts_of_turns()[turn_];
  }

 private:
  static constexpr std::uint32_t kRead = 0, kWrite = 1, kNone = 2, kNoRow = ~0u;
  static constexpr std::uint32_t kWaiter = 32, kPublisher = 64;  // threads of different warps, and the first fetches
  struct Item {
    std::uint32_t row, chunk, kind, is_new;
  };

  // Of one thread, while the others are reading: until there are facts of a row that is to be written, or until nobody
  // needs those of the row whose place this one takes. The block meets before it goes on.
  __device__ void wait_for_others() const {
    const std::uint32_t place = row % shape_.ring, turn = row / shape_.ring;
    if (is_to_write) {
      Published<Part> found;
      do {
        load_published(found, facts_of(place));
      } while (!found.is_there(turn + 1));
      facts_of_turns()[turn_] = found.value();
      add_released(taken(place));
    } else if (turn != 0) {
      while (load_acquired(taken(place)) < turn * shape_.chunks) {
      }
    }
  }
  // Of the warp that publishes: what comes after its last part, whose counter's answer is there by now. If all chunks
  // of that row have been read, it merges what they have found. Others may wait for that, and this block for them: so
  // it comes first.
  __device__ void merge_if_last() {
    if (threadIdx.x / 32 != kPublisher / 32) return;
    const std::uint32_t of_row = __shfl_sync(~0u, published_row_, 0), before = __shfl_sync(~0u, parts_before_, 0);
    const std::uint32_t place = of_row % shape_.ring, turn = of_row / shape_.ring;
    published_row_ = kNoRow;
    if (of_row == kNoRow || before + 1 != (turn + 1) * shape_.chunks) return;
    __threadfence();
    const Part* const parts = parts_of(place);
    Part mine = none(Part{});
#pragma unroll 4
    for (std::uint32_t i = threadIdx.x % 32; i < shape_.chunks; i += 32) mine = merge(mine, load_part(parts + i));
    mine = reduce_lanes(mine);
    if (threadIdx.x == kPublisher) publish(facts_of(place), mine, turn + 1);
  }

  // Of thread 0. The next ticket is drawn long before it is needed.
  __device__ Item next_item() {
    if (rows_left_ == 0) {
      item_ = item_of(next_ticket_);
      if (item_.kind == kNone) return item_;
      next_ticket_ = atomicAdd(header_->counters + kTicket, 1);
      rows_left_ = min(shape_.rows, rows_ - item_.row);
    } else {
      ++item_.row, item_.is_new = 0;
    }
    --rows_left_;
    return item_;
  }
  __device__ Item item_of(std::uint32_t ticket) const {
    const std::uint32_t groups = (rows_ + shape_.rows - 1) / shape_.rows, lag = min(shape_.lag, groups);
    const auto of = [&](std::uint32_t group, std::uint32_t chunk, std::uint32_t kind) {
      return Item{group * shape_.rows, chunk, kind, 1};
    };
    std::uint32_t group = ticket / shape_.chunks;
    if (group < lag) return of(group, ticket - group * shape_.chunks, kRead);
    ticket -= lag * shape_.chunks;
    group = ticket / shape_.chunks / 2;
    if (group < groups - lag) {
      ticket -= group * shape_.chunks * 2;
      return ticket % 2 == 0 ? of(group + lag, ticket / 2, kRead) : of(group, ticket / 2, kWrite);
    }
    ticket -= (groups - lag) * shape_.chunks * 2;
    group = ticket / shape_.chunks;
    if (group < lag) return of(groups - lag + group, ticket - group * shape_.chunks, kWrite);
    return {0, 0, kNone, 0};
  }

#if __CUDA_ARCH__ >= 900
  __device__ Window<T> window_of(const Item& item, int array) const {
    const T* const all = arrays_[array];
    const std::uint32_t first = item.chunk * shape_.columns;
    return {all + std::uint64_t{item.row} * columns_ + first, min(shape_.columns, columns_ - first), all,
            all + std::uint64_t{rows_} * columns_};
  }
  __device__ unsigned char* landing(std::uint32_t stage, int array) const {
    return landing_ + (stage * kArrays + array) * shape_.stride;
  }
  // The work that is next for this place, and its columns.
  __device__ void fetch(std::uint32_t stage) {
    const Item item = next_item();
    items()[stage] = item;
    if (item.kind == kNone) return barriers()[stage].expect(0);
    copy_all<kArrays>(
        barriers()[stage], [&](int a) { return window_of(item, a); }, [&](int a) { return landing(stage, a); });
  }
  __device__ static BulkBarrier* barriers() {
    __shared__ BulkBarrier of_stages[kMaxStages];
    return of_stages;
  }
#endif
  __device__ static Part* facts_of_turns() {  // of this time and of the last, at which slow threads may still look
    __shared__ Part of_turns[2];
    return of_turns;
  }
  __device__ static Item* items() {
    __shared__ Item of_stages[kMaxStages];
    return of_stages;
  }

  // The last block leaves the counters as it has found them.
  __device__ void leave() const {
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      is_last = atomicAdd(header_->counters + kDone, 1) + 1 == gridDim.x;
    }
    __syncthreads();
    if (!is_last) return;
    for (std::uint32_t i = threadIdx.x; i < kChunkCounters + kCountersOfRow * shape_.ring; i += kChunkThreads) {
      header_->counters[i] = 0;
    }
    auto* const facts = reinterpret_cast<std::uint64_t*>(facts_of(0));
    for (std::uint32_t i = threadIdx.x; i < shape_.ring * Published<Part>::kWords; i += kChunkThreads) facts[i] = 0;
  }

  // Counters, zero between launches.
  static constexpr std::uint32_t kTicket = 0, kDone = 1;  // the next one; blocks that are done
  __device__ std::uint32_t* of_row(std::uint32_t place) const {
    return header_->counters + kChunkCounters + kCountersOfRow * place;
  }
  __device__ std::uint32_t* read(std::uint32_t place) const { return of_row(place); }       // chunks
  __device__ std::uint32_t* taken(std::uint32_t place) const { return of_row(place) + 1; }  // facts, by so many chunks
  // Tagged by how many rows have had the place.
  __device__ Published<Part>* facts_of(std::uint32_t place) const {
    return reinterpret_cast<Published<Part>*>(header_->parts) + place;
  }
  __device__ Part* parts_of(std::uint32_t place) const { return parts_ + std::uint64_t{place} * shape_.chunks; }

  // What was stored before another thread's add_released is seen after load_acquired, or add_released, has seen that,
  // and by threads that have met this one then.
  __device__ static void add_released(std::uint32_t* counter) {
    asm volatile("red.add.release.gpu.global.u32 [%0], 1;" ::"l"(counter) : "memory");
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
  WorkspaceHeader* const header_;
  Part* const parts_;
  unsigned char* const landing_;
  const T* arrays_[kArrays];
#if __CUDA_ARCH__ >= 900
  const T* at_[kArrays];  // where the columns are, in shared memory
#endif
  Item item_{};
  std::uint32_t next_ticket_ = 0, rows_left_ = 0, chunk_ = 0, stage_ = 0, phase_ = 0, turn_ = 0;
  std::uint32_t published_row_ = kNoRow, parts_before_ = 0;
};

}  // namespace cgrt::kernels
