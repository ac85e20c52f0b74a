// One token of each row: slices and whole rows, packs and single elements, filters whose tokens are few, many and
// equal, logits that are masked or NaN, and rows that differ.
#include "cgrt_kernels/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/sampling/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::first_of_largest;
using kernels::RandomState;
using kernels::SamplingArgs;
using kernels::SamplingDesc;
using kernels::SamplingOp;
using kernels::SamplingPlan;
using kernels::SamplingRule;
using kernels::size_of;

constexpr RandomState kState{.seed = 0x123456789ABCDEF, .offset = 0xFFFFFFF0};  // whose upper half soon changes
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How the logits of all rows are: `deviation` 0 makes them equal.
struct Logits {
  double deviation = 3;
  bool has_special = true;          // in some rows: ones that are masked, NaN, infinite, equal, or in order
  std::vector<double> of_row = {};  // all of them, of each row
};

Bytes logits_of(const SamplingDesc& desc, const Logits& like) {
  if (!like.of_row.empty()) {
    Bytes bytes(desc.rows * desc.vocabulary * size_of(desc.type));
    for (std::uint64_t i = 0; i < desc.rows * desc.vocabulary; ++i) {
      write_element(desc.type, &bytes[i * size_of(desc.type)], like.of_row[i % desc.vocabulary]);
    }
    return bytes;
  }
  Bytes bytes = random_elements(desc.type, desc.rows * desc.vocabulary, 0, like.deviation, 1);
  for (std::uint64_t row = 0; like.has_special && row < desc.rows; ++row) {
    for (std::uint64_t i = 0; i < desc.vocabulary; ++i) {
      unsigned char* const at = &bytes[(row * desc.vocabulary + i) * size_of(desc.type)];
      const double logit = read_element(desc.type, at);
      const bool is_some = i % 3 == row % 2;
      switch (row % 12) {
        case 1: write_element(desc.type, at, std::round(logit)); break;
        case 3: write_element(desc.type, at, i % 2 == 0 ? 0.0 : -0.0); break;
        case 5: write_element(desc.type, at, is_some ? -kInfinity : logit); break;
        case 6: write_element(desc.type, at, -0.01 * static_cast<double>(i)); break;
        case 7: write_element(desc.type, at, i % 5 == 0 ? std::nan("") : -kInfinity); break;
        case 8: write_element(desc.type, at, std::nan("")); break;
        case 9: write_element(desc.type, at, is_some ? std::nan("") : logit); break;
        case 10: write_element(desc.type, at, i == desc.vocabulary - 1 ? logit : -kInfinity); break;
        case 11: write_element(desc.type, at, i == desc.vocabulary / 2 ? kInfinity : logit); break;
        default: break;
      }
    }
  }
  return bytes;
}

// Of each row, or null.
struct Rules {
  std::vector<float> temperature;
  std::vector<std::int32_t> top_k;
  std::vector<float> top_p;

  SamplingRule of(SamplingOp op, std::uint64_t row) const {
    SamplingRule rule{.temperature = op == SamplingOp::kGreedy ? 0.0f : 1.0f};
    if (op != SamplingOp::kGreedy && !temperature.empty()) rule.temperature = temperature[row];
    if (op == SamplingOp::kFiltered && !top_k.empty()) rule.top_k = top_k[row];
    if (op == SamplingOp::kFiltered && !top_p.empty()) rule.top_p = static_cast<double>(top_p[row]);
    return rule;
  }
};

struct Setup {
  std::size_t shift = 0;           // elements that logits are behind an aligned address
  std::int32_t row_count = -1000;  // on the device; -1000: none is given
  bool has_log_probability = true;
  bool has_reference = true;  // or only arrays and the state are looked at
};

// What the rows have that are there.
struct Sampled {
  Bytes tokens, log_probabilities;
  bool operator==(const Sampled&) const = default;
};

