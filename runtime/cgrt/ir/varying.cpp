#include "cgrt/ir/varying.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/in_terms_of.h"
#include "cgrt/ir/matching.h"

namespace cgrt::ir {
namespace {

std::vector<WordPlace> words_of(std::size_t position, const Argument& argument) {
  const std::uint32_t size = argument.parameter.size;
  if (size <= 8) return {{position, 0, size}};
  std::vector<WordPlace> words;
  auto pointer = argument.pointers.begin();
  for (std::uint32_t byte = 0; byte < size;) {
    while (pointer != argument.pointers.end() && pointer->at < argument.parameter.offset + byte) ++pointer;
    std::uint32_t until = size;
    if (pointer != argument.pointers.end()) until = pointer->at - argument.parameter.offset;
    const std::uint32_t bytes = until == byte ? 8 : std::min({4u, until - byte, size - byte});
    words.push_back({position, byte, bytes});
    byte += bytes;
  }
  return words;
}

// The part of an argument that is the word.
Argument part_of(const Argument& argument, const WordPlace& place) {
  const std::uint32_t begin = argument.parameter.offset + place.byte;
  const auto is_before = [](const InnerPointer& pointer, std::uint32_t at) { return pointer.at < at; };
  const auto first = std::lower_bound(argument.pointers.begin(), argument.pointers.end(), begin, is_before);
  const auto last = std::lower_bound(first, argument.pointers.end(), begin + place.bytes, is_before);
  const std::size_t from = std::min<std::size_t>(place.byte, argument.bytes.size());
  const std::size_t size = std::min<std::size_t>(place.bytes, argument.bytes.size() - from);
  return {{begin, place.bytes}, argument.bytes.subspan(from, size), {first, last}};
}

bool are_equal(const Argument& a, const Argument& b) {
  return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()) &&
         std::equal(a.pointers.begin(), a.pointers.end(), b.pointers.begin(), b.pointers.end());
}

bool is_named_after_random_numbers(const std::string& function) {
  const std::string name = absl::AsciiStrToLower(function);
  constexpr std::array kNames = {"philox", "curand", "rng", "random", "dropout"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* one) { return absl::StrContains(name, one); });
}

std::uint64_t number_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | bytes[i];
  return bits;
}

// Whether it is too large for a size and has not the form of a floating-point number. Of a structure's 8 bytes, also
// whether they are not two such numbers of 4.
bool may_be_seed(std::span<const std::uint8_t> bytes, bool is_argument) {
  const std::uint64_t bits = number_of(bytes);
  const auto is_plausible = [](double real) { return std::abs(real) >= 1e-12 && std::abs(real) <= 1e12; };
  const auto is_number = [&](std::uint64_t half) {
    return half < 1u << 28 || is_plausible(double{std::bit_cast<float>(static_cast<std::uint32_t>(half))});
  };
  constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;
  const auto number = static_cast<std::int64_t>(bits);
  if (number < kLargestSize && number > -kLargestSize) return false;
  if (!is_argument && is_number(bits & 0xffffffff) && is_number(bits >> 32)) return false;
  return !is_plausible(std::bit_cast<double>(bits));
}

// One word of a node in all graphs.
struct Word {
  WordPlace place;
  std::vector<Argument> values;  // in each graph; they lie in the graphs
  bool is_constant = true, is_address = false;
};

class Finder {
 public:
  explicit Finder(std::span<const GraphIr> graphs) : first_(graphs[0]), is_common_(first_.nodes.size(), true) {
    for (const GraphIr& other : graphs.subspan(1)) {
      const std::vector<std::uint32_t> matches = match_nodes(first_, other);
      others_.push_back(in_terms_of(first_, other, matches));
      for (std::size_t n = 0; n < matches.size(); ++n) {
        if (matches[n] == kNoNode) is_common_[n] = false;
      }
    }
  }

  Varying run() && {
    for (std::uint32_t n = 0; n < first_.nodes.size(); ++n) {
      const auto* kernel = std::get_if<KernelParams>(&first_.nodes[n].params);
      if (kernel == nullptr) continue;
      if (!is_common_[n] || !has_one_function(n)) {
        ++out_.left_out;
        continue;
      }
      ++out_.nodes;
      add_node(n, *kernel);
    }
    for (auto& [place, found] : constant_) out_.constant.push_back(std::move(found));
    return std::move(out_);
  }

 private:
  static const KernelParams& kernel_of(const GraphIr& graph, std::uint32_t node) {
    return std::get<KernelParams>(graph.nodes[node].params);
  }
  bool has_one_function(std::uint32_t node) const {
    return std::all_of(others_.begin(), others_.end(), [&](const GraphIr& other) {
      return function_of(other, kernel_of(other, node)) == function_of(first_, kernel_of(first_, node));
    });
  }

