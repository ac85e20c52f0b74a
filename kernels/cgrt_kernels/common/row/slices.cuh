// Rows of any length, each shared by a group of blocks. Every block has its slice of all rows of its group: what
// belongs to the columns stays with it. Of each row a block reads its slice, publishes what it has found, and writes
// the slice when the whole group has published. Until then it goes on reading the next rows; shared memory keeps the
// slices that are not written yet. Longer slices are cut into chunks, which are read twice, out of the L2 cache.
//
// A block takes its place in a group when it begins. Blocks that have a place wait for each other, so all places must
// be taken: a block that has waited too long, as other launches hold the multiprocessors, takes more places and works
// on these slices in turn.
//
// Warps of a block have duties of their own, so that none waits where others have to do: most work on elements, one
// fetches, one publishes what the others have found, and one waits for what the group has found.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/mbarrier.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/published.cuh"
#include "cgrt_kernels/common/row/join.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/units.cuh"
#include "cgrt_kernels/common/row/window.cuh"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// A row's facts are merged from Parts, which threads find in their elements of kArrays arrays.
template <class T, class Part, int kArrays>
class SlicedRows {
 public:
  static constexpr std::uint32_t kThreads = kSliceThreads, kMinBlocks = 1;
  static constexpr bool kHoldsColumns = true, kWrites = true;
  using Element = T;
  using Place = UnitPlace<T, kSliceWorkers>;
  using Array = UnitArray<const T, Place, true>;
  // `count` columns of a row from `begin` on, elements from `first` on; the row is number `index` of the group.
  struct Work {
    std::uint64_t first;
    std::uint32_t row, begin, count, index, group;
  };