// Sums and keys of floats may take another token than the reference where two are as good.
absl::Status check_token(const std::vector<double>& logits, const SamplingRule& rule, std::uint64_t counter,
                         std::size_t token) {
  if (token >= logits.size()) return absl::InternalError(absl::StrCat("token ", token));
  const std::vector<double> keys = sampling_keys_reference(logits, rule, kState.seed, counter);
  if (rule.is_greedy() || std::isnan(logits[first_of_largest(logits)])) {
    const std::size_t expected = first_of_largest(logits);
    if (token == expected) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("expected token ", expected, ", found ", token));
  }
  constexpr double kSlack = 2e-5;
  SamplingRule fewer = rule, more = rule;
  if (rule.top_p > 0 && rule.top_p < 1) fewer.top_p -= kSlack, more.top_p += kSlack;
  const std::vector<bool> surely = sampling_kept_reference(logits, fewer);
  if (!sampling_kept_reference(logits, more)[token]) {
    return absl::InternalError(absl::StrCat("token ", token, " of logit ", logits[token], " is not kept"));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!surely[i] || std::isnan(keys[i]) || i == token) continue;
    const double slack =
        keys[i] == kInfinity ? 0 : 2e-6 * std::abs(logits[i]) / static_cast<double>(rule.temperature) + 1e-5;
    const bool is_better = keys[i] - slack > keys[token] || std::isnan(keys[token]);
    if (!is_better && (keys[i] != keys[token] || token < i)) continue;
    return absl::InternalError(
        absl::StrCat("expected token ", i, " of ", keys[i], ", found ", token, " of ", keys[token]));
  }
  return absl::OkStatus();
}

absl::Status check(const SamplingDesc& desc, const Logits& like, const Rules& rules, const Setup& setup,
                   Sampled* sampled = nullptr) {
  CGRT_ASSIGN_OR_RETURN(const SamplingPlan plan, kernels::plan_sampling(kDevice, desc));
  const Bytes logits = logits_of(desc, like);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  const std::size_t size = size_of(desc.token_type);
  SamplingArgs args;
  CGRT_ASSIGN_OR_RETURN(args.token, trial.output(Bytes(desc.rows * size, 0x5A)));
  CGRT_ASSIGN_OR_RETURN(args.logits, trial.input(logits, setup.shift * size_of(desc.type)));
  if (setup.has_log_probability) {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.output(Bytes(desc.rows * 4, 0x5A)));
    args.log_probability = static_cast<float*>(data);
  }
  if (desc.op != SamplingOp::kGreedy) {
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.output(bytes_of(std::vector{kState})));
    args.state = static_cast<RandomState*>(data);
  }
  const auto input = [&](const auto& values, auto*& argument) -> absl::Status {
    if (values.empty()) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes_of(values)));
    argument = static_cast<std::remove_reference_t<decltype(argument)>>(data);
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(input(rules.temperature, args.temperature));
  CGRT_RETURN_IF_ERROR(input(rules.top_k, args.top_k));
  CGRT_RETURN_IF_ERROR(input(rules.top_p, args.top_p));
  if (setup.row_count != -1000) CGRT_RETURN_IF_ERROR(input(std::vector{setup.row_count}, args.row_count));
  CGRT_ASSIGN_OR_RETURN(args.workspace, trial.workspace(plan.workspace_bytes));
  CGRT_RETURN_IF_ERROR(
      trial.run(args.workspace, [&](LaunchTarget target) { return kernels::launch_sampling(target, plan, args); }));

  const std::uint64_t draws = (desc.vocabulary + 3) / 4;
  if (desc.op != SamplingOp::kGreedy) {
    RandomState after;
    std::memcpy(&after, trial.found(args.state).data(), sizeof(after));
    if (after.seed != kState.seed || after.offset != kState.offset + desc.rows * draws || after.arrived != 0) {
      return absl::InternalError(
          absl::StrCat("the state has become ", after.seed, ", ", after.offset, ", ", after.arrived));
    }
  }
  const Bytes tokens = trial.found(args.token);
  const Bytes log_probabilities = setup.has_log_probability ? trial.found(args.log_probability) : Bytes();
  if (sampled != nullptr) *sampled = {tokens, log_probabilities};
  if (!setup.has_reference) return absl::OkStatus();
  for (std::uint64_t row = 0; row < desc.rows; ++row) {
    std::int64_t token = 0;
    std::memcpy(&token, &tokens[row * size], size);
    if (setup.row_count != -1000 && static_cast<std::int64_t>(row) >= setup.row_count) {
      const std::int64_t untouched = size == 8 ? 0x5A5A5A5A5A5A5A5A : 0x5A5A5A5A;
      if (token == untouched) continue;
      return absl::InternalError(absl::StrCat("row ", row, ", which is not there, has token ", token));
    }
    const std::vector<double> of_row = to_doubles(desc.type, logits, row * desc.vocabulary, desc.vocabulary);
    const SamplingRule rule = rules.of(desc.op, row);
    const absl::Status status = check_token(of_row, rule, kState.offset + row * draws, static_cast<std::size_t>(token));
    if (!status.ok()) {
      return absl::InternalError(absl::StrCat("row ", row, ", temperature ", rule.temperature, ", top-k ", rule.top_k,
                                              ", top-p ", rule.top_p, ": ", std::string(status.message())));
    }
    if (!setup.has_log_probability) continue;
    const double expected = kernels::log_probability_reference(of_row, static_cast<std::size_t>(token));
    const double found = read_element(DType::kFloat32, &log_probabilities[row * 4]);
    if (std::isnan(expected) ? std::isnan(found)
                             : found == expected || std::abs(found - expected) <= 1e-5 * (1 + std::abs(expected))) {
      continue;
    }
    return absl::InternalError(absl::StrCat("row ", row, ": expected log-probability ", expected, ", found ", found));
  }
  return absl::OkStatus();
}

