#include "cgrt/inspect/dot_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

enum class TokenKind : std::uint8_t {
  kName,    // without quotes
  kString,  // in quotes
  kArrow,   // ->
  kSign,    // another character
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // of a string: what is between its quotes

  bool is(char sign) const { return kind == TokenKind::kSign && text[0] == sign; }
  bool is_word(const char* word) const {  // keywords are not case-sensitive, and never in quotes
    return kind == TokenKind::kName && absl::EqualsIgnoreCase({text.data(), text.size()}, word);
  }
  bool is_text() const { return kind == TokenKind::kName || kind == TokenKind::kString; }
};

bool is_of_name(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '_' || c == '.' || byte >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<Token> next() {
    CGRT_RETURN_IF_ERROR(skip_space());
    if (at_ == text_.size()) return Token{TokenKind::kEnd, text_.substr(at_)};
    if (text_[at_] == '"') return string();
    if (text_.substr(at_, 2) == "->") return take(TokenKind::kArrow, 2);
    std::size_t end = at_ + (text_[at_] == '-' ? 1 : 0);  // a number
    while (end < text_.size() && is_of_name(text_[end])) ++end;
    return end > at_ && is_of_name(text_[end - 1]) ? take(TokenKind::kName, end - at_) : take(TokenKind::kSign, 1);
  }

 private:
  Token take(TokenKind kind, std::size_t size) {
    const Token token{kind, text_.substr(at_, size)};
    at_ += size;
    return token;
  }

  absl::StatusOr<Token> string() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return unfinished("the string");
    const Token token{TokenKind::kString, text_.substr(at_ + 1, end - at_ - 1)};
    at_ = end + 1;
    return token;
  }

  absl::Status skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) continue;
      const bool begins_line = at_ == 0 || text_[at_ - 1] == '\n';
      if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return unfinished("the comment");
        at_ = end + 1;
      } else if (text_.substr(at_, 2) == "//" || (text_[at_] == '#' && begins_line)) {
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status unfinished(const char* what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(place_of(text_, text_.substr(at_)), ": ", what, " that begins here has no end"));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class DotParser {
 public:
  explicit DotParser(std::string_view text) : text_(text), lexer_(text) {}

  absl::StatusOr<DotFile> run() && {
    CGRT_RETURN_IF_ERROR(advance());
    if (token_.is_word("strict")) CGRT_RETURN_IF_ERROR(advance());
    if (!token_.is_word("digraph")) return expected("\"digraph\"");
    CGRT_RETURN_IF_ERROR(advance());
    if (token_.is_text()) {
      file_.name = token_.text;
      CGRT_RETURN_IF_ERROR(advance());
    }
    if (!token_.is('{')) return expected("\"{\"");
    CGRT_RETURN_IF_ERROR(open());
    while (!open_.empty()) CGRT_RETURN_IF_ERROR(statement());
    if (token_.kind != TokenKind::kEnd) return expected("the end of the file after the graph");
    return std::move(file_);
  }

 private:
  absl::Status statement() {
    if (token_.kind == TokenKind::kEnd) {
      return absl::InvalidArgumentError(absl::StrCat(place_of(text_, token_.text), ": the file ends, and the \"{\" of ",
                                                     place_of(text_, open_.back()), " is not closed"));
    }
    if (token_.is('}')) {
      open_.pop_back();
      return advance();
    }
    if (token_.is(';')) return advance();
    if (token_.is('{')) return open();
    if (!token_.is_text()) return expected("a statement");
    if (token_.is_word("subgraph")) return subgraph();
    const Token first = token_;
    CGRT_RETURN_IF_ERROR(advance());
    if (token_.is('=')) return value_of_graph();
    if (token_.kind == TokenKind::kArrow) return edges(first.text);
    const bool is_default = first.is_word("graph") || first.is_word("node") || first.is_word("edge");
    if (is_default && !token_.is('[')) return expected("\"[\"");
    CGRT_ASSIGN_OR_RETURN(const DotAttributes attributes, attribute_lists());
    if (!is_default) file_.nodes.push_back({first.text, attributes});
    return count();
  }

  absl::Status subgraph() {
    CGRT_RETURN_IF_ERROR(advance());
    if (token_.is_text()) {
      file_.subgraphs.push_back(token_.text);
      CGRT_RETURN_IF_ERROR(count());
      CGRT_RETURN_IF_ERROR(advance());
    }
    return token_.is('{') ? open() : expected("\"{\"");
  }

  absl::Status open() {
    if (open_.size() == kMaxDotDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat(place_of(text_, token_.text), ": nested deeper than ", kMaxDotDepth, " levels"));
    }
    open_.push_back(token_.text);
    return advance();
  }

  // What a graph is to look like is of no matter.
  absl::Status value_of_graph() {
    CGRT_RETURN_IF_ERROR(advance());
    return token_.is_text() ? advance() : expected("a name or a string");
  }

  absl::Status edges(std::string_view from) {
    const std::size_t first = file_.edges.size();
    while (token_.kind == TokenKind::kArrow) {
      CGRT_RETURN_IF_ERROR(advance());
      if (!token_.is_text() || token_.is_word("subgraph")) return expected("the name of a node");
      file_.edges.push_back({from, token_.text, {}});
      from = token_.text;
      CGRT_RETURN_IF_ERROR(count());
      CGRT_RETURN_IF_ERROR(advance());
    }
    CGRT_ASSIGN_OR_RETURN(const DotAttributes attributes, attribute_lists());
    for (std::size_t i = first; i < file_.edges.size(); ++i) file_.edges[i].attributes = attributes;
    return absl::OkStatus();
  }

  // [a=b, c="d"; e] [f=g]
  absl::StatusOr<DotAttributes> attribute_lists() {
    DotAttributes out{file_.attributes.size(), 0};
    while (token_.is('[')) {
      CGRT_RETURN_IF_ERROR(advance());
      while (!token_.is(']')) {
        if (!token_.is_text()) return expected("an attribute or \"]\"");
        DotAttribute attribute{token_.text, {}};
        CGRT_RETURN_IF_ERROR(advance());
        if (token_.is('=')) {
          CGRT_RETURN_IF_ERROR(advance());
          if (!token_.is_text()) return expected("a name or a string");
          attribute.value = token_.text;
          CGRT_RETURN_IF_ERROR(advance());
        }
        file_.attributes.push_back(attribute);
        CGRT_RETURN_IF_ERROR(count());
        if (token_.is(',') || token_.is(';')) CGRT_RETURN_IF_ERROR(advance());
      }
      CGRT_RETURN_IF_ERROR(advance());
    }
    out.count = file_.attributes.size() - out.first;
    return out;
  }

  absl::Status advance() {
    CGRT_ASSIGN_OR_RETURN(token_, lexer_.next());
    return absl::OkStatus();
  }

  absl::Status count() {
    if (++items_ <= kMaxDotItems) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(place_of(text_, token_.text), ": more than ", kMaxDotItems, " statements and attributes"));
  }

  absl::Status expected(const char* what) const {
    constexpr std::size_t kShown = 40;
    const std::string shown = ir::printable(token_.text.substr(0, kShown));
    return absl::InvalidArgumentError(
        absl::StrCat(place_of(text_, token_.text), ": expected ", what, ", found ",
                     token_.kind == TokenKind::kEnd ? "the end of the file" : absl::StrCat("\"", shown, "\"")));
  }

  std::string_view text_;
  Lexer lexer_;
  Token token_;
  std::vector<std::string_view> open_;  // the "{" that are not closed yet
  std::size_t items_ = 0;
  DotFile file_;
};

}  // namespace

std::string_view DotFile::value(const DotAttributes& some, std::string_view attribute) const {
  std::string_view found;
  for (const DotAttribute& one : of(some)) {
    if (one.name == attribute) found = one.value;
  }
  return found;
}

bool is_dot(std::string_view text) {
  const absl::StatusOr<Token> first = Lexer(text).next();
  return first.ok() && (first->is_word("digraph") || first->is_word("strict"));
}

absl::StatusOr<DotFile> parse_dot(std::string_view text) {
  const std::size_t wrong = std::min(text.find('\0'), ir::utf8_length(text));
  if (wrong < text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("not DOT: ", place_of(text, text.substr(wrong)), ": ",
                                                   text[wrong] == '\0' ? "a NUL byte" : "bytes that are not UTF-8"));
  }
  absl::StatusOr<DotFile> file = DotParser(text).run();
  if (file.ok()) return file;
  return absl::InvalidArgumentError(absl::StrCat("not DOT: ", file.status().message()));
}

std::string place_of(std::string_view text, std::string_view part) {
  return absl::StrCat("line ", 1 + std::count(text.data(), part.data(), '\n'));
}

}  // namespace cgrt::inspect
