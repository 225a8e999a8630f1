#include "server/config/settings.h"

#include <algorithm>
#include <cctype>

#include "engine/base/number.h"

namespace hotkv {

namespace {

constexpr std::string_view kEventLetters = "KEg$lshzxetmdnoc";
// Bit of each letter, in the same order. 'A' stands for g$lshzxetd.
constexpr int64_t kEventBits[] = {1 << 0,  1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                  1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                  1 << 13, 1 << 14, 1 << 15, 1 << 16};
constexpr int64_t kAllEvents =
    1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13;

Status Refuse(std::string text) { return Status::InvalidArgument(std::move(text)); }

std::vector<std::string> SplitBlanks(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

std::string JoinBlanks(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

bool TakesSeveralWords(SettingType type) {
  return type == SettingType::kWords || type == SettingType::kSave ||
         type == SettingType::kShutdown || type == SettingType::kOutputLimits ||
         type == SettingType::kPercentiles || type == SettingType::kOomScores;
}

std::vector<std::string_view> Choices(std::string_view choices) {
  std::vector<std::string_view> list;
  while (!choices.empty()) {
    const size_t bar = std::min(choices.find('|'), choices.size());
    list.push_back(choices.substr(0, bar));
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return list;
}

Status RefuseChoice(const std::vector<std::string_view>& choices) {
  std::string list;
  for (const std::string_view choice : choices) {
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  return Refuse("argument(s) must be one of the following: " + list);
}

bool SameText(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i])))
      return false;
  }
  return true;
}

int64_t ParseOctal(std::string_view text) {
  if (text.empty() || text.size() > 4) return -1;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return -1;
    value = value * 8 + (c - '0');
  }
  return value;
}

std::string OctalText(int64_t value) {
  std::string text;
  for (int64_t rest = value; rest != 0 || text.empty(); rest /= 8)
    text.insert(text.begin(), static_cast<char>('0' + rest % 8));
  return text;
}

// Where Redis reads with strtoll: a sign and leading zeros are no fault, all else is.
std::optional<int64_t> ParseLoose(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
  while (digits && text.size() > 1 && text[0] == '0') text.remove_prefix(1);
  if (!digits) return std::nullopt;
  return ParseInt64((negative && text != "0" ? "-" : "") + std::string(text));
}

Status CheckRange(const SettingSpec& spec, int64_t value) {
  if (value >= spec.min && value <= spec.max) return Status::Ok();
  return Refuse("argument must be between " + Int64ToText(spec.min) + " and " +
                Int64ToText(spec.max) + " inclusive");
}

Result<std::string> CanonicalSave(std::vector<std::string> words) {
  if (words.size() == 1 && words[0].empty()) words.clear();
  if (words.size() % 2 != 0) return Refuse("Invalid save parameters");
  for (size_t i = 0; i < words.size(); i += 2) {
    const auto seconds = ParseLoose(words[i]);
    const auto changes = ParseLoose(words[i + 1]);
    if (!seconds || *seconds < 1 || !changes || *changes < 0)
      return Refuse("Invalid save parameters");
    words[i] = Int64ToText(*seconds);
    words[i + 1] = Int64ToText(*changes);
  }
  return JoinBlanks(words);
}

// The words in the table's order, each once; "default" beside others says nothing.
Result<std::string> CanonicalShutdown(const SettingSpec& spec,
                                      const std::vector<std::string>& words) {
  const std::vector<std::string_view> choices = Choices(spec.choices);
  std::vector<bool> named(choices.size());
  for (const std::string& word : words) {
    const auto same = [&](std::string_view choice) { return SameText(word, choice); };
    const auto found = std::find_if(choices.begin(), choices.end(), same);
    if (found == choices.end()) return RefuseChoice(choices);
    named[static_cast<size_t>(found - choices.begin())] = true;
  }
  std::vector<std::string> canonical;
  for (size_t i = 1; i < choices.size(); ++i) {
    if (named[i]) canonical.emplace_back(choices[i]);
  }
  if (canonical.size() > 1 && canonical[0] == "save" && canonical[1] == "nosave") {
    return Refuse("shutdown options SAVE and NOSAVE can't be used simultaneously");
  }
  if (words.empty()) return RefuseChoice(choices);
  return canonical.empty() ? std::string(choices[0]) : JoinBlanks(canonical);
}

constexpr std::string_view kClassNames[] = {"normal", "slave", "pubsub"};

int ClassOf(std::string_view name) {
  if (SameText(name, "replica")) name = "slave";
  for (int i = 0; i < 3; ++i) {
    if (SameText(name, kClassNames[i])) return i;
  }
  return -1;
}

