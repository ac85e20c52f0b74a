#include "cgrt/memory/graph_pool.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/keep.h"

namespace cgrt {
namespace {

constexpr std::size_t kAlignment = 256;

}  // namespace

struct GraphPool::Memory {
  struct Chunk {
    DeviceBuffer buffer;
    std::map<std::size_t, std::size_t> free;  // bytes, by offset
  };
  struct Block {
    std::size_t chunk, offset, bytes;
  };

  // Null: no chunk has room.
  void* take(std::size_t bytes);
  void give_back(const Block& block);
  absl::Status grow(std::size_t bytes);
  std::size_t reserved_bytes() const;

  std::mutex mutex;
  CUcontext context = nullptr;
  std::size_t chunk_bytes = 0;
  std::vector<Chunk> chunks;
  absl::flat_hash_map<void*, Block> blocks;
  std::size_t used_bytes = 0;
  cuuint64_t kept_by = 0;  // the capture whose graph keeps this, lastly; captures have a number of their own each
};

void* GraphPool::Memory::take(std::size_t bytes) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    std::map<std::size_t, std::size_t>& free = chunks[i].free;
    const auto found = std::find_if(free.begin(), free.end(), [&](const auto& gap) { return gap.second >= bytes; });
    if (found == free.end()) continue;
    const auto [offset, size] = *found;
    free.erase(found);
    if (size > bytes) free.emplace(offset + bytes, size - bytes);
    void* const address = chunks[i].buffer.as<char>() + offset;
    blocks.emplace(address, Block{i, offset, bytes});
    used_bytes += bytes;
    return address;
  }
  return nullptr;
}

void GraphPool::Memory::give_back(const Block& block) {
  std::map<std::size_t, std::size_t>& free = chunks[block.chunk].free;
  auto gap = free.emplace(block.offset, block.bytes).first;
  if (const auto after = std::next(gap); after != free.end() && gap->first + gap->second == after->first) {
    gap->second += after->second;
    free.erase(after);
  }
  if (gap == free.begin()) return;
  if (const auto before = std::prev(gap); before->first + before->second == gap->first) {
    before->second += gap->second;
    free.erase(gap);
  }
}

absl::Status GraphPool::Memory::grow(std::size_t bytes) {
  const std::size_t size = std::max(bytes, chunk_bytes);
  RelaxedCaptureMode relaxed;  // an allocation would end captures
  CGRT_RETURN_IF_ERROR(relaxed.status());
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::create(context, size);
  const CUresult left = relaxed.end();
  if (!buffer.ok()) {
    return driver::annotate(
        buffer.status(), absl::StrCat("Growing a GraphPool of ", counted(reserved_bytes(), "byte"), " in ",
                                      counted(chunks.size(), "chunk"), ", ", used_bytes, " of them in use, by ", size,
                                      " bytes for a block of ", bytes));
  }
  if (left != CUDA_SUCCESS) return relaxed.status();
  chunks.push_back({*std::move(buffer), {{0, size}}});
  return absl::OkStatus();
}

std::size_t GraphPool::Memory::reserved_bytes() const {
  std::size_t sum = 0;
  for (const Chunk& chunk : chunks) sum += chunk.buffer.size_bytes();
  return sum;
}

absl::StatusOr<GraphPool> GraphPool::create(ContextRef context, std::size_t chunk_bytes) {
  GraphPool pool;
  pool.memory_ = std::make_shared<Memory>();
  CGRT_ASSIGN_OR_RETURN(pool.memory_->context, context.get());
  pool.memory_->chunk_bytes = chunk_bytes;
  return pool;
}

absl::StatusOr<void*> GraphPool::allocate(LaunchTarget target, std::size_t size_bytes) {
  if (ABSL_PREDICT_FALSE(memory_ == nullptr)) return driver::empty_object("GraphPool");
  if (size_bytes == 0) return nullptr;
  if (size_bytes > PTRDIFF_MAX) {
    return absl::ResourceExhaustedError(absl::StrCat("A GraphPool cannot have a block of ", size_bytes, " bytes."));
  }
  const std::size_t bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(memory_->mutex);
  CGRT_RETURN_IF_ERROR(keep_for(target));
  void* block = memory_->take(bytes);
  if (block == nullptr) {
    CGRT_RETURN_IF_ERROR(memory_->grow(bytes));
    block = memory_->take(bytes);
  }
  return block;
}

// Under the lock: the graph that `target` makes nodes of keeps the memory.
absl::Status GraphPool::keep_for(LaunchTarget target) {
  if (target.sink() != nullptr) return target.sink()->keep(memory_);
  const StreamRef stream = target.stream();
  if (ABSL_PREDICT_FALSE(stream.get() == nullptr)) return driver::empty_object("Stream");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  CUgraph graph = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().StreamGetCaptureInfo(stream.get(), &status, &capture, &graph, nullptr, nullptr, nullptr),
      "cuStreamGetCaptureInfo"));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || capture == memory_->kept_by) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(internal::keep_in_graph(graph, memory_));
  memory_->kept_by = capture;
  return absl::OkStatus();
}

absl::Status GraphPool::free(void* block) {
  if (ABSL_PREDICT_FALSE(memory_ == nullptr)) return driver::empty_object("GraphPool");
  if (block == nullptr) return absl::OkStatus();
  const std::lock_guard lock(memory_->mutex);
  const auto found = memory_->blocks.find(block);
  if (found == memory_->blocks.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("0x", absl::Hex(reinterpret_cast<std::uintptr_t>(block)),
                     " is not the address of a block in use of this GraphPool, which has ",
                     counted(memory_->blocks.size(), "block"), " of ", memory_->used_bytes, " bytes in use."));
  }
  memory_->give_back(found->second);
  memory_->used_bytes -= found->second.bytes;
  memory_->blocks.erase(found);
  return absl::OkStatus();
}

std::size_t GraphPool::used_bytes() const {
  if (memory_ == nullptr) return 0;
  const std::lock_guard lock(memory_->mutex);
  return memory_->used_bytes;
}

std::size_t GraphPool::reserved_bytes() const {
  if (memory_ == nullptr) return 0;
  const std::lock_guard lock(memory_->mutex);
  return memory_->reserved_bytes();
}

}  // namespace cgrt
