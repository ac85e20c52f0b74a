#include "support/test_semaphore.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "support/skip.h"

namespace cgrt::testing {
namespace {

// What the simulator imports.
class WordInFile final : public TestSemaphore::Impl {
 public:
  static absl::StatusOr<std::unique_ptr<Impl>> create() {
    const int fd = memfd_create("semaphore", MFD_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, "memfd_create");
    if (ftruncate(fd, sizeof(std::uint64_t)) != 0) return absl::ErrnoToStatus(errno, "ftruncate");
    void* const word = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (word == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
    return std::unique_ptr<Impl>(new WordInFile(fd, static_cast<std::uint64_t*>(word)));
  }
  ~WordInFile() override {
    munmap(word_, sizeof(*word_));
    close(fd_);
  }
  absl::StatusOr<int> descriptor() override {
    const int copy = dup(fd_);
    return copy >= 0 ? absl::StatusOr<int>(copy) : absl::ErrnoToStatus(errno, "dup");
  }
  absl::Status signal(std::uint64_t value) override {
    std::atomic_ref(*word_).store(value);
    return absl::OkStatus();
  }
  absl::StatusOr<std::uint64_t> value() override { return std::atomic_ref(*word_).load(); }

 private:
  WordInFile(int fd, std::uint64_t* word) : fd_(fd), word_(word) {}
  int fd_;
  std::uint64_t* word_;
};

}  // namespace

absl::Status check_test_semaphores() {
  if (is_simulated()) return absl::OkStatus();
  static const absl::Status answer = [] {
    cudaDeviceProp device{};
    const cudaError_t result = cudaGetDeviceProperties(&device, 0);
    if (result != cudaSuccess) {
      return absl::InternalError(absl::StrCat("cudaGetDeviceProperties: ", cudaGetErrorString(result)));
    }
    return check_vulkan(reinterpret_cast<const unsigned char*>(device.uuid.bytes));
  }();
  return answer;
}

absl::StatusOr<TestSemaphore> TestSemaphore::create(SemaphoreKind kind) {
  CGRT_RETURN_IF_ERROR(check_test_semaphores());
  CGRT_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl,
                        is_simulated() ? WordInFile::create() : make_vulkan_semaphore(kind));
  return TestSemaphore(kind, std::move(impl));
}

absl::StatusOr<ExternalSemaphore> TestSemaphore::imported() const {
  CGRT_ASSIGN_OR_RETURN(const int fd, descriptor());
  absl::StatusOr<ExternalSemaphore> semaphore = ExternalSemaphore::import_fd(DeviceRef(0), kind_, fd);
  if (!semaphore.ok()) close(fd);
  return semaphore;
}

}  // namespace cgrt::testing