// Rows with all kinds of rules.
Rules mixed(std::uint64_t rows, std::uint32_t seed) {
  constexpr float kTemperatures[] = {1, 0.7f, 0, 1.5f, 0.1f, 100, 1e-6f};
  constexpr std::int32_t kTopK[] = {0, 1, 2, 50, -1, 3, 300, 1 << 30, 20, 2000};
  const float top_p[] = {1, 0.9f, 0.5f, 0.95f, 0, -1, 2, std::nanf(""), 0.1f, 0.999f};
  std::mt19937 random(seed);
  Rules rules;
  for (std::uint64_t row = 0; row < rows; ++row) {
    rules.temperature.push_back(kTemperatures[random() % std::size(kTemperatures)]);
    rules.top_k.push_back(kTopK[random() % std::size(kTopK)]);
    rules.top_p.push_back(top_p[random() % std::size(top_p)]);
  }
  return rules;
}

Rules same(std::uint64_t rows, float temperature, std::int32_t top_k, float top_p) {
  return {std::vector(rows, temperature), std::vector(rows, top_k), std::vector(rows, top_p)};
}

// As often as it should be, within five standard deviations.
absl::Status check_shares(const SamplingRule& rule) {
  const std::vector<double> logits{0, 1, -1, 0.5, 2, -kInfinity, 1, 0};
  const std::vector<bool> kept = sampling_kept_reference(logits, rule);
  std::vector<double> shares(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    shares[i] = kept[i] ? std::exp(logits[i] / static_cast<double>(rule.temperature)) : 0;
    sum += shares[i];
  }
  constexpr int kDraws = 100000;
  std::vector<int> counts(logits.size());
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) ++counts[sampling_reference(logits, rule, 7, 2 * draw)];
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double p = shares[i] / sum, expected = kDraws * p;
    if (std::abs(counts[i] - expected) <= 5 * std::sqrt(kDraws * p * (1 - p))) continue;
    return absl::InternalError(absl::StrCat("token ", i, ": expected some ", expected, ", found ", counts[i]));
  }
  return absl::OkStatus();
}

