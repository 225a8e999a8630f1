#include "index/filter/json_fields.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace hotkv {

namespace {

// Numbers longer than this are read in a copy on the heap.
constexpr size_t kNumberTextMax = 256;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

double ReadDouble(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc()) return value;
  return std::strtod(std::string(text).c_str(), nullptr);  // beyond double: infinity or zero
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

uint32_t Hex4(const char* p) {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) code = code * 16 + static_cast<uint32_t>(HexDigit(p[i]));
  return code;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// Appends a checked string's content; never longer than what it was written as.
void Decode(std::string_view raw, std::string* out) {
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out->push_back(raw[i]);
      continue;
    }
    const char c = raw[++i];
    if (c != 'u') {
      constexpr std::string_view kFrom = "bfnrt";
      constexpr std::string_view kTo = "\b\f\n\r\t";
      const size_t at = kFrom.find(c);
      out->push_back(at == std::string_view::npos ? c : kTo[at]);
      continue;
    }
    uint32_t code = Hex4(raw.data() + i + 1);
    i += 4;
    const bool high = code >= 0xd800 && code < 0xdc00;
    if (high && raw.size() - i > 6 && raw[i + 1] == '\\' && raw[i + 2] == 'u') {
      const uint32_t low = Hex4(raw.data() + i + 3);
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 6;
      }
    }
    AppendUtf8(code >= 0xd800 && code < 0xe000 ? 0xfffd : code, out);
  }
}

// A cursor over JSON; every method returns false when the text is not what it should be.
class Scanner {
 public:
  Scanner(const char* begin, const char* end) : p_(begin), end_(end) {}

