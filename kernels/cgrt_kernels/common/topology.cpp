#include "cgrt_kernels/common/topology.h"

#include <string>

namespace cgrt::kernels {
namespace {

// FNV-1a.
std::uint64_t hash_of(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

template <class T>
void append(std::string& bytes, const T* values, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

}  // namespace

std::uint64_t topology_of_kernels(const std::vector<LaunchAttributes>& kernels, EdgeKind edges) {
  std::string nodes;
  for (const LaunchAttributes& attributes : kernels) {
    if (!nodes.empty()) append(nodes, &edges, 1);
    CUlaunchAttribute set[internal::kMaxLaunchAttributes];
    const unsigned count = internal::to_driver(attributes, set);
    append(nodes, &count, 1);
    append(nodes, set, count);
  }
  return hash_of(nodes);
}

std::uint64_t topology_of_library(const char* call, const std::vector<std::uint64_t>& values) {
  std::string node = call;
  append(node, values.data(), values.size());
  return hash_of(node);
}

}  // namespace cgrt::kernels