// Changes the classes that are named and keeps the others.
Result<std::string> CanonicalOutputLimits(const std::vector<std::string>& words,
                                          std::string_view present) {
  if (words.size() % 4 != 0) {
    return Refuse("Wrong number of arguments in buffer limit configuration.");
  }
  std::vector<std::string> all = SplitBlanks(present);
  for (size_t i = 0; i < words.size(); i += 4) {
    const int client_class = ClassOf(words[i]);
    if (client_class < 0)
      return Refuse("Invalid client class specified in buffer limit configuration.");
    const int64_t hard = ParseMemory(words[i + 1]);
    const int64_t soft = ParseMemory(words[i + 2]);
    const auto seconds = ParseLoose(words[i + 3]);
    if (hard < 0 || soft < 0 || !seconds || *seconds < 0) {
      return Refuse("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    const size_t at = static_cast<size_t>(client_class) * 4;
    all[at + 1] = Int64ToText(hard);
    all[at + 2] = Int64ToText(soft);
    all[at + 3] = Int64ToText(*seconds);
  }
  return JoinBlanks(all);
}

Result<std::string> CanonicalPercentiles(std::vector<std::string> words) {
  for (std::string& word : words) {
    const std::optional<double> value = ParseDouble(word);
    if (!value) return Refuse("Invalid latency-tracking-info-percentiles parameters");
    if (*value < 0 || *value > 100) {
      return Refuse("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    word = DoubleToText(*value == 0 ? 0 : *value);  // "-0" is 0
  }
  return JoinBlanks(words);
}

Result<std::string> CanonicalOomScores(std::vector<std::string> words) {
  constexpr size_t kScores = 3;
  constexpr int64_t kScoreMax = 2000;
  if (words.size() != kScores) return Refuse("wrong number of arguments");
  for (std::string& word : words) {
    const std::optional<int64_t> score = ParseLoose(word);
    if (!score || *score < -kScoreMax || *score > kScoreMax) {
      return Refuse("Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
    }
    word = Int64ToText(*score);
  }
  return JoinBlanks(words);
}

// Several words of one setting, each as it is read back.
Result<std::string> CanonicalWords(const SettingSpec& spec, std::vector<std::string> words,
                                   std::string_view present) {
  switch (spec.type) {
    case SettingType::kSave:
      return CanonicalSave(std::move(words));
    case SettingType::kShutdown:
      return CanonicalShutdown(spec, words);
    case SettingType::kOutputLimits:
      return CanonicalOutputLimits(words, present);
    case SettingType::kPercentiles:
      return CanonicalPercentiles(std::move(words));
    case SettingType::kOomScores:
      return CanonicalOomScores(std::move(words));
    default:
      return JoinBlanks(words);
  }
}

// Kept as Redis shows it: bytes, or a percentage.
Result<std::string> CanonicalMemoryShare(std::string_view word) {
  const bool percent = word.ends_with('%');
  const std::string_view digits = percent ? word.substr(0, word.size() - 1) : word;
  const std::optional<int64_t> share = percent ? ParseInt64(digits) : ParseMemory(word);
  const bool plain = !digits.empty() && digits[0] >= '0' && digits[0] <= '9';
  if (!plain || !share || *share < 0) return Refuse("argument must be a memory or percent value");
  return Int64ToText(*share) + (percent ? "%" : "");
}

}  // namespace

int64_t ParseMemory(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::string_view unit = text.substr(digits);
  int64_t factor = 0;
  if (unit.empty() || SameText(unit, "b")) factor = 1;
  if (SameText(unit, "k")) factor = 1000;
  if (SameText(unit, "kb")) factor = 1024;
  if (SameText(unit, "m")) factor = 1000'000;
  if (SameText(unit, "mb")) factor = 1024 * 1024;
  if (SameText(unit, "g")) factor = 1000'000'000;
  if (SameText(unit, "gb")) factor = 1024 * 1024 * 1024;
  const auto number = ParseLoose(text.substr(0, digits));
  if (factor == 0 || !number || *number > INT64_MAX / factor) return -1;
  return *number * factor;
}

int64_t ParseEventFlags(std::string_view letters) {
  int64_t flags = 0;
  for (const char c : letters) {
    const size_t at = kEventLetters.find(c);
    if (c == 'A') {
      flags |= kAllEvents;
    } else if (at == std::string_view::npos) {
      return -1;
    } else {
      flags |= kEventBits[at];
    }
  }
  return flags;
}

std::string EventFlagsToText(int64_t flags) {
  std::string text;
  const bool all = (flags & kAllEvents) == kAllEvents;
  if (all) text += 'A';
  for (size_t i = 2; i < kEventLetters.size(); ++i) {
    const int64_t bit = kEventBits[i];
    if ((flags & bit) != 0 && !(all && (kAllEvents & bit) != 0)) text += kEventLetters[i];
  }
  if ((flags & kEventBits[0]) != 0) text += 'K';
  if ((flags & kEventBits[1]) != 0) text += 'E';
  return text;
}

Settings::Settings() : values_(AllSettings().size()) {
  const std::span<const SettingSpec> all = AllSettings();
  for (size_t i = 0; i < all.size(); ++i) {
    // Output limits are changed class by class, so the text must be there before.
    if (all[i].type == SettingType::kOutputLimits) values_[i].text = all[i].default_text;
    const std::string text(all[i].default_text);
    const Status status = Set(i, {&text, 1});
    HOTKV_CHECK(status.ok());
  }
}

bool Settings::IsDefault(size_t index) const {
  static const Settings defaults;
  return values_[index].text == defaults.values_[index].text;
}

Status Settings::Set(size_t index, std::span<const std::string> given) {
  const SettingSpec& spec = AllSettings()[index];
  Value value;
  if (TakesSeveralWords(spec.type)) {
    std::vector<std::string> words(given.begin(), given.end());
    if (words.size() == 1) words = SplitBlanks(words[0]);
    HOTKV_ASSIGN_OR_RETURN(value.text,
                           CanonicalWords(spec, std::move(words), values_[index].text));
  } else {
    if (given.size() != 1) return Refuse("wrong number of arguments");
    HOTKV_ASSIGN_OR_RETURN(value, ParseOne(spec, given[0]));
  }
  if (spec.Has(setting_flag::kDefaultOnly) && value.text != spec.default_text) {
    return Refuse("HotKV does not offer this");
  }
  values_[index] = std::move(value);
  return Status::Ok();
}

Result<Settings::Value> Settings::ParseOne(const SettingSpec& spec, const std::string& word) {
  Value value{word, 0};
  switch (spec.type) {
    case SettingType::kBool:
      if (!SameText(word, "yes") && !SameText(word, "no"))
        return Refuse("argument must be 'yes' or 'no'");
      value.number = SameText(word, "yes") ? 1 : 0;
      value.text = value.number != 0 ? "yes" : "no";
      break;
    case SettingType::kInt: {
      const auto number = ParseInt64(word);
      if (!number) return Refuse("argument couldn't be parsed into an integer");
      HOTKV_RETURN_IF_ERROR(CheckRange(spec, *number));
      value.number = *number;
      break;
    }
    case SettingType::kMemory:
      value.number = ParseMemory(word);
      if (value.number < 0) return Refuse("argument must be a memory value");
      HOTKV_RETURN_IF_ERROR(CheckRange(spec, value.number));
      value.text = Int64ToText(value.number);
      break;
    case SettingType::kOctal:
      value.number = ParseOctal(word);
      if (value.number < 0) return Refuse("argument couldn't be parsed into an integer");
      HOTKV_RETURN_IF_ERROR(CheckRange(spec, value.number));
      value.text = OctalText(value.number);
      break;
    case SettingType::kChoice: {
      const std::vector<std::string_view> choices = Choices(spec.choices);
      for (size_t i = 0; i < choices.size(); ++i) {
        if (SameText(word, choices[i])) {
          return Value{std::string(choices[i]), static_cast<int64_t>(i)};
        }
      }
      return RefuseChoice(choices);
    }
    case SettingType::kEvents:
      value.number = ParseEventFlags(word);
      if (value.number < 0)
        return Refuse("Invalid event class character. Use 'Ag$lszhxeKEtmdnoc'.");
      value.text = EventFlagsToText(value.number);
      break;
    case SettingType::kMemoryShare: {
      HOTKV_ASSIGN_OR_RETURN(value.text, CanonicalMemoryShare(word));
      break;
    }
    default:
      break;
  }
  return value;
}

std::vector<std::string> Settings::Words(Setting id) const { return SplitBlanks(Text(id)); }

OutputLimit Settings::OutputLimitOf(ClientClass client_class) const {
  const std::vector<std::string> words = Words(Setting::kOutputBufferLimit);
  const size_t at = static_cast<size_t>(client_class) * 4;
  return {*ParseInt64(words[at + 1]), *ParseInt64(words[at + 2]), *ParseInt64(words[at + 3])};
}

std::vector<SaveSetting> Settings::SavePoints() const {
  std::vector<SaveSetting> points;
  const std::vector<std::string> words = Words(Setting::kSave);
  for (size_t i = 0; i + 1 < words.size(); i += 2)
    points.push_back({*ParseInt64(words[i]), *ParseInt64(words[i + 1])});
  return points;
}

}  // namespace hotkv