  // `landing`: shared memory for shape.stages, and what columns have.
  __device__ SlicedRows(const RowSlices& shape, std::uint32_t rows, std::uint32_t columns, void* workspace,
                        uint4* landing, const void* const (&arrays)[kArrays], const void* out)
      : shape_(shape),
        rows_(rows),
        columns_(columns),
        header_(static_cast<WorkspaceHeader*>(workspace)),
        landing_(reinterpret_cast<unsigned char*>(landing)),
        out_(static_cast<const T*>(out)) {
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      arrays_[a] = static_cast<const T*>(arrays[a]);
      are_alike_ &= (reinterpret_cast<std::uintptr_t>(arrays_[a]) - reinterpret_cast<std::uintptr_t>(out)) % 4 == 0;
    }
    wait_for_predecessors();
    let_dependents_start();
    if (threadIdx.x == 0) {
      initialize_barriers();
      take_places();
    }
    __syncthreads();
    places_ = shared().place_count;
    const bool is_alone = places_ == 1;
    lag_ = is_alone ? shape_.lag : places_ * shape_.chunks;
    is_kept_ = is_alone && shape_.is_kept != 0;
    row_step_ = std::uint64_t{shape_.groups} * columns_;
    items_ = (rows_ + shape_.groups - 1) / shape_.groups * places_ * shape_.chunks;
  }

  // The block has the same columns of all rows: `count` from `begin` on of own().
  __device__ bool has_own_columns() const { return places_ == 1; }
  __device__ Work own() const {
    Work all = start().work;
    all.count = min(shape_.share, columns_ - all.begin);
    return all;
  }
  // Brings what an array has for own() to shared memory; where it is after wait_for_columns. By all threads, for up to
  // kMaxPlanes arrays.
  __device__ const T* copy_columns(const T* array, int plane) const {
    const Work columns = own();
    unsigned char* const to = landing_ + shape_.stages * kArrays * shape_.stride + plane * shape_.held;
#if __CUDA_ARCH__ >= 900
    const Window<T> window(array + columns.begin, columns.count, array, array + columns_);
    window.copy_rest(to, threadIdx.x);
    if (threadIdx.x == 0) {
      shared().columns[plane].expect(window.bytes());
      window.copy(shared().columns[plane], to);
    }
    return window.in(to);
#else
    T* const held = reinterpret_cast<T*>(to);
    for (std::uint32_t i = threadIdx.x; i < columns.count; i += blockDim.x) held[i] = array[columns.begin + i];
    return held;
#endif
  }
  __device__ static void wait_for_columns(int plane) {
#if __CUDA_ARCH__ >= 900
    shared().columns[plane].wait(0);
#endif
  }

  // part_of(place, work, arrays...) of what a thread has of each array, and write(place, work, facts, arrays...) when
  // the facts of the row are known. To be called once, by all threads; those that only help return at the end.
  template <class PartOf, class Write>
  __device__ __forceinline__ void run(PartOf part_of, Write write) {
    if (places_ != 0) {
      const std::uint32_t warp = threadIdx.x / 32;
      if (warp < kWorkWarps) {
        work(part_of, write);
      } else if (warp == kWorkWarps) {
        fetch();
      } else if (warp == kWorkWarps + 1) {
        publish_parts();
      } else {
        wait_for_facts(warp - kWorkWarps - 2);
      }
    }
    leave();
  }

 private:
  static constexpr std::uint32_t kWorkWarps = kSliceWorkers / 32, kWaitWarps = 2, kSlots = 4, kMaxPlanes = 2;
  static_assert(kSliceHelpers == 32 * (2 + kWaitWarps) && kWorkWarps <= 32);
  struct Shared {
    Mbarrier empty[kMaxSliceStages], part_ready[kSlots], part_taken[kSlots], facts_ready[kSlots], facts_taken[kSlots];
#if __CUDA_ARCH__ >= 900
    BulkBarrier full[kMaxSliceStages], columns[kMaxPlanes];
#endif
    Part parts[kSlots][kWorkWarps], facts[kSlots];
    std::uint32_t tag, place_count, places[kMaxSlicePlaces];
  };
  __device__ static Shared& shared() {
    __shared__ Shared of_block;
    return of_block;
  }
  // The n-th use of what there are kSlots of.
  struct Use {
    std::uint32_t n = 0;
    __device__ std::uint32_t slot() const { return n % kSlots; }
    __device__ std::uint32_t phase() const { return n / kSlots % 2; }
  };
  struct Stage {
    std::uint32_t index = 0, phase = 0;
    __device__ void next(std::uint32_t stages) {
      if (++index == stages) index = 0, phase ^= 1;
    }
  };
  // Chunks of a slice, then the block's other places, then the next row of each group.
  struct Cursor {
    Work work;
    std::uint32_t place, chunk;
  };
  __device__ Cursor start() const {
    Cursor at{};
    find(at);
    return at;
  }
  __device__ bool is_there(const Cursor& at) const { return at.work.row < rows_; }
  __device__ bool ends_slice(const Cursor& at) const { return at.chunk + 1 == shape_.chunks; }
  __device__ __forceinline__ void advance(Cursor& at) const {
    if (++at.chunk == shape_.chunks) {
      at.chunk = 0;
      if (++at.place == places_) {
        at.place = 0;
        ++at.work.index, at.work.row += shape_.groups, at.work.first += row_step_;
        if (places_ == 1 && shape_.chunks == 1) return;
      }
    }
    find(at);
  }
  // From its place, its chunk, and the row's number.
  __device__ void find(Cursor& at) const {
    Work& work = at.work;
    const std::uint32_t place = shared().places[at.place], member = place & 0xffff;
    work.group = place >> 16, work.row = work.group + work.index * shape_.groups;
    work.begin = min(member * shape_.share + at.chunk * shape_.columns, columns_);
    const std::uint32_t end = min(min(member * shape_.share + shape_.share, columns_), work.begin + shape_.columns);
    work.count = end - work.begin;
    work.first = std::uint64_t{work.row} * columns_ + work.begin;
  }

  // Items in the order in which they are worked on: read(cursor) of each, and write(cursor) so much later that what it
  // waits for does not wait for this block.
  template <class Read, class Write>
  __device__ __forceinline__ void each_item(Read read, Write write) const {
    Cursor reading = start(), writing = reading;
    for (std::uint32_t i = 0; i < items_ + lag_; ++i) {
      if (i < items_) {
        if (is_there(reading)) read(reading);
        advance(reading);
      }
      if (i >= lag_) {
        if (is_there(writing)) write(writing);
        advance(writing);
      }
    }
  }

  template <class PartOf, class Write>
  __device__ __forceinline__ void work(PartOf part_of, Write write) {
    const bool is_first_lane = threadIdx.x % 32 == 0;
    Stage read_from, write_from;
    Use part_use, facts_use;
    Part of_slice = none(Part{});  // in this thread's elements
    // Where an array's elements are.
    const auto array_of = [&](int array, const Place& place, const Work& work, const Stage& stage) {
      const T* from = arrays_[array] + work.first;
#if __CUDA_ARCH__ >= 900
      from = reinterpret_cast<const T*>(landing(stage.index, array) + reinterpret_cast<std::uintptr_t>(from) % 16);
#endif
      return Array(from, place);
    };
    const auto with_arrays = [&](const Place& place, const Work& work, const Stage& stage, auto visit) {
      if constexpr (kArrays == 1) {
        return visit(array_of(0, place, work, stage));
      } else {
        return visit(array_of(0, place, work, stage), array_of(1, place, work, stage));
      }
    };
    const auto release = [&](const Stage& stage) {
      __syncwarp();
      if (is_first_lane) shared().empty[stage.index].arrive();
    };
    const auto wait_for_stage = [&](const Stage& stage) {
#if __CUDA_ARCH__ >= 900
      shared().full[stage.index].wait(stage.phase);
#endif
    };
    each_item(
        [&](const Cursor& at) {
          const Work& work = at.work;
          const Place place(out_ + work.first, work.count, threadIdx.x, are_alike_);
          wait_for_stage(read_from);
          const Part mine = with_arrays(place, work, read_from,
                                        [&](const auto&... arrays) { return part_of(place, work, arrays...); });
          if (!is_kept_) release(read_from);
          read_from.next(shape_.stages);
          of_slice = at.chunk == 0 ? mine : merge(of_slice, mine);
          if (!ends_slice(at)) return;
          const Part of_warp = join_lanes(of_slice);
          if (is_first_lane) {
            shared().part_taken[part_use.slot()].wait(part_use.phase() ^ 1);
            shared().parts[part_use.slot()][threadIdx.x / 32] = of_warp;
            shared().part_ready[part_use.slot()].arrive();
          }
          ++part_use.n;
        },
        [&](const Cursor& at) {
          const Work& work = at.work;
          const Place place(out_ + work.first, work.count, threadIdx.x, are_alike_);
          Stage& stage = is_kept_ ? write_from : read_from;
          if (!is_kept_) wait_for_stage(stage);
          if (at.chunk == 0) shared().facts_ready[facts_use.slot()].wait(facts_use.phase());
          const Part facts = shared().facts[facts_use.slot()];
          with_arrays(place, work, stage, [&](const auto&... arrays) { write(place, work, facts, arrays...); });
          if (ends_slice(at)) {
            __syncwarp();
            if (is_first_lane) shared().facts_taken[facts_use.slot()].arrive();
            ++facts_use.n;
          }
          release(stage);
          stage.next(shape_.stages);
        });
  }

  __device__ void fetch() const {
#if __CUDA_ARCH__ >= 900
    Stage stage;
    const auto fetch_one = [&](const Cursor& at) {
      const Work& work = at.work;
      shared().empty[stage.index].wait(stage.phase ^ 1);
      bool is_cut = false;
#pragma unroll
      for (int a = 0; a < kArrays; ++a) {
        const Window<T> window = window_of(work, a);
        if (!window.is_cut()) continue;
        window.copy_rest(landing(stage.index, a), threadIdx.x % 32);
        is_cut = true;
      }
      if (is_cut) make_barriers_visible();  // stores before later bulk copies to the same place
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        copy_all<kArrays>(
            shared().full[stage.index], [&](int a) { return window_of(work, a); },
            [&](int a) { return landing(stage.index, a); });
      }
      stage.next(shape_.stages);
    };
    each_item(fetch_one, [&](const Cursor& at) {
      if (!is_kept_) fetch_one(at);
    });
