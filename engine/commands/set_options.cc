#include "engine/commands/set_options.h"

#include "engine/base/hash.h"

namespace hotkv {

namespace {

struct ConditionWord {
  std::string_view word;
  SetCondition condition;
};
constexpr ConditionWord kPresenceWords[] = {{"NX", SetCondition::kMissing},
                                            {"XX", SetCondition::kPresent}};
constexpr ConditionWord kCompareWords[] = {{"IFEQ", SetCondition::kEqual},
                                           {"IFNE", SetCondition::kNotEqual},
                                           {"IFDEQ", SetCondition::kDigestEqual},
                                           {"IFDNE", SetCondition::kDigestNotEqual}};

struct TimeWord {
  std::string_view word;
  TimeForm form;
};
constexpr TimeWord kTimeWords[] = {{"EX", kRelativeSeconds},
                                   {"PX", kRelativeMillis},
                                   {"EXAT", kAbsoluteSeconds},
                                   {"PXAT", kAbsoluteMillis}};

std::optional<SetCondition> FindCondition(std::span<const ConditionWord> words,
                                          std::string_view text) {
  for (const ConditionWord& w : words) {
    if (EqualsIgnoreCase(text, w.word)) return w.condition;
  }
  return std::nullopt;
}

bool SameForm(TimeForm a, TimeForm b) { return a.seconds == b.seconds && a.absolute == b.absolute; }

class OptionParser {
 public:
  OptionParser(Args args, size_t from, uint32_t allowed)
      : args_(args), at_(from), allowed_(allowed) {}

  bool Parse() {
    while (at_ < args_.size()) {
      if (!ParsePresence() && !ParseCompare() && !ParseGet() && !ParseExpiry()) return false;
    }
    return true;
  }
  const SetOptions& options() const { return options_; }

 private:
  bool Allows(uint32_t option) const { return (allowed_ & option) != 0; }
  bool has_value() const { return at_ + 1 < args_.size(); }

  bool SetConditionTo(SetCondition condition) {
    if (options_.condition != SetCondition::kNone && options_.condition != condition) return false;
    options_.condition = condition;
    return true;
  }

  bool ParsePresence() {
    if (!Allows(set_option::kPresence)) return false;
    const std::optional<SetCondition> found = FindCondition(kPresenceWords, args_[at_]);
    if (!found || !SetConditionTo(*found)) return false;
    ++at_;
    return true;
  }

  bool ParseCompare() {
    if (!Allows(set_option::kCompare) || !has_value()) return false;
    const std::optional<SetCondition> found = FindCondition(kCompareWords, args_[at_]);
    if (!found || !SetConditionTo(*found)) return false;
    options_.operand = args_[at_ + 1];
    at_ += 2;
    return true;
  }

  bool ParseGet() {
    if (!Allows(set_option::kGet) || !EqualsIgnoreCase(args_[at_], "GET")) return false;
    options_.get = true;
    ++at_;
    return true;
  }

  bool ParseExpiryWord(uint32_t option, std::string_view word, ExpiryChange change) {
    if (!Allows(option) || !EqualsIgnoreCase(args_[at_], word)) return false;
    if (options_.expiry != ExpiryChange::kNone && options_.expiry != change) return false;
    options_.expiry = change;
    ++at_;
    return true;
  }

  bool ParseExpiry() {
    if (ParseExpiryWord(set_option::kKeepTtl, "KEEPTTL", ExpiryChange::kKeep)) return true;
    if (ParseExpiryWord(set_option::kPersist, "PERSIST", ExpiryChange::kPersist)) return true;
    if (!Allows(set_option::kTime) || !has_value()) return false;
    const std::optional<TimeForm> form = TimeFormOfKeyword(args_[at_]);
    if (!form) return false;
    const bool again = options_.expiry == ExpiryChange::kAt && SameForm(options_.time_form, *form);
    if (options_.expiry != ExpiryChange::kNone && !again) return false;
    options_.expiry = ExpiryChange::kAt;
    options_.time_form = *form;
    options_.time_arg = at_ + 1;
    at_ += 2;
    return true;
  }

  const Args args_;
  size_t at_;
  const uint32_t allowed_;
  SetOptions options_;
};

std::optional<uint64_t> ParseDigest(std::string_view text) {
  if (text.size() != kDigestDigits) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<unsigned>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    value = value << 4 | digit;
  }
  return value;
}

uint64_t DigestOf(std::string_view value) { return HashBytes(value, 0); }

Verdict Met(bool met) { return met ? Verdict::kMet : Verdict::kNotMet; }

}  // namespace

std::optional<SetCondition> CompareConditionOf(std::string_view word) {
  return FindCondition(kCompareWords, word);
}

std::optional<TimeForm> TimeFormOfKeyword(std::string_view word) {
  for (const TimeWord& w : kTimeWords) {
    if (EqualsIgnoreCase(word, w.word)) return w.form;
  }
  return std::nullopt;
}

std::optional<SetOptions> ParseSetOptions(CommandContext& ctx, size_t from, uint32_t allowed) {
  OptionParser parser(ctx.args, from, allowed);
  if (parser.Parse()) return parser.options();
  ctx.SyntaxError();
  return std::nullopt;
}

Verdict CheckCondition(CommandContext& ctx, const Entry* entry, SetCondition condition,
                       std::string_view operand) {
  if (condition == SetCondition::kNone) return Verdict::kMet;
  if (condition == SetCondition::kMissing) return Met(entry == nullptr);
  if (condition == SetCondition::kPresent) return Met(entry != nullptr);
  const bool wants_equal =
      condition == SetCondition::kEqual || condition == SetCondition::kDigestEqual;
  if (entry == nullptr) return Met(!wants_equal);
  if (entry->type() != ValueType::kString) {
    ctx.WrongType();
    return Verdict::kError;
  }
  char scratch[24];
  const std::string_view value = entry->StringValue(scratch);
  if (condition == SetCondition::kEqual || condition == SetCondition::kNotEqual) {
    return Met((value == operand) == wants_equal);
  }
  const std::optional<uint64_t> digest = ParseDigest(operand);
  if (!digest) {
    ctx.reply.Error("ERR must be exactly 16 hexadecimal characters");
    return Verdict::kError;
  }
  return Met((DigestOf(value) == *digest) == wants_equal);
}

void WriteDigest(std::string_view value, char (&out)[kDigestDigits]) {
  constexpr char kDigits[] = "0123456789abcdef";
  const uint64_t digest = DigestOf(value);
  for (size_t i = 0; i < kDigestDigits; ++i) out[i] = kDigits[digest >> (60 - 4 * i) & 0xf];
}

}  // namespace hotkv
