// Dropout and its gradient: packs of each width, ends of arrays, masks against the reference, and replays that differ.
#include "cgrt_kernels/dropout/dropout.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/dropout/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DropoutArgs;
using kernels::DropoutDesc;
using kernels::DropoutOp;
using kernels::DropoutPlan;
using kernels::DType;
using kernels::RandomState;
using kernels::size_of;

constexpr RandomState kState{.seed = 0x123456789ABCDEF, .offset = 0xFFFFFFF0};  // whose upper half soon changes

Bytes bytes_of(const RandomState& state) {
  const auto* const data = reinterpret_cast<const unsigned char*>(&state);
  return {data, data + sizeof(state)};
}
RandomState state_of(const Bytes& bytes) {
  RandomState state;
  std::memcpy(&state, bytes.data(), sizeof(state));
  return state;
}

Bytes bits_of(const std::vector<bool>& kept) {
  Bytes bytes((kept.size() + 7) / 8);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) bytes[i / 8] = static_cast<unsigned char>(bytes[i / 8] | 1u << (i % 8));
  }
  return bytes;
}

// Random numbers, NaN and infinity among them: where these are dropped, too, the result is 0.
Bytes numbers(const DropoutDesc& desc) {
  Bytes bytes = random_elements(desc.type, desc.count, 0.5, 3, 1);
  for (std::uint64_t i = 3; i < desc.count; i += 97) {
    const double special = i % 2 == 0 ? std::nan("") : std::numeric_limits<double>::infinity();
    write_element(desc.type, &bytes[i * size_of(desc.type)], special);
  }
  return bytes;
}

absl::Status compare(const DropoutDesc& desc, const std::vector<bool>& kept, const Bytes& in, const Bytes& out) {
  const double scale = 1 / (1 - static_cast<double>(desc.probability));
  const double rounding = desc.type == DType::kFloat32 ? 3e-7 : desc.type == DType::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
  for (std::uint64_t i = 0; i < desc.count; ++i) {
    const double expected = kept[i] ? read_element(desc.type, &in[i * size_of(desc.type)]) * scale : 0;
    const double found = read_element(desc.type, &out[i * size_of(desc.type)]);
    if (std::isnan(expected)
            ? std::isnan(found)
            : found == expected || std::abs(found - expected) <= rounding * std::abs(expected) + 6e-8) {
      continue;
    }
    if (to_doubles(desc.type, to_elements(desc.type, {expected}))[0] == found) continue;  // infinite as float16
    return absl::InternalError(absl::StrCat("element ", i, ": expected ", expected, ", found ", found));
  }
  return absl::OkStatus();
}

// `shift`: elements that arrays are behind an aligned address.
absl::Status check(const DropoutDesc& desc, std::size_t shift, bool in_place) {
  CGRT_ASSIGN_OR_RETURN(const DropoutPlan plan, kernels::plan_dropout(kDevice, desc));
  const std::vector<bool> kept = dropout_mask_reference(desc, kState);
  const Bytes in = numbers(desc), mask = bits_of(kept);
  const std::size_t bytes = shift * size_of(desc.type);
  const bool is_forward = desc.op == DropoutOp::kForward;
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  DropoutArgs args;
  if (in_place) {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(in, bytes));
    args.in = args.out;
  } else {
    CGRT_ASSIGN_OR_RETURN(args.out, trial.output(in.size(), bytes));
    CGRT_ASSIGN_OR_RETURN(args.in, trial.input(in, bytes));
  }
  CGRT_ASSIGN_OR_RETURN(void* const bits, is_forward ? trial.output(mask.size(), shift) : trial.input(mask, shift));
  args.mask = static_cast<std::uint8_t*>(bits);
  if (is_forward) {
    CGRT_ASSIGN_OR_RETURN(void* const state, trial.output(bytes_of(kState)));
    args.state = static_cast<RandomState*>(state);
  }
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_dropout(target, plan, args); }));
  CGRT_RETURN_IF_ERROR(compare(desc, kept, in, trial.found(args.out)));
  if (!is_forward) return absl::OkStatus();
  if (trial.found(args.mask) != mask) return absl::InternalError("the mask is another");
  const RandomState after = state_of(trial.found(args.state));
  if (after.seed == kState.seed && after.offset == kState.offset + (desc.count + 3) / 4 && after.arrived == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("the state has become ", after.seed, ", ", after.offset, ", ", after.arrived));
}

// As many of 2^20 elements as it should be, within five standard deviations.
absl::Status check_share(float probability) {
  const DropoutDesc desc{.count = 1 << 20, .probability = probability};
  const std::vector<bool> kept = dropout_mask_reference(desc, {.seed = 7});
  double count = 0;
  for (const bool is_kept : kept) count += is_kept ? 1 : 0;
  const double p = static_cast<double>(probability), n = static_cast<double>(desc.count);
  if (std::abs(count - n * (1 - p)) <= 5 * std::sqrt(n * p * (1 - p))) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(count, " of ", n, " are kept"));
}

