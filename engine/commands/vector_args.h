// Arguments of the VSIM.* commands: vectors in their three forms, and the options of a search. Grammar: docs/commands/vectors.md.
//
// Thread rules: pure functions on the arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/commands/command_spec.h"
#include "index/filter/filter_expression.h"
#include "index/vector_index.h"

namespace hotkv {

// `FP32 blob`, `FP16 blob`, `VALUES n f1 ... fn`, or (searches) `ELE id`.
struct VectorArgument {
  std::vector<float> values;
  bool is_element = false;
  std::string_view element;
};

// A cursor over the arguments that remembers the first error, as the text of a RESP error.
class VectorArgs {
 public:
  VectorArgs(Args args, size_t at) : args_(args), at_(at) {}

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  bool done() const { return at_ >= args_.size(); }
  size_t left() const { return args_.size() - at_; }
  void Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }
  void SyntaxError() { Fail("ERR syntax error"); }

  std::string_view Next();              // an argument as it is; a syntax error when there is none
  bool Keyword(std::string_view upper);  // consumes the next argument if it is this keyword
  uint64_t Count(std::string_view what, uint64_t min, uint64_t max);
  // dim 0: not checked here.
  enum class Elements : uint8_t { kNo, kAllowed };
  VectorArgument Vector(uint32_t dim, Elements elements);

 private:
  VectorArgument Blob(uint32_t dim, bool half);
  VectorArgument Values(uint32_t dim);
  Args args_;
  size_t at_;
  std::string error_;
};

struct SearchOptions {
  SearchParams params;
  std::optional<FilterExpression> filter;  // for params.where_or_null, once it stays where it is
  bool explain = false;
  bool with_scores = false;
  bool raw = false;
};
// Reads options up to the end; the first error is in args->error().
SearchOptions ParseSearchOptions(VectorArgs* args);
// What follows FILTER.
std::optional<FilterExpression> ParseFilter(VectorArgs* args);
// What follows FIELDS: n (name TAG|NUMERIC)...
std::vector<FieldSpec> ParseFields(VectorArgs* args);

// The name that comes next after TYPE; the error is in args->error().
ElementType ParseElementType(VectorArgs* args);

}  // namespace hotkv
