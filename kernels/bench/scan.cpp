#include "cgrt_kernels/scan/scan.h"

#include <algorithm>
#include <memory>
#include <random>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/library.h"
#include "cgrt_kernels/cub/cub.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/raw_cub.h"

namespace cgrt::bench {
namespace {

using kernels::DType;
using kernels::ScanPlan;

// Doubles what is there until it fills `count` elements of `size` bytes: quicker than numbers of the host.
absl::StatusOr<DeviceBuffer> repeated(StreamRef stream, const DeviceBuffer& some, std::uint64_t count,
                                      std::size_t size) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer all, DeviceBuffer::create(kDevice, count * size));
  std::size_t done = std::min<std::size_t>(some.size_bytes(), all.size_bytes());
  CGRT_RETURN_IF_ERROR(copy(stream, all.data(), some.data(), done));
  while (done < all.size_bytes()) {
    const std::size_t more = std::min(done, all.size_bytes() - done);
    CGRT_RETURN_IF_ERROR(copy(stream, all.as<unsigned char>() + done, all.data(), more));
    done += more;
  }
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return all;
}

constexpr std::uint64_t kSome = 1 << 20;  // elements

// All bits are random; as floats, some are no numbers.
absl::StatusOr<DeviceBuffer> make_keys(StreamRef stream, std::uint64_t count, std::size_t size, std::uint32_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::uint64_t> words(std::min(count, kSome) * size / 8 + 1);
  for (std::uint64_t& word : words) word = engine();
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer some, DeviceBuffer::create(kDevice, words.size() * 8));
  CGRT_RETURN_IF_ERROR(copy(stream, some.data(), words.data(), some.size_bytes()));
  return repeated(stream, some, count, size);
}

struct Set {
  Array out, in;
  DeviceBuffer workspace;
};
using SharedSet = std::shared_ptr<Set>;

absl::StatusOr<SharedSet> make_set(StreamRef stream, Array out, Array in, std::size_t workspace_bytes) {
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, workspace_bytes));
  return std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(workspace)});
}

// For a scan of `count` elements of the case's type.
absl::StatusOr<SharedSet> make_set(const Case& test, StreamRef stream, std::uint64_t count, std::uint32_t seed,
                                   std::size_t workspace_bytes) {
  CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, test.type, count, seed));
  CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, test.type, count));
  return make_set(stream, std::move(out), std::move(in), workspace_bytes);
}

// columns, and rows or 1; shift
absl::StatusOr<Work> make_own(const Case& test) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t columns, test.size("columns"));
  const kernels::ScanDesc desc{.type = test.type, .rows = test.size_or("rows", 1), .columns = columns};
  CGRT_ASSIGN_OR_RETURN(const ScanPlan plan, kernels::plan_scan(kDevice, desc));
  const std::uint64_t count = desc.rows * columns, bytes = count * size_of(desc.type);
  return Work{2 * bytes, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(const SharedSet set, make_set(test, stream, count, seed, plan.workspace_bytes));
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_scan(target, plan,
                                     {.out = in_place ? set->in.data() : set->out.data(),
                                      .in = set->in.data(),
                                      .workspace = workspace_in(set->workspace)});
                };
              }};
}

// columns
absl::StatusOr<Work> make_cub_scan(const Case& test, bool is_raw) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::CubScanPlan plan,
                        kernels::plan_cub_scan(kDevice, {.type = test.type, .count = count}));
  if (is_raw && test.type != DType::kFloat32) return absl::InvalidArgumentError("raw_cub_scan takes float32.");
  const std::uint64_t bytes = count * size_of(test.type);
  return Work{2 * bytes, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(const SharedSet set, make_set(test, stream, count, seed, plan.workspace_bytes));
                if (!is_raw) {
                  return [=](LaunchTarget target) {
                    return launch_cub_scan(
                        target, plan,
                        {.out = set->out.data(), .in = set->in.data(), .workspace = workspace_in(set->workspace)});
                  };
                }
                return [=](LaunchTarget target) {
                  return kernels::launch_library(target, [&](CUstream into) {
                    return raw_cub_scan(set->workspace.data(), set->workspace.size_bytes(), set->in.as<float>(),
                                        set->out.as<float>(), static_cast<int>(count), into)
                               ? absl::OkStatus()
                               : absl::InternalError("cub::DeviceScan failed.");
                  });
                };
              }};
}

// count; values=1: pairs of a key and 4 bytes. int32 and int64 stand for keys without a sign.
absl::StatusOr<Work> make_sort(const Case& test, bool is_raw) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  kernels::RadixSortDesc desc{.has_values = test.size_or("values", 0) != 0, .count = count};
  if (test.type == DType::kInt64) desc.key = kernels::SortKey::kUInt64;
  if (test.type == DType::kFloat32) desc.key = kernels::SortKey::kFloat32;
  desc.end_bit = static_cast<int>(test.size_or("bits", 0));
  CGRT_ASSIGN_OR_RETURN(const kernels::RadixSortPlan plan, kernels::plan_radix_sort(kDevice, desc));
  if (is_raw && test.type != DType::kInt32) return absl::InvalidArgumentError("raw_cub_sort takes int32.");
  const std::uint64_t bytes = count * size_of(desc.key), value_bytes = desc.has_values ? count * 4 : 0;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_keys(stream, count, size_of(plan.desc.key), seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, bytes));
    CGRT_ASSIGN_OR_RETURN(const SharedSet keys,
                          make_set(stream, Array{std::move(out)}, Array{std::move(in)}, plan.workspace_bytes));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer values_in, DeviceBuffer::create(kDevice, std::max<std::size_t>(value_bytes, 1)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer values_out,
                          DeviceBuffer::create(kDevice, std::max<std::size_t>(value_bytes, 1)));
    const auto values =
        std::make_shared<std::pair<DeviceBuffer, DeviceBuffer>>(std::move(values_in), std::move(values_out));
    if (!is_raw) {
      return [=](LaunchTarget target) {
        return launch_radix_sort(target, plan,
                                 {.keys_out = keys->out.data(),
                                  .keys_in = keys->in.data(),
                                  .values_out = values->second.data(),
                                  .values_in = values->first.data(),
                                  .workspace = workspace_in(keys->workspace)});
      };
    }
    return [=](LaunchTarget target) {
      return kernels::launch_library(target, [&](CUstream into) {
        const RawSort sort{.workspace = keys->workspace.data(),
                           .workspace_bytes = keys->workspace.size_bytes(),
                           .in = keys->in.as<std::uint32_t>(),
                           .out = keys->out.as<std::uint32_t>(),
                           .values_in = plan.desc.has_values ? values->first.as<std::uint32_t>() : nullptr,
                           .values_out = values->second.as<std::uint32_t>(),
                           .count = static_cast<int>(count),
                           .end_bit = plan.desc.end_bit};
        return raw_cub_sort(sort, into) ? absl::OkStatus() : absl::InternalError("cub::DeviceRadixSort failed.");
      });
    };
  };
  return Work{2 * (bytes + value_bytes), make};
}

}  // namespace

absl::StatusOr<Work> make_scan(const Case& test) {
  if (test.kernel == "scan" || test.kernel == "scan_rows") return make_own(test);
  if (test.kernel == "cub_scan" || test.kernel == "raw_cub_scan") return make_cub_scan(test, test.kernel[0] == 'r');
  if (test.kernel == "radix_sort" || test.kernel == "raw_cub_sort")
    return make_sort(test, test.kernel == "raw_cub_sort");
  return absl::NotFoundError("");
}

}  // namespace cgrt::bench
