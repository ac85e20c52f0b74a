#include "device_code/emulated.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

DeviceIndex threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {
namespace {

enum class State { kReady, kAtWarp, kAtBlock, kDone };

struct Fiber {
  static constexpr std::size_t kStackBytes = 96 * 1024;
  std::unique_ptr<unsigned char[]> stack{new unsigned char[kStackBytes]};
  ucontext_t context;
  State state;
  DeviceIndex index;
};

constexpr std::size_t kSharedBytes = 232 * 1024;
constexpr int kMaxRounds = 1000;  // in which threads did nothing but look again

std::vector<Fiber> fibers;
std::size_t count, current;
ucontext_t scheduler;
bool has_moved;
unsigned char slots[32][32][kSlotBytes];
void (*thread_body)(void*);
void* thread_context;

void leave() { swapcontext(&fibers[current].context, &scheduler); }
void leave_as(State state) {
  fibers[current].state = state, has_moved = true;
  leave();
}
void begin() {
  thread_body(thread_context);
  leave_as(State::kDone);
}

// Those from `first` to `last` that wait there go on, if all that are left of them do.
void release(std::size_t first, std::size_t last, State state) {
  for (std::size_t i = first; i < last; ++i) {
    if (fibers[i].state != state && fibers[i].state != State::kDone) return;
  }
  for (std::size_t i = first; i < last; ++i) {
    if (fibers[i].state == state) fibers[i].state = State::kReady, has_moved = true;
  }
}

void run_block() {
  for (std::size_t i = 0; i < count; ++i) {
    Fiber& fiber = fibers[i];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get(), fiber.context.uc_stack.ss_size = Fiber::kStackBytes;
    makecontext(&fiber.context, begin, 0);
    fiber.state = State::kReady;
    const auto thread = static_cast<unsigned>(i);
    fiber.index = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / (blockDim.x * blockDim.y)};
  }
  for (int rounds = 0; rounds < kMaxRounds; ++rounds) {
    has_moved = false;
    bool are_done = true;
    for (current = 0; current < count; ++current) {
      Fiber& fiber = fibers[current];
      if (fiber.state == State::kReady) {
        threadIdx = fiber.index;
        swapcontext(&scheduler, &fiber.context);
      }
      are_done &= fiber.state == State::kDone;
    }
    if (are_done) return;
    for (std::size_t warp = 0; warp < count; warp += 32) release(warp, std::min(warp + 32, count), State::kAtWarp);
    release(0, count, State::kAtBlock);
    if (has_moved) rounds = 0;
  }
  std::fprintf(stderr, "emulated: threads of block (%u, %u, %u) wait for what does not come\n", blockIdx.x, blockIdx.y,
               blockIdx.z);
  std::abort();
}

}  // namespace

void meet_warp() { leave_as(State::kAtWarp); }
void meet_block() { leave_as(State::kAtBlock); }
void yield() { leave(); }

unsigned lane() { return static_cast<unsigned>(current % 32); }
unsigned char* slot(unsigned lane) { return slots[current / 32][lane]; }

// Below 4 GB, as addresses of shared memory have 32 bits.
void* dynamic_shared() {
  static void* const memory =
      mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  return memory;
}

void run(const cgrt::HostGrid& grid, void (*body)(void*), void* context) {
  thread_body = body, thread_context = context;
  gridDim = {grid.grid.x, grid.grid.y, grid.grid.z}, blockDim = {grid.block.x, grid.block.y, grid.block.z};
  count = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  if (fibers.size() < count) fibers.resize(count);
  std::memset(dynamic_shared(), 0xee, kSharedBytes);
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) run_block();
    }
  }
}

}  // namespace emulated
