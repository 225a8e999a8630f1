// From text to the tree of a FilterExpression, by precedence: or, and, comparisons with `in`, + -,
// * / %, **, not; operators of one level from left to right.
#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "index/filter/filter_expression.h"

namespace hotkv {

namespace {

struct Operator {
  std::string_view text;
  FilterOp op;
  uint8_t level;  // higher binds tighter
};

// Longer ones before those that they begin with.
constexpr Operator kOperators[] = {
    {"**", FilterOp::kPower, 6},       {"*", FilterOp::kMultiply, 5},
    {"/", FilterOp::kDivide, 5},       {"%", FilterOp::kModulo, 5},
    {"+", FilterOp::kAdd, 4},          {"-", FilterOp::kSubtract, 4},
    {">=", FilterOp::kGreaterEqual, 3}, {">", FilterOp::kGreater, 3},
    {"<=", FilterOp::kLessEqual, 3},   {"<", FilterOp::kLess, 3},
    {"==", FilterOp::kEqual, 3},       {"!=", FilterOp::kNotEqual, 3},
    {"in", FilterOp::kIn, 3},          {"and", FilterOp::kAnd, 2},
    {"&&", FilterOp::kAnd, 2},         {"or", FilterOp::kOr, 1},
    {"||", FilterOp::kOr, 1},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsSelectorChar(char c) {
  return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : text_(text) {}

  Result<FilterExpression> Parse() {
    if (text_.size() > kFilterTextMax) {
      return Status::InvalidArgument("filter: longer than " + std::to_string(kFilterTextMax) +
                                     " bytes");
    }
    const uint32_t root = Binary(1);
    SkipBlanks();
    if (ok() && at_ < text_.size()) {
      Fail(text_[at_] == ')' ? "a ')' that nothing opens" : "expected an operator");
    }
    if (!ok()) return Status::InvalidArgument(std::move(error_));
    // Nodes beyond the root are never left: each was made for the one that uses it.
    HOTKV_CHECK(root + 1 == result_.nodes_.size());
    result_.fields_ = JsonFields(std::move(fields_));
    return std::move(result_);
  }

 private:
  bool ok() const { return error_.empty(); }
  void Fail(std::string_view what) { FailAt(what, at_); }
  void FailAt(std::string_view what, size_t at) {
    if (!ok()) return;
    error_ = "filter: " + std::string(what) + " at position " + std::to_string(at + 1);
  }
  void SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // A word of letters at the cursor, without taking it.
  std::string_view Word() const {
    size_t end = at_;
    while (end < text_.size() && (IsLetter(text_[end]) || text_[end] == '_')) ++end;
    return text_.substr(at_, end - at_);
  }

  uint32_t Add(FilterNode node) {
    const auto above = [&](uint32_t operand) {
      const FilterNode& below = result_.nodes_[operand];
      node.uses |= below.uses;
      node.height = std::max(node.height, static_cast<uint16_t>(below.height + 1));
    };
    if (node.op >= FilterOp::kNot) above(node.left);
    if (node.op > FilterOp::kNot) above(node.right);
    if (node.height > kFilterHeightMax || result_.nodes_.size() == kFilterNodesMax) {
      Fail("too many operators");
    }
    result_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(result_.nodes_.size()) - 1;
  }

  const Operator* PeekOperator() {
    SkipBlanks();
    const std::string_view word = Word();
    for (const Operator& op : kOperators) {
      const bool here = IsLetter(op.text[0]) ? word == op.text
                                             : text_.substr(at_, op.text.size()) == op.text;
      if (here) return &op;
    }
    return nullptr;
  }

  // Operators of `level` and above.
  uint32_t Binary(uint8_t level) {
    uint32_t left = Unary();
    while (ok()) {
      const Operator* op = PeekOperator();
      if (op == nullptr || op->level < level) break;
      at_ += op->text.size();
      FilterNode node;
      node.op = op->op;
      node.left = left;
      ++depth_;
      node.right = Binary(static_cast<uint8_t>(op->level + 1));
      --depth_;
      if (!ok()) break;
      left = Add(std::move(node));
    }
    return left;
  }

  uint32_t Unary() {
    if (++depth_ > kFilterDepthMax) Fail("nested too deeply");
    uint32_t made = 0;
    if (ok()) made = Operand();
    --depth_;
    return made;
  }

  uint32_t Operand() {
    SkipBlanks();
    const char c = Peek();
    const std::string_view word = Word();
    if ((c == '!' && Peek(1) != '=') || word == "not") {
      at_ += c == '!' ? 1 : 3;
      FilterNode node;
      node.op = FilterOp::kNot;
      node.left = Unary();
      if (!ok()) return 0;
      return Add(std::move(node));
    }
    if (c == '(') return Parenthesis();
    if (c == '.') return Selector();
    if (c == '[') return Tuple();
    FilterNode node;
    if (IsDigit(c) || (c == '-' && IsDigit(Peek(1)))) {
      Number(&node);
    } else if (c == '"' || c == '\'') {
      String(&node);
    } else if (word == "true" || word == "false") {
      node.op = FilterOp::kNumber;
      node.number = word == "true" ? 1 : 0;
      at_ += word.size();
    } else if (word == "null") {
      at_ += word.size();
    } else {
      Fail("expected a value");
    }
    return ok() ? Add(std::move(node)) : 0;
  }

  uint32_t Parenthesis() {
    const size_t opened = at_++;
    const uint32_t inner = Binary(1);
    SkipBlanks();
    if (!ok()) return 0;
    if (Peek() == ')') {
      ++at_;
    } else if (at_ == text_.size()) {
      FailAt("a '(' that nothing closes", opened);
    } else {
      Fail("expected an operator or ')'");
    }
    return inner;
  }

  uint32_t Selector() {
    const size_t begin = at_++;
    const size_t name_at = at_;
    while (at_ < text_.size() && IsSelectorChar(text_[at_])) ++at_;
    const std::string_view name = text_.substr(name_at, at_ - name_at);
    if (name.empty()) FailAt("expected a field's name after '.'", begin);
    const auto known = std::find(fields_.begin(), fields_.end(), name);
    FilterNode node;
    node.op = FilterOp::kField;
    node.field = static_cast<uint16_t>(known - fields_.begin());
    if (known == fields_.end()) {
      if (fields_.size() == kFilterFieldsMax) FailAt("too many fields", begin);
      fields_.emplace_back(name);
    }
    if (!ok()) return 0;
    node.uses = uint64_t{1} << node.field;
    return Add(std::move(node));
  }

  uint32_t Tuple() {
    const size_t opened = at_++;
    FilterNode tuple;
    tuple.op = FilterOp::kTuple;
    for (;;) {
      SkipBlanks();
      if (Peek() == ']') break;
      FilterNode item;
      const char c = Peek();
      if (c == '"' || c == '\'') {
        String(&item);
      } else if (IsDigit(c) || c == '-') {
        Number(&item);
      } else if (at_ == text_.size()) {
        FailAt("a '[' that nothing closes", opened);
      } else {
        Fail("expected a number or a string");
      }
      if (!ok()) return 0;
      tuple.items.push_back(std::move(item));
      SkipBlanks();
      if (Peek() == ',') {
        ++at_;
      } else if (Peek() != ']' && at_ < text_.size()) {
        Fail("expected ',' or ']'");
        return 0;
      }
    }
    ++at_;
    return Add(std::move(tuple));
  }

  void Number(FilterNode* node) {
    const size_t begin = at_;
    if (Peek() == '-') ++at_;
    const auto digits = [this] {
      while (IsDigit(Peek())) ++at_;
    };
    digits();
    if (Peek() == '.') {
      ++at_;
      digits();
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_;
      if (Peek() == '-' || Peek() == '+') ++at_;
      if (!IsDigit(Peek())) FailAt("not a number", begin);
      digits();
    }
    const std::string text(text_.substr(begin, at_ - begin));
    if (text == "-" || IsSelectorChar(Peek()) || Peek() == '.') {
      // `5-3` is a subtraction; only a letter or another point spoils a number.
      if (text == "-" || Peek() != '-') FailAt("not a number", begin);
    }
    node->op = FilterOp::kNumber;
    node->number = std::strtod(text.c_str(), nullptr);
  }

  void String(FilterNode* node) {
    const size_t begin = at_;
    const char quote = text_[at_++];
    node->op = FilterOp::kString;
    while (at_ < text_.size() && text_[at_] != quote) {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        constexpr std::string_view kFrom = "bfnrt";
        constexpr std::string_view kTo = "\b\f\n\r\t";
        const size_t known = kFrom.find(c);
        if (known != std::string_view::npos) c = kTo[known];
      }
      node->text.push_back(c);
    }
    if (at_ == text_.size()) {
      FailAt("a string that does not end", begin);
    } else {
      ++at_;
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  std::string error_;
  std::vector<std::string> fields_;
  FilterExpression result_;
};

Result<FilterExpression> FilterExpression::Parse(std::string_view text) {
  return FilterParser(text).Parse();
}

}  // namespace hotkv