// Each replay draws with the numbers behind those of the one before, as eager launches do.
absl::Status check_replays() {
  const SamplingDesc desc{.op = SamplingOp::kFiltered, .rows = 40, .vocabulary = 100};
  CGRT_ASSIGN_OR_RETURN(const SamplingPlan plan, kernels::plan_sampling(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 32768));
  unsigned char* const memory = buffer.as<unsigned char>();
  const Bytes logits = logits_of(desc, {1, false});
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), memory, logits.data(), logits.size()));
  auto* const state = reinterpret_cast<RandomState*>(memory + 16384);
  const RandomState seeded{.seed = 42};
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), state, &seeded, sizeof(seeded)));
  const SamplingArgs args{.token = memory + 20480, .logits = memory, .state = state};
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(kernels::launch_sampling(graph.cursor(), plan, args));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  Bytes before;
  for (int replay = 0; replay < 4; ++replay) {
    CGRT_RETURN_IF_ERROR(replay == 2 ? kernels::launch_sampling(stream.ref(), plan, args) : exec.launch(stream.ref()));
    Bytes tokens(desc.rows * 4);
    CGRT_RETURN_IF_ERROR(copy(stream.ref(), tokens.data(), args.token, tokens.size()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    if (tokens == before) return absl::InternalError("two launches have the same tokens");
    before = std::move(tokens);
  }
  return absl::OkStatus();
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const SamplingDesc& desc) {
    report.check(absl::StrCat("sampling refuses: ", text),
                 refused(kernels::plan_sampling(kDevice, desc).status(), text));
  };
  refuses("greedy sampling: rows is 0; it can be 1 to 2147483647", {.vocabulary = 8});
  refuses("vocabulary is 0", {.rows = 1});
  refuses("vocabulary is 2147483648", {.rows = 1, .vocabulary = std::uint64_t{1} << 31});
  refuses("int32", {.type = DType::kInt32, .rows = 1, .vocabulary = 8});
  refuses("float32", {.token_type = DType::kFloat32, .rows = 1, .vocabulary = 8});

  const absl::StatusOr<SamplingPlan> greedy = kernels::plan_sampling(kDevice, {.rows = 1, .vocabulary = 65536});
  const absl::StatusOr<SamplingPlan> plan =
      kernels::plan_sampling(kDevice, {.op = SamplingOp::kFiltered, .rows = 1, .vocabulary = 8});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!greedy.ok() || !plan.ok() || !trial.ok()) {
    return report.check("sampling plans", absl::InternalError("no plan or no stream"));
  }
  alignas(16) static float memory[16];
  auto* const numbers = reinterpret_cast<std::int32_t*>(memory);
  auto* const state = reinterpret_cast<RandomState*>(memory);
  const SamplingArgs all{memory, memory, memory, memory, numbers, memory, state, numbers};
  const auto refuses_args = [&](const char* text, const SamplingPlan& of, auto change) {
    SamplingArgs args = all;
    change(args);
    report.check(absl::StrCat("sampling refuses: ", text), refused(launch_sampling(trial->stream(), of, args), text));
  };
  const auto odd = [](auto* pointer) {
    return reinterpret_cast<decltype(pointer)>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
  };
  refuses_args("filtered sampling: token is null", *plan, [](SamplingArgs& a) { a.token = nullptr; });
  refuses_args("log_probability (0x", *plan, [&](SamplingArgs& a) { a.log_probability = odd(a.log_probability); });
  refuses_args("logits is null", *plan, [](SamplingArgs& a) { a.logits = nullptr; });
  refuses_args("temperature (0x", *plan, [&](SamplingArgs& a) { a.temperature = odd(a.temperature); });
  refuses_args("top_k (0x", *plan, [&](SamplingArgs& a) { a.top_k = odd(a.top_k); });
  refuses_args("top_p (0x", *plan, [&](SamplingArgs& a) { a.top_p = odd(a.top_p); });
  refuses_args("state is null", *plan, [](SamplingArgs& a) { a.state = nullptr; });
  refuses_args("row_count (0x", *plan, [&](SamplingArgs& a) { a.row_count = odd(a.row_count); });
  refuses_args("workspace", *greedy, [](SamplingArgs&) {});
}

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
constexpr SamplingOp kOps[] = {SamplingOp::kGreedy, SamplingOp::kRandom, SamplingOp::kFiltered};