#endif
  }

  // Each part is published in a ring, with a tag of the launch and of the turn: in a place that nobody reads any more,
  // as a block that has read a row has taken the facts of an earlier one, for which all others had read theirs, and so
  // on. Without fences, which wait for what all threads of a multiprocessor have written.
  __device__ void publish_parts() const {
    const std::uint32_t lane = threadIdx.x % 32;
    Use use;
    each_item(
        [&](const Cursor& at) {
          if (!ends_slice(at)) return;
          shared().part_ready[use.slot()].wait(use.phase());
          Part mine = lane < kWorkWarps ? shared().parts[use.slot()][lane] : none(Part{});
          __syncwarp();
          if (lane == 0) shared().part_taken[use.slot()].arrive();
          ++use.n;
          mine = join_lanes(mine);
          if (lane != 0) return;
          const std::uint32_t member = shared().places[at.place] & 0xffff;
          publish(parts_of(at.work) + member, mine, tag_of_turn(at.work));
        },
        [](const Cursor&) {});
  }

  // Each of kWaitWarps takes rows in turn.
  __device__ void wait_for_facts(std::uint32_t warp) const {
    constexpr int kAtOnce = sizeof(Part) > 8 ? 2 : 4;
    const std::uint32_t lane = threadIdx.x % 32;
    Use use;
    each_item([](const Cursor&) {},
              [&](const Cursor& at) {
                if (at.chunk != 0) return;
                const Use mine = use;
                ++use.n;
                if (mine.n % kWaitWarps != warp) return;
                const Published<Part>* const parts = parts_of(at.work);
                const std::uint32_t tag = tag_of_turn(at.work);
                Part all = none(Part{});
                for (std::uint32_t first = lane; first < shape_.members; first += 32 * kAtOnce) {
                  Published<Part> found[kAtOnce];
                  bool are_there;
#pragma unroll
                  for (int i = 0; i < kAtOnce; ++i) found[i].set_zero(0);
                  do {
                    are_there = true;
#pragma unroll
                    for (int i = 0; i < kAtOnce; ++i) {
                      if (first + 32 * i < shape_.members && !found[i].is_there(tag)) {
                        load_published(found[i], parts + first + 32 * i);
                      }
                    }
#pragma unroll
                    for (int i = 0; i < kAtOnce; ++i) {
                      are_there &= first + 32 * i >= shape_.members || found[i].is_there(tag);
                    }
                  } while (!are_there);
#pragma unroll
                  for (int i = 0; i < kAtOnce; ++i) {
                    if (first + 32 * i < shape_.members) all = merge(all, found[i].value());
                  }
                }
                all = join_lanes(all);
                if (lane != 0) return;
                shared().facts_taken[mine.slot()].wait(mine.phase() ^ 1);
                shared().facts[mine.slot()] = all;
                shared().facts_ready[mine.slot()].arrive();
              });
  }

  // Of one thread.
  __device__ void initialize_barriers() const {
    Shared& all = shared();
    for (std::uint32_t i = 0; i < shape_.stages; ++i) all.empty[i].initialize(kWorkWarps);
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      all.part_ready[i].initialize(kWorkWarps), all.part_taken[i].initialize(1);
      all.facts_ready[i].initialize(1), all.facts_taken[i].initialize(kWorkWarps);
    }
