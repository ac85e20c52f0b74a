// What plans and launches of the families share: the machine, arithmetic of addresses, and what is refused in
// the same words. For their .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cgrt/device/context.h"
#include "cgrt/device/device.h"
#include "cgrt/launch/kernel.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

inline constexpr std::uint64_t kMaxCount = (std::uint64_t{1} << 31) - 1;  // rows, columns, blocks of a grid

struct Machine {
  ContextRef context;
  DeviceRef device;
  std::uint32_t sms, shared_per_sm, shared_per_block;  // bytes of shared memory
  // Whether the code that the device runs was compiled for 9.0 or later: with clusters, and with kernels that
  // themselves wait for their predecessors. Code for 8.0 that a newer device translates has neither.
  bool has_clusters = false, has_programmatic_edges = false;
};
absl::StatusOr<Machine> machine_of(ContextRef context);
// For families with clusters: asks the code of `kernel`, one of those that are planned.
absl::StatusOr<Machine> machine_of(ContextRef context, KernelRef kernel);

inline Machine without_clusters(Machine machine) {
  machine.has_clusters = false;
  return machine;
}

// Whether at least one cluster of the launch fits the device: a slice of one may have too few multiprocessors side by
// side. True where there are no clusters.
absl::StatusOr<bool> has_room_for_cluster(const Machine& machine, KernelRef kernel, const LaunchConfig& config);

// What choose(machine) says, with a kernel and its config; where none of its clusters fits, what it says without.
template <class Choose>
auto choose_with_room(const Machine& machine, Choose choose) -> decltype(choose(machine)) {
  auto chosen = choose(machine);
  if (!chosen.ok()) return chosen;
  const absl::StatusOr<bool> has_room = has_room_for_cluster(machine, chosen->kernel, chosen->config);
  if (!has_room.ok()) return has_room.status();
  return *has_room ? std::move(chosen) : choose(without_clusters(machine));
}

// Allows launches of `kernel` so much dynamic shared memory, and never less than before: the limit is the kernel's,
// which other plans may have, too.
absl::Status allow_shared_bytes(KernelRef kernel, const Machine& machine, std::uint32_t bytes);

template <class Result = std::uint32_t>
constexpr Result ceil_divide(std::uint64_t a, std::uint64_t b) {
  return static_cast<Result>(a / b + (a % b != 0 ? 1 : 0));
}

// A multiple of 16, say, when all of them are.
template <class... Elements>
std::uintptr_t address_bits(const Elements*... addresses) {
  return (reinterpret_cast<std::uintptr_t>(addresses) | ...);
}

template <class... Elements>
Alignment alignment_of(const Elements*... addresses) {
  return address_bits(addresses...) % 16 == 0 ? Alignment::kAligned : Alignment::kUnaligned;
}

// As messages name an operation, in parts that are put together only when something is refused.
struct OperationName {
  OperationName(const char* first_, const char* second_ = "") : first(first_), second(second_) {}
  const char *first, *second;
};

// kInvalidArgument: "NAME: WHY".
absl::Status refuse(OperationName name, absl::string_view why);

absl::Status check_matrix(OperationName name, std::uint64_t rows, std::uint64_t columns);  // 1 to kMaxCount each
constexpr bool is_float(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16;
}
absl::Status check_float(OperationName name, DType type);
// Refuses a type; `others`: those that there are kernels for.
absl::Status refuse_type(OperationName name, DType type, absl::string_view others);

// Refuses a value that the enum does not have; `last`: its greatest.
template <class Enum>
absl::Status check_enum(OperationName name, const char* field, Enum value, Enum last);
// Refuses what is NaN, infinite or below 0.
absl::Status check_not_negative(OperationName name, const char* field, float value);

enum class Need { kRequired, kOptional };  // an optional address may be null

namespace internal {

absl::Status refuse_pointer(OperationName name, const char* argument, const void* pointer, std::size_t alignment,
                            const char* element);
absl::Status refuse_enum(OperationName name, const char* field, int value, int last);
inline bool is_aligned(const void* pointer, std::size_t alignment, Need need) {
  return pointer != nullptr ? address_bits(pointer) % alignment == 0 : need == Need::kOptional;
}

}  // namespace internal

template <class Enum>
absl::Status check_enum(OperationName name, const char* field, Enum value, Enum last) {
  if (value <= last) return absl::OkStatus();
  return internal::refuse_enum(name, field, static_cast<int>(value), static_cast<int>(last));
}

inline absl::Status check_pointer(OperationName name, const char* argument, const void* pointer, std::size_t alignment,
                                  Need need = Need::kRequired) {
  if (internal::is_aligned(pointer, alignment, need)) return absl::OkStatus();
  return internal::refuse_pointer(name, argument, pointer, alignment, "");
}

// Aligned to the size of its elements.
inline absl::Status check_array(OperationName name, const char* argument, const void* pointer, DType type,
                                Need need = Need::kRequired) {
  if (internal::is_aligned(pointer, size_of(type), need)) return absl::OkStatus();
  return internal::refuse_pointer(name, argument, pointer, size_of(type), to_string(type));
}

// `needed` by the plan; 0: any will do.
absl::Status check_workspace(OperationName name, const Workspace& workspace, std::size_t needed);

}  // namespace cgrt::kernels