void check_shape(Report& report, SamplingOp op, DType type, std::uint64_t rows, std::uint64_t vocabulary) {
  const SamplingDesc desc{.op = op,
                          .type = type,
                          .token_type = rows % 2 == 0 ? DType::kInt64 : DType::kInt32,
                          .rows = rows,
                          .vocabulary = vocabulary};
  const std::string name = absl::StrCat(to_string(op), " ", to_string(type), " ", rows, " of ", vocabulary);
  const Rules rules = mixed(rows, static_cast<std::uint32_t>(rows + vocabulary));
  report.check(name, check(desc, {}, rules, {}));
  if (vocabulary % 8 == 0) report.check(name + ", unaligned", check(desc, {}, rules, {.shift = 1}));
  if (vocabulary % 3 != 0) return;
  report.check(
      name + ", half",
      check(desc, {}, rules, {.row_count = static_cast<std::int32_t>(rows / 2), .has_log_probability = false}));
}

// A plan for `rows`, of which `count` are on the device: as the reference says, and the same tokens as a plan for them
// has; but for kFiltered, whose blocks follow the plan, the same logarithms, too.
absl::Status check_count(const SamplingDesc& desc, std::uint64_t count, std::size_t shift) {
  const Rules rules = mixed(desc.rows, 5);
  Sampled of_many, of_few;
  CGRT_RETURN_IF_ERROR(
      check(desc, {}, rules, {.shift = shift, .row_count = static_cast<std::int32_t>(count)}, &of_many));
  SamplingDesc few = desc;
  few.rows = count;
  CGRT_RETURN_IF_ERROR(check(few, {}, rules, {.shift = shift, .has_reference = false}, &of_few));
  of_many.tokens.resize(of_few.tokens.size());
  of_many.log_probabilities.resize(of_few.log_probabilities.size());
  if (desc.op == SamplingOp::kFiltered) of_many.log_probabilities = of_few.log_probabilities;
  return of_many == of_few ? absl::OkStatus() : absl::InternalError("a plan for the rows that there are gives others");
}

// Rows that are fewer and more than blocks and clusters, that all fill a wave and that do not.
void check_counts(Report& report, SamplingOp op, DType type) {
  struct Case {
    std::uint64_t rows, vocabulary;
    std::vector<std::uint64_t> counts;
  };
  std::vector<Case> cases{{40, 300, {1, 39}}, {40, 5000, {1, 17}}};
  if (!report.is_simulated()) {
    cases.push_back({700, 16400, {1, 20, 50, 100, 300, 700}});
    cases.push_back({80, 128256, {3, 40, 70}});
  }
  for (const auto& [rows, vocabulary, counts] : cases) {
    const SamplingDesc desc{.op = op, .type = type, .rows = rows, .vocabulary = vocabulary};
    for (const std::uint64_t count : counts) {
      for (const std::size_t shift : {0, 1}) {
        if (shift != 0 && count > 100) continue;
        report.check(absl::StrCat(to_string(op), " ", to_string(type), " of ", vocabulary, ": ", count, " of ", rows,
                                  " rows", shift != 0 ? ", unaligned" : ""),
                     check_count(desc, count, shift));
      }
    }
  }
}

// Few and many tokens are kept, of peaked, flat and equal logits.
void check_filters(Report& report, DType type, std::uint64_t vocabulary) {
  const SamplingDesc desc{.op = SamplingOp::kFiltered, .type = type, .rows = 1, .vocabulary = vocabulary};
  for (const double deviation : {10.0, 1.0, 0.01, 0.0}) {
    for (const std::int32_t top_k : {0, 1, 40, 1000, 6000}) {
      for (const float top_p : {1.0f, 0.95f, 1e-6f}) {
        report.check(absl::StrCat("filtered sampling ", to_string(type), " of ", vocabulary, ", deviation ", deviation,
                                  ", top-k ", top_k, ", top-p ", top_p),
                     check(desc, {deviation, false}, same(desc.rows, 1, top_k, top_p), {}));
      }
    }
  }
}

