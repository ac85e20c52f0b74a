// What the examples at the heads of the public headers stand in. heads.py takes them out of the comments; the sources
// here give them the names that they use, run them, and look at what they did.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "support/test_kernels.h"

namespace cgrt::examples {

using testing::scale_kernel;

// Memory of device 0, for as long as this lives.
class Memory {
 public:
  template <class T>
  absl::StatusOr<T*> make(std::size_t count) {  // zeros
    CGRT_ASSIGN_OR_RETURN(void* const bytes, make_bytes(count * sizeof(T), 0));
    return static_cast<T*>(bytes);
  }
  // What the example writes. Must differ from its poison afterwards, from the first byte on.
  template <class T>
  absl::StatusOr<T*> make_output(std::size_t count) {
    CGRT_ASSIGN_OR_RETURN(void* const bytes, make_bytes(count * sizeof(T), kPoison));
    outputs_.push_back(bytes);
    return static_cast<T*>(bytes);
  }
  absl::Status check_outputs() const;

 private:
  static constexpr unsigned char kPoison = 0xCB;
  absl::StatusOr<void*> make_bytes(std::size_t bytes, unsigned char value);

  std::vector<DeviceBuffer> buffers_;
  std::vector<const void*> outputs_;
};

using Example = absl::Status (*)(Memory& memory);

struct Listed {
  Listed(const char* name, Example example);
};

// Fails unless `found` is `wanted`.
template <class T>
absl::Status equal(const T& found, const T& wanted) {
  return found == wanted ? absl::OkStatus() : absl::InternalError(absl::StrCat("found ", found, " for ", wanted));
}
absl::Status contains(const std::string& text, const std::string& part);

// The graph has so many nodes, and an executable made from it runs.
absl::Status runs(const Graph& graph, std::size_t nodes);
// As a header's program would: a graph of one kernel, instantiated and launched once.
absl::Status build_and_launch();

// Of device_code.cu. out[i] = in[i], and x[i] += 1, for i < count; and the loop's of set_conditional.cuh.
Kernel<float*, const float*, int> copy_kernel();
Kernel<cudaGraphConditionalHandle, int*> count_down_kernel();
Kernel<float*, int> count_kernel();

}  // namespace cgrt::examples

// The body of an example, in namespace cgrt::examples. An absl::Status; `memory` is its own.
#define CGRT_EXAMPLE(name)                                           \
  absl::Status example_##name(cgrt::examples::Memory&);              \
  const cgrt::examples::Listed listed_##name(#name, example_##name); \
  absl::Status example_##name([[maybe_unused]] cgrt::examples::Memory& memory)

// As in the headers: what must be true.
#define CHECK(condition) \
  if (!(condition)) return absl::InternalError("not true: " #condition)