#if __CUDA_ARCH__ >= 900
    for (std::uint32_t i = 0; i < shape_.stages; ++i) all.full[i].initialize();
    for (BulkBarrier& columns : all.columns) columns.initialize();
    make_barriers_visible();
#endif
  }
  __device__ void take_places() {
    constexpr long long kPatience = 40'000;  // clocks: 20 us, where blocks that can start do so within 2
    const std::uint32_t all = shape_.groups * shape_.members;
    std::uint32_t count = 0;
    const auto take = [&] {
      const std::uint32_t place = atomicAdd(header_->counters + kTaken, 1), group = place / shape_.members;
      if (place < all) shared().places[count++] = group << 16 | (place - group * shape_.members);
    };
    const std::uint64_t launch = draw_ticket(header_);
    shared().tag = tag_of(launch);
    end_if_last(header_, launch, gridDim.x - 1,
                min(rows_, rows_of_ring()) * shape_.members * static_cast<std::uint32_t>(Published<Part>::kWords));
    take();
    places_ = count;
    if (count != 0) {
#if __CUDA_ARCH__ >= 900
      const Work work = start().work;
      for (int a = 0; a < kArrays; ++a) {
        prefetch_to_l2(arrays_[a] + work.first, work.count * sizeof(T));
      }
#endif
      const long long start = clock64();
      while (load_acquired(header_->counters + kTaken) < all) {
        if (clock64() - start > kPatience) take();
      }
    }
    shared().place_count = count;
  }

#if __CUDA_ARCH__ >= 900
  __device__ Window<T> window_of(const Work& work, int array) const {
    const T* const all = arrays_[array];
    return {all + work.first, work.count, all, all + std::uint64_t{rows_} * columns_};
  }
  __device__ unsigned char* landing(std::uint32_t stage, int array) const {
    return landing_ + (stage * kArrays + array) * shape_.stride;
  }
#endif

  // The last block leaves the counters as it has found them.
  __device__ void leave() const {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(header_->counters + kDone, 1) + 1 != gridDim.x) return;
    header_->counters[kTaken] = header_->counters[kDone] = 0;
  }

  static constexpr std::uint32_t kTaken = 0, kDone = 1;  // counters: places, and blocks that are done
  // Whose parts have room at once: consecutive ones, so that a launch writes all words up to the last that it uses.
  __device__ std::uint32_t rows_of_ring() const { return shape_.groups * shape_.ring; }
  // Of all members of the group, of this row.
  __device__ Published<Part>* parts_of(const Work& work) const {
    return reinterpret_cast<Published<Part>*>(header_->tagged) + work.row % rows_of_ring() * shape_.members;
  }
  // Another one than that of the turn before, and of no launch that is near: what others have left by the time that
  // their numbers come up is gone (workspace_desc.h). Not 0, as cleared words have it.
  __device__ std::uint32_t tag_of_turn(const Work& work) const {
    const std::uint32_t tag = shared().tag, far = tag ^ 1u << 31;
    return work.row / rows_of_ring() % 2 == 0 ? tag : far != 0 ? far : 1u << 30;
  }
  __device__ static std::uint32_t load_acquired(const std::uint32_t* counter) {
    std::uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
  }

  const RowSlices shape_;
  const std::uint32_t rows_, columns_;
  WorkspaceHeader* const header_;
  unsigned char* const landing_;
  const T* const out_;
  const T* arrays_[kArrays];
  bool are_alike_ = true;  // as `out`, between multiples of 4
  std::uint64_t row_step_;
  std::uint32_t places_, lag_, items_;
  bool is_kept_;
};

}  // namespace cgrt::kernels