// Float logits where ranks that are compared as floats give a wrong bucket, and where keys would be beyond float.
void check_extremes(Report& report) {
  std::vector<double> small(16, -1e-39);
  small[0] = 0x1.fffffep-8, small[1] = 0;
  struct {
    const char* name;
    std::vector<double> logits;
    float temperature, top_p;
  } const cases[] = {{"a zero beside tiny numbers below it", small, 1, 0.5f},
                     {"keys beyond floats", {2e38, 3e38}, 0.5f, 1},
                     {"negative keys beyond floats", {-3e38, -2e38}, 0.5f, 1},
                     {"the largest temperature", {-1.5e38, 1.5e38, 0, 1}, 3.4e38f, 1},
                     {"zeros of both signs", {1, 0.0, -0.0}, 1, 0.6f}};
  for (const auto& [name, logits, temperature, top_p] : cases) {
    for (const SamplingOp op : {SamplingOp::kRandom, SamplingOp::kFiltered}) {
      const SamplingDesc desc{.op = op, .rows = 20, .vocabulary = logits.size()};
      report.check(absl::StrCat(to_string(op), ": ", name),
                   check(desc, {.of_row = logits}, same(desc.rows, temperature, 0, top_p), {}));
    }
  }
}

}  // namespace

void check_sampling(Report& report) {
  check_refusals(report);
  check_extremes(report);
  for (const SamplingRule& rule :
       {SamplingRule{}, SamplingRule{0.5f, 3, 1}, SamplingRule{2, 0, 0.7}, SamplingRule{1, 6, 0.8}}) {
    report.check(absl::StrCat("shares of top-k ", rule.top_k, ", top-p ", rule.top_p), check_shares(rule));
  }
  report.check("replays of sampling", check_replays());
  for (const SamplingOp op : kOps) {
    for (const DType type : kTypes) {
      for (const std::uint64_t vocabulary : {1, 2, 7, 8, 33, 256, 1023}) check_shape(report, op, type, 12, vocabulary);
      for (const std::uint64_t vocabulary : {4097, 8192, 50257}) check_shape(report, op, type, 1, vocabulary);
      check_counts(report, op, type);
      if (report.is_simulated()) continue;
      for (const std::uint64_t vocabulary : {32000, 50257, 128256}) check_shape(report, op, type, 5, vocabulary);
      for (const std::uint64_t rows : {64, 300, 1024}) check_shape(report, op, type, rows, 4099);
      check_shape(report, op, type, 1, 262144);
      check_shape(report, op, type, 1, 2000003);
    }
    for (const std::int32_t count : {-1, 0, 4}) {  // none, none, and more than there can be
      report.check(absl::StrCat(to_string(op), " of ", count, " rows"),
                   check({.op = op, .rows = 3, .vocabulary = 20}, {}, mixed(3, 1), {.row_count = count}));
    }
    report.check(absl::StrCat(to_string(op), " without rules"),
                 check({.op = op, .rows = 5, .vocabulary = 1000}, {}, {}, {}));
  }
  for (const DType type : kTypes) {
    check_filters(report, type, 700);
    check_filters(report, type, 9000);
    if (!report.is_simulated()) check_filters(report, type, 151936);
  }
}

void draw_sampling(Draw& draw, Report& report) {
  SamplingDesc desc{.op = draw.of({kOps[0], kOps[1], kOps[2]}), .type = draw.float_type()};
  desc.token_type = draw.of({DType::kInt32, DType::kInt64});
  std::tie(desc.rows, desc.vocabulary) = draw.matrix(std::min<std::uint64_t>(draw.max_elements(4), 1 << 19));
  const Logits like{draw.of({3.0, 1.0, 0.01, 0.0, 20.0}), draw.one_in(2)};
  const Rules rules = draw.one_in(6) ? Rules() : mixed(desc.rows, static_cast<std::uint32_t>(draw.from(0, 1 << 30)));
  const Setup setup{.shift = draw.shift(),
                    .row_count = draw.one_in(3) ? draw.count_of(desc.rows) : -1000,
                    .has_log_probability = draw.one_in(2)};
  report.check(
      absl::StrCat(to_string(desc.op), " sampling ", to_string(desc.type), " ", desc.rows, " of ", desc.vocabulary,
                   ", deviation ", like.deviation, ", shifted by ", setup.shift, ", count ", setup.row_count),
      check(desc, like, rules, setup));
}

}  // namespace cgrt::testing