  const char* at() const { return p_; }
  bool done() const { return p_ == end_; }
  void SkipBlanks() {
    while (p_ != end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) ++p_;
  }
  bool Take(char c) {
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  char Peek() const { return p_ == end_ ? '\0' : *p_; }

  // A string's content as written, and whether it has escapes.
  bool String(std::string_view* raw, bool* escaped) {
    if (!Take('"')) return false;
    const char* begin = p_;
    *escaped = false;
    for (; p_ != end_; ++p_) {
      const char c = *p_;
      if (c == '"') {
        *raw = {begin, static_cast<size_t>(p_ - begin)};
        ++p_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') continue;
      *escaped = true;
      if (!Escape()) return false;
    }
    return false;
  }

  bool Number(std::string_view* text) {
    const char* begin = p_;
    Take('-');
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (Peek() == 'e' || Peek() == 'E') {
      ++p_;
      if (Peek() == '+' || Peek() == '-') ++p_;
      if (!Digits()) return false;
    }
    *text = {begin, static_cast<size_t>(p_ - begin)};
    return true;
  }

  bool Word(std::string_view word) {
    if (static_cast<size_t>(end_ - p_) < word.size()) return false;
    if (std::memcmp(p_, word.data(), word.size()) != 0) return false;
    p_ += word.size();
    return true;
  }

  // Any value but an object or array.
  bool Scalar() {
    std::string_view text;
    bool escaped = false;
    switch (Peek()) {
      case '"':
        return String(&text, &escaped);
      case 't':
        return Word("true");
      case 'f':
        return Word("false");
      case 'n':
        return Word("null");
      default:
        return Number(&text);
    }
  }

  // Steps over a whole object or array. `flat` says whether it was an array of strings and numbers.
  bool Nested(bool* flat) {
    char open[kJsonDepthMax];  // kinds of what is open
    uint32_t depth = 0;
    *flat = Peek() == '[';
    for (;;) {
      SkipBlanks();
      const char c = Peek();
      bool closed = false;
      if (c == '{' || c == '[') {
        if (depth == kJsonDepthMax) return false;
        if (depth != 0) *flat = false;
        open[depth++] = c;
        ++p_;
        SkipBlanks();
        closed = Peek() == (c == '{' ? '}' : ']');
        if (!closed) {
          if (c == '{' && !Key()) return false;
          continue;
        }
      } else {
        if (c == 't' || c == 'f' || c == 'n') *flat = false;
        if (!Scalar()) return false;
      }
      // Behind a value: close as much as there is to close, or go on to the next one.
      for (;;) {
        SkipBlanks();
        const char kind = open[depth - 1];
        if (Take(kind == '{' ? '}' : ']')) {
          if (--depth == 0) return true;
          closed = false;
          continue;
        }
        if (closed || !Take(',')) return false;
        SkipBlanks();
        if (kind == '{' && !Key()) return false;
        break;
      }
    }
  }

 private:
  bool Digits() {
    if (p_ == end_ || !IsDigit(*p_)) return false;
    while (p_ != end_ && IsDigit(*p_)) ++p_;
    return true;
  }
  // At a backslash; moves to the last character of the escape.
  bool Escape() {
    if (end_ - p_ < 2) return false;
    ++p_;
    if (*p_ != 'u') return std::memchr("\"\\/bfnrt", *p_, 8) != nullptr;
    if (end_ - p_ < 5) return false;
    for (int i = 1; i <= 4; ++i) {
      if (HexDigit(p_[i]) < 0) return false;
    }
    p_ += 4;
    return true;
  }
  bool Key() {
    std::string_view name;
    bool escaped = false;
    if (!String(&name, &escaped)) return false;
    SkipBlanks();
    return Take(':');
  }

  const char* p_;
  const char* end_;
};

bool ReadValue(Scanner* in, size_t arena_room, JsonValue* value, std::string* arena) {
  std::string_view raw;
  bool escaped = false;
  switch (in->Peek()) {
    case '"': {
      if (!in->String(&raw, &escaped)) return false;
      value->kind = JsonKind::kString;
      value->text = raw;
      if (!escaped) return true;
      // Room for all that can come: texts given out before must not move.
      if (arena->capacity() < arena_room) arena->reserve(arena_room);
      const size_t at = arena->size();
      Decode(raw, arena);
      value->text = std::string_view(*arena).substr(at);
      return true;
    }
    case '{':
    case '[': {
      const char* begin = in->at();
      bool flat = false;
      if (!in->Nested(&flat)) return false;
      value->kind = flat ? JsonKind::kArray : JsonKind::kOther;
      value->text = {begin, static_cast<size_t>(in->at() - begin)};
      return true;
    }
    case 't':
    case 'f':
      value->kind = JsonKind::kBool;
      value->number = in->Peek() == 't' ? 1 : 0;
      return in->Scalar();
    case 'n':
      value->kind = JsonKind::kNull;
      return in->Scalar();
    default:
      if (!in->Number(&raw)) return false;
      value->kind = JsonKind::kNumber;
      value->number = ReadDouble(raw);
      return true;
  }
}

bool SkipValue(Scanner* in) {
  bool flat = false;
  return in->Peek() == '{' || in->Peek() == '[' ? in->Nested(&flat) : in->Scalar();
}

}  // namespace

bool JsonFields::Read(std::string_view json, std::span<JsonValue> values,
                      std::string* arena) const {
  for (JsonValue& value : values) value = JsonValue();
  arena->clear();
  Scanner in(json.data(), json.data() + json.size());
  in.SkipBlanks();
  if (!in.Take('{')) return false;
  in.SkipBlanks();
  bool more = !in.Take('}');
  std::string decoded;
  while (more) {
    std::string_view name;
    bool escaped = false;
    in.SkipBlanks();
    if (!in.String(&name, &escaped)) return false;
    if (escaped) {
      decoded.clear();
      Decode(name, &decoded);
      name = decoded;
    }
    in.SkipBlanks();
    if (!in.Take(':')) return false;
    in.SkipBlanks();
    size_t at = 0;
    while (at < names_.size() && names_[at] != name) ++at;
    const bool wanted = at < names_.size() && values[at].kind == JsonKind::kMissing;
    if (!(wanted ? ReadValue(&in, json.size(), &values[at], arena) : SkipValue(&in))) return false;
    in.SkipBlanks();
    more = in.Take(',');
    if (!more && !in.Take('}')) return false;
  }
  in.SkipBlanks();
  return in.done();
}

bool NextInJsonArray(std::string_view array, size_t* at, JsonValue* value, std::string* scratch) {
  Scanner in(array.data() + *at, array.data() + array.size());
  in.SkipBlanks();
  if (*at == 0) {
    if (!in.Take('[')) return false;
    in.SkipBlanks();
  } else if (in.Take(',')) {
    in.SkipBlanks();
  }
  if (in.done() || in.Peek() == ']') return false;
  scratch->clear();
  *value = JsonValue();
  if (!ReadValue(&in, 0, value, scratch)) return false;
  *at = static_cast<size_t>(in.at() - array.data());
  return true;
}

double TextToNumber(std::string_view text) {
  if (text.empty() || text.find('\0') != std::string_view::npos) return 0;
  char local[kNumberTextMax];
  std::string copy;
  const char* c_text = local;
  if (text.size() < sizeof(local)) {
    std::memcpy(local, text.data(), text.size());
    local[text.size()] = '\0';
  } else {
    copy = text;
    c_text = copy.c_str();
  }
  char* end = nullptr;
  const double value = std::strtod(c_text, &end);
  return end == c_text + text.size() ? value : 0;
}

}  // namespace hotkv
