// The input of a fuzzer as a bundle in a folder in memory: the manifest without the line of its hash, then the files
// that it names, with four bytes 0x1e between them. A hash in the manifest is the number of a file, 32 hexadecimal
// digits, and becomes the hash of what that file now has: what is parsed is not stopped by a hash that a mutation
// broke. 32 digits f become that of the one image of code, which does not change.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cgrt/saved/hash.h"
#include "cgrt/saved/manifest.h"
#include "support/scale_image.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace cgrt::fuzz {

inline std::vector<std::string_view> split(std::string_view input) {
  constexpr std::size_t kMaxParts = 12;
  constexpr std::string_view kBetween = "\x1e\x1e\x1e\x1e";
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; parts.size() + 1 < kMaxParts && (at = input.find(kBetween)) != input.npos;) {
    parts.push_back(input.substr(0, at));
    input.remove_prefix(at + kBetween.size());
  }
  parts.push_back(input);
  return parts;
}

inline std::string hash_text(std::string_view content) {
  return to_string(saved::hash_of(std::as_bytes(std::span(content))));
}

inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

// The values of a key, up to eight.
inline std::vector<std::string> values_of(std::string_view manifest, std::string_view key) {
  std::vector<std::string> values;
  for (std::size_t at = manifest.find(key); at != manifest.npos && values.size() < 8; at = manifest.find(key, at)) {
    at += key.size();
    values.emplace_back(manifest.substr(at, manifest.find('"', at) - at));
  }
  return values;
}

class BundleFolder {
 public:
  explicit BundleFolder(std::string_view input) : path_("/dev/shm/cgrt_fuzz_" + std::to_string(getpid())) {
    std::filesystem::remove_all(path_);
    for (const char* folder : {"", "/graphs", "/code", "/memory"}) ::mkdir((path_ + folder).c_str(), 0700);
    const std::vector<std::string_view> parts = split(input);
    std::string manifest(parts[0]);
    const std::string code = hash_text(testing::kScaleImage);
    replace_all(manifest, std::string(code.size(), 'f'), code);
    write("code/" + code, testing::kScaleImage);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      char number[33];
      std::snprintf(number, sizeof(number), "%032zx", i - 1);
      const std::string hash = hash_text(parts[i]);
      replace_all(manifest, number, hash);
      write("memory/" + hash, parts[i]);
      for (const std::string& name : values_of(manifest, "\"name\": \"")) {
        if (saved::is_name(name)) write("graphs/" + name + "." + hash + ".cgrt.json", parts[i]);
      }
    }
    manifest += ",\n";
    write("manifest.json", manifest + "  \"hash\": \"" + hash_text(manifest) + "\"\n}\n");
  }
  ~BundleFolder() { std::filesystem::remove_all(path_); }
  BundleFolder(const BundleFolder&) = delete;
  BundleFolder& operator=(const BundleFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  void write(const std::string& name, std::string_view content) {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }

  std::string path_;
};

// Half of the mutations change one number or one word of a text to another that is likely to matter.
inline std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  if (below(2) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  struct Token {
    std::size_t at, length;
  };
  std::vector<Token> numbers;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) continue;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
    numbers.push_back({i, end - i});
    i = end;
  }
  if (numbers.empty()) return LLVMFuzzerMutate(data, size, max_size);
  static constexpr const char* kValues[] = {"0",
                                            "1",
                                            "2",
                                            "3",
                                            "7",
                                            "8",
                                            "16",
                                            "63",
                                            "64",
                                            "4095",
                                            "4096",
                                            "4097",
                                            "4194304",
                                            "4194305",
                                            "65535",
                                            "65536",
                                            "2147483647",
                                            "2147483648",
                                            "4294967295",
                                            "4294967296",
                                            "9223372036854775807",
                                            "9223372036854775808",
                                            "18446744073709551615",
                                            "18446744073709551616",
                                            "-1",
                                            "1e9",
                                            "null",
                                            "[]"};
  const Token target = numbers[below(numbers.size())], source = numbers[below(numbers.size())];
  const std::string value = below(2) == 0 ? kValues[below(std::size(kValues))] : text.substr(source.at, source.length);
  text.replace(target.at, target.length, value);
  const std::size_t length = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), length);
  return length;
}

}  // namespace cgrt::fuzz