  std::vector<Word> read(std::uint32_t node) const {
    std::vector<std::vector<Argument>> arguments = {arguments_of(first_, kernel_of(first_, node))};
    for (const GraphIr& other : others_) arguments.push_back(arguments_of(other, kernel_of(other, node)));
    std::vector<Word> words;
    for (std::size_t i = 0; i < arguments[0].size(); ++i) {
      for (const WordPlace& place : words_of(i, arguments[0][i])) {
        Word& word = words.emplace_back(Word{.place = place, .values = {}});
        for (const std::vector<Argument>& of_graph : arguments) {
          word.values.push_back(part_of(of_graph[i], place));
          word.is_constant &= are_equal(word.values.front(), word.values.back());
          word.is_address |= !word.values.back().pointers.empty();
        }
      }
    }
    return words;
  }

  std::vector<std::string> texts(const Word& word) const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < word.values.size(); ++i) {
      texts.push_back(describe(i == 0 ? first_ : others_[i - 1], word.values[i]));
    }
    return texts;
  }

  void add_node(std::uint32_t node, const KernelParams& kernel) {
    const std::vector<Word> words = read(node);
    const bool has_varying =
        std::any_of(words.begin(), words.end(), [](const Word& word) { return !word.is_constant; });
    for (const Word& word : words) {
      if (!word.is_constant) {
        out_.varying.push_back({node, word.place, texts(word)});
      } else if (has_varying && !word.is_address && (word.place.bytes == 4 || word.place.bytes == 8)) {
        add_constant(kernel.function, word);
      }
    }
    add_seeds(node, function_of(first_, kernel).name, words);
  }

  void add_constant(std::uint32_t function, const Word& word) {
    ConstantWord& found =
        constant_.try_emplace({function, word.place}, ConstantWord{function, word.place, 0, {}}).first->second;
    ++found.nodes;
    std::string text = describe(first_, word.values[0]);
    if (std::find(found.values.begin(), found.values.end(), text) == found.values.end()) {
      found.values.push_back(std::move(text));
    }
  }

  // Eight bytes of a longer argument are two words.
  void add_seeds(std::uint32_t node, const std::string& function, const std::vector<Word>& words) {
    struct Long {
      WordPlace place;
      std::vector<std::uint8_t> bytes;
      std::size_t first, last;  // words
    };
    std::vector<Long> longs;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto is_fixed = [](const Word& word) { return word.is_constant && !word.is_address; };
      const Word& word = words[i];
      if (!is_fixed(word)) continue;
      std::vector<std::uint8_t> bytes(word.values[0].bytes.begin(), word.values[0].bytes.end());
      if (word.place.bytes == 8) {
        longs.push_back({word.place, std::move(bytes), i, i});
      } else if (word.place.bytes == 4 && word.place.byte % 8 == 0 && i + 1 < words.size() && is_fixed(words[i + 1]) &&
                 words[i + 1].place.argument == word.place.argument && words[i + 1].place.bytes == 4) {
        const Argument& high = words[i + 1].values[0];
        bytes.insert(bytes.end(), high.bytes.begin(), high.bytes.end());
        longs.push_back({{word.place.argument, word.place.byte, 8}, std::move(bytes), i, i + 1});
      }
    }
    const auto add = [&](const Long& one) {
      const Argument value{{0, 8}, one.bytes, {}};
      out_.seeds.push_back({node, one.place, std::vector<std::string>(others_.size() + 1, describe(first_, value))});
    };
    const bool is_named = is_named_after_random_numbers(function);
    for (std::size_t i = 0; i < longs.size(); ++i) {
      const bool is_pair = i + 1 < longs.size() && longs[i + 1].first == longs[i].last + 1;
      if (is_named) {
        add(longs[i]);
      } else if (is_pair && may_be_seed(longs[i].bytes, longs[i].first == longs[i].last)) {
        add(longs[i]);
        add(longs[++i]);
      }
    }
  }
  const GraphIr& first_;
  std::vector<GraphIr> others_;  // in terms of the first
  std::vector<bool> is_common_;
  std::map<std::pair<std::uint32_t, WordPlace>, ConstantWord> constant_;
  Varying out_;
};

}  // namespace

std::string describe(const WordPlace& place) {
  return absl::StrCat("argument ", place.argument, place.byte != 0 ? absl::StrCat(" byte ", place.byte) : "", ", ",
                      place.bytes, " bytes");
}

Varying find_varying(std::span<const GraphIr> graphs) { return Finder(graphs).run(); }

}  // namespace cgrt::ir
