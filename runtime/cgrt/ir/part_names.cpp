// What differences call what differs.
#include <array>
#include <cstddef>

#include "cgrt/ir/diff.h"

namespace cgrt::ir {
namespace {

// Indexed by the enumerators' values.
constexpr std::array kParts = {"kind",
                               "parameters",
                               "device",
                               "body",
                               "function",
                               "grid",
                               "block",
                               "shared bytes",
                               "number of arguments",
                               "argument",
                               "argument",
                               "bytes that belong to no argument",
                               "cooperative",
                               "cluster",
                               "preferred cluster",
                               "cluster scheduling",
                               "priority",
                               "remote memory synchronization domain",
                               "shared carveout percent",
                               "access policy window",
                               "destination",
                               "source",
                               "width bytes",
                               "height",
                               "depth",
                               "destination pitch",
                               "source pitch",
                               "value",
                               "element bytes",
                               "width",
                               "pitch",
                               "event",
                               "conditional kind",
                               "conditional handle",
                               "value at launch",
                               "number of bodies",
                               "bytes",
                               "address",
                               "number of operations",
                               "operation",
                               "number of semaphores",
                               "semaphore",
                               "kind",
                               "device",
                               "bytes",
                               "number of nodes",
                               "edge",
                               "number of allocations",
                               "owners of bodies"};
static_assert(kParts.size() == static_cast<std::size_t>(Part::kOwners) + 1);

}  // namespace

const char* to_string(Part part) { return kParts[static_cast<std::size_t>(part)]; }

}  // namespace cgrt::ir