// Each replay continues with the numbers behind those of the one before, as eager launches do.
absl::Status check_replays() {
  const DropoutDesc desc{.type = DType::kFloat16, .count = 1001, .probability = 0.5f};
  CGRT_ASSIGN_OR_RETURN(const DropoutPlan plan, kernels::plan_dropout(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 8192));
  unsigned char* const memory = buffer.as<unsigned char>();
  auto* const state = reinterpret_cast<RandomState*>(memory + 4096);
  const DropoutArgs args{memory, memory, memory + 4608, state};
  RandomState expected{.seed = 42};
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), state, &expected, sizeof(expected)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(kernels::launch_dropout(graph.cursor(), plan, args));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  Bytes before;
  for (int replay = 0; replay < 4; ++replay) {
    CGRT_RETURN_IF_ERROR(replay == 2 ? kernels::launch_dropout(stream.ref(), plan, args) : exec.launch(stream.ref()));
    Bytes mask((desc.count + 7) / 8);
    CGRT_RETURN_IF_ERROR(copy(stream.ref(), mask.data(), args.mask, mask.size()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    if (mask != bits_of(dropout_mask_reference(desc, expected))) {
      return absl::InternalError(absl::StrCat("launch ", replay, " has another mask than the reference"));
    }
    if (mask == before) return absl::InternalError("two launches have the same mask");
    before = std::move(mask);
    expected.offset += (desc.count + 3) / 4;
  }
  return absl::OkStatus();
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const DropoutDesc& desc) {
    report.check(absl::StrCat("dropout refuses: ", text), refused(kernels::plan_dropout(kDevice, desc).status(), text));
  };
  refuses("dropout: count is 0; it can be 1 to 1099511627775", {});
  refuses("count is 1099511627776", {.count = std::uint64_t{1} << 40});
  refuses("probability is 1; it can be 0 to below 1", {.count = 8, .probability = 1});
  refuses("probability is -0.1", {.count = 8, .probability = -0.1f});
  refuses("probability is nan", {.count = 8, .probability = std::nanf("")});
  refuses("float64", {.type = DType::kFloat64, .count = 8});
  report.check("dropout of 2^34 elements has as many blocks as of 2^30", [&]() -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const DropoutPlan less, kernels::plan_dropout(kDevice, {.count = std::uint64_t{1} << 30}));
    CGRT_ASSIGN_OR_RETURN(const DropoutPlan more, kernels::plan_dropout(kDevice, {.count = std::uint64_t{1} << 34}));
    const std::uint32_t expected = less.aligned.config.grid.x, found = more.aligned.config.grid.x;
    if (found == expected) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("expected ", expected, ", found ", found));
  }());

  const absl::StatusOr<DropoutPlan> forward = kernels::plan_dropout(kDevice, {.count = 4});
  const absl::StatusOr<DropoutPlan> backward = kernels::plan_dropout(kDevice, {.op = DropoutOp::kBackward, .count = 4});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!forward.ok() || !backward.ok() || !trial.ok()) {
    return report.check("dropout plans", absl::InternalError("no plan or no stream"));
  }
  alignas(16) static unsigned char memory[64];
  auto* const state = reinterpret_cast<RandomState*>(memory);
  const auto refuses_args = [&](const char* text, const DropoutPlan& plan, const DropoutArgs& args) {
    report.check(absl::StrCat("dropout refuses: ", text),
                 refused(kernels::launch_dropout(trial->stream(), plan, args), text));
  };
  refuses_args("dropout: out is null", *forward, {nullptr, memory, memory, state});
  refuses_args("in (0x", *forward, {memory, memory + 1, memory, state});
  refuses_args("mask is null", *forward, {memory, memory, nullptr, state});
  refuses_args("state is null", *forward, {memory, memory, memory, nullptr});
  refuses_args("state (0x", *forward, {memory, memory, memory, reinterpret_cast<RandomState*>(memory + 4)});
  refuses_args("dropout_backward: mask is null", *backward, {memory, memory, nullptr, nullptr});
}

}  // namespace

void check_dropout(Report& report) {
  check_refusals(report);
  report.check("replays of dropout", check_replays());
  for (const float probability : {0.0f, 0.1f, 0.5f, 0.999f}) {
    report.check(absl::StrCat("dropout keeps 1 - ", probability), check_share(probability));
  }
  std::vector<std::uint64_t> counts{1, 2, 7, 8, 9, 31, 255, 1000, 4095, 4097, 70001};
  if (!report.is_simulated()) counts.insert(counts.end(), {(1 << 20) + 3, (1 << 23) + 5});
  for (const DropoutOp op : {DropoutOp::kForward, DropoutOp::kBackward}) {
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const std::uint64_t count : counts) {
        for (const std::size_t shift : {0, 1, 2, 4}) {
          const float probability = count % 2 == 0 ? 0.25f : 0.9f;
          const DropoutDesc desc{op, type, count, probability};
          report.check(absl::StrCat(to_string(op), " ", to_string(type), " ", count, " shifted by ", shift),
                       check(desc, shift, false));
          if (shift == 0) report.check(absl::StrCat(to_string(op), " ", count, " in place"), check(desc, 0, true));
        }
      }
    }
    report.check(absl::StrCat(to_string(op), " of probability 0"), check({op, DType::kFloat16, 1000, 0}, 0, false));
  }
}

void draw_dropout(Draw& draw, Report& report) {
  const DropoutDesc desc{draw.of({DropoutOp::kForward, DropoutOp::kBackward}), draw.float_type(),
                         draw.size(draw.max_elements(4)), draw.of({0.0f, 1e-7f, 0.1f, 0.5f, 0.9f, 0.999999f})};
  const std::size_t shift = draw.shift();
  report.check(absl::StrCat(to_string(desc.op), " ", to_string(desc.type), " ", desc.count, " of probability ",
                            desc.probability, " shifted by ", shift),
               check(desc, shift, draw.one_in(3)));
}

}  // namespace cgrt::testing
