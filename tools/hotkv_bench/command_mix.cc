#include "tools/hotkv_bench/command_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace hotkv {
namespace {

// Values are slices of one random pool: no two are alike, so that neither side gains by compressing them.
constexpr size_t kValuePoolBytes = 1 << 20;
// Zipf ranks are drawn beforehand (a draw takes a logarithm, more than a GET); the sequence is long enough not to matter.
constexpr size_t kZipfDraws = 1 << 20;
constexpr uint64_t kKeysMax = uint64_t{1} << 32;
constexpr unsigned kKeyBytesMax = 250;
constexpr unsigned kValueBytesMax = 512u << 20;
constexpr unsigned kMembersDigits = 10;
constexpr size_t kPrefixBytes = 4;  // "key:", "cnt:"
constexpr unsigned kFillPipeline = 256;

using Named = std::pair<std::string_view, std::string_view>;
constexpr std::array kBuiltIn = {
    Named{"set", "SET {key} {value}"},
    Named{"get", "GET {key}"},
    Named{"incr", "INCR {counter}"},
    Named{"decr", "DECR {counter}"},
    Named{"mset", "MSET {key} {value} {key} {value} {key} {value} {key} {value} {key} {value} "
                  "{key} {value} {key} {value} {key} {value} {key} {value} {key} {value}"},
    Named{"mget", "MGET {key} {key} {key} {key} {key} {key} {key} {key} {key} {key}"},
    Named{"setnx", "SETNX {key} {value}"},
    Named{"setex", "SETEX {key} 3600 {value}"},
    Named{"getset", "GETSET {key} {value}"},
    Named{"append", "APPEND {counter} x"},
    Named{"del", "DEL {key}"},
    Named{"exists", "EXISTS {key}"},
    Named{"expire", "EXPIRE {key} 3600"},
    Named{"ttl", "TTL {key}"},
    Named{"strlen", "STRLEN {key}"},
    Named{"ping", "PING"},
    Named{"lpush", "LPUSH bench:list {value}"},
    Named{"rpush", "RPUSH bench:list {value}"},
    Named{"lpop", "LPOP bench:list"},
    Named{"sadd", "SADD bench:set {member}"},
    Named{"hset", "HSET bench:hash {member} {value}"},
    Named{"hget", "HGET bench:hash {member}"},
    Named{"zadd", "ZADD bench:zset 1 {member}"},
};

void WriteDigits(char* end, uint64_t number, size_t digits) {
  static constexpr char kPairs[] =
      "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
      "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
  while (digits >= 2) {
    end -= 2;
    std::memcpy(end, kPairs + 2 * (number % 100), 2);
    number /= 100;
    digits -= 2;
  }
  if (digits == 1) *--end = static_cast<char>('0' + number % 10);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::string BuiltInCommands() {
  std::string names;
  for (const auto& [name, line] : kBuiltIn) names.append(names.empty() ? "" : " ").append(name);
  return names;
}

class MixSource : public RequestSource {
 public:
  MixSource(const CommandMix& mix, uint64_t seed)
      : mix_(mix), random_(seed), zipf_position_(random_.Below(kZipfDraws)) {}

  size_t AppendBatch(std::string* out) override {
    for (unsigned i = 0; i < mix_.options_.pipeline; ++i) {
      const auto& chosen = mix_.chosen_;
      const size_t which = chosen.size() == 1 ? 0 : random_.Below(chosen.size());
      mix_.Append(mix_.templates_[chosen[which]], &random_, nullptr, &zipf_position_, out);
    }
    return mix_.options_.pipeline;
  }

 private:
  const CommandMix& mix_;
  Random random_;
  size_t zipf_position_;
};

class FillSource : public RequestSource {
 public:
  FillSource(const CommandMix& mix, CommandMix::Template set, uint64_t from, uint64_t to)
      : mix_(mix), set_(std::move(set)), random_(from + 1), next_(from), end_(to) {}

  size_t AppendBatch(std::string* out) override {
    size_t count = 0;
    size_t unused = 0;
    for (; count < kFillPipeline && next_ < end_; ++count, ++next_) {
      uint64_t key = next_;
      mix_.Append(set_, &random_, &key, &unused, out);
    }
    return count;
  }

 private:
  const CommandMix& mix_;
  CommandMix::Template set_;
  Random random_;
  uint64_t next_;
  uint64_t end_;
};

Result<std::shared_ptr<const CommandMix>> CommandMix::Make(const MixOptions& options) {
  if (options.keys < 1 || options.keys > kKeysMax) {
    return Status::InvalidArgument(fmt::format("--keys: 1 to {}", kKeysMax));
  }
  if (options.key_bytes < kPrefixBytes + std::to_string(options.keys - 1).size() ||
      options.key_bytes > kKeyBytesMax) {
    return Status::InvalidArgument(
        fmt::format("--key-size: at most {} and room for the largest key number", kKeyBytesMax));
  }
  if (options.pipeline < 1 || options.pipeline > 100'000 || options.value_bytes > kValueBytesMax) {
    return Status::InvalidArgument("--pipeline or --size out of range");
  }
  std::shared_ptr<CommandMix> mix(new CommandMix(options));
  HOTKV_RETURN_IF_ERROR(mix->ParseMix());
  HOTKV_RETURN_IF_ERROR(mix->ParseDistribution());
  Random random(options.seed);
  mix->value_pool_.resize(kValuePoolBytes + options.value_bytes);
  for (char& byte : mix->value_pool_) byte = static_cast<char>('0' + random.Below(75));
  return std::shared_ptr<const CommandMix>(std::move(mix));
}

Status CommandMix::ParseMix() {
  if (!options_.command.empty()) {
    HOTKV_ASSIGN_OR_RETURN(Template compiled, Compile(options_.command));
    templates_.push_back(std::move(compiled));
    chosen_.push_back(0);
    reads_keys_ = true;
    return {};
  }
  for (const std::string_view part : Split(options_.mix, ',')) {
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    unsigned weight = 1;
    if (equals != std::string_view::npos) {
      const std::string_view number = part.substr(equals + 1);
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
      if (error != std::errc() || end != number.data() + number.size() || weight > 10'000) {
        return Status::InvalidArgument(fmt::format("--mix: weight of '{}': 0 to 10000", name));
      }
    }
    const auto* found = std::find_if(kBuiltIn.begin(), kBuiltIn.end(),
                                     [name](const Named& each) { return each.first == name; });
    if (found == kBuiltIn.end()) {
      return Status::InvalidArgument(fmt::format("--mix: '{}' is none of {}", name, BuiltInCommands()));
    }
    HOTKV_ASSIGN_OR_RETURN(Template compiled, Compile(found->second));
    chosen_.insert(chosen_.end(), weight, static_cast<uint16_t>(templates_.size()));
    templates_.push_back(std::move(compiled));
    reads_keys_ = reads_keys_ || found->second.find("{key}") != std::string_view::npos;
  }
  if (chosen_.empty()) return Status::InvalidArgument("--mix: nothing to send");
  return {};
}

Status CommandMix::ParseDistribution() {
  const std::string_view text = options_.distribution;
  if (text == "uniform") return {};
  double exponent = 0;
  if (text.starts_with("zipf:")) {
    std::from_chars(text.data() + 5, text.data() + text.size(), exponent);
  }
  if (!(exponent > 0 && exponent < 10)) {
    return Status::InvalidArgument("--dist: uniform or zipf:EXPONENT, as in zipf:0.99");
  }
  const ZipfGenerator zipf(options_.keys, exponent);
  Random random(options_.seed);
  zipf_draws_.resize(kZipfDraws);
  for (uint32_t& draw : zipf_draws_) draw = static_cast<uint32_t>(zipf.Next(&random));
  return {};
}

Result<CommandMix::Template> CommandMix::Compile(std::string_view line) const {
  const auto words = Split(line, ' ');
  if (words.empty()) return Status::InvalidArgument("--command: no words");
  Template compiled;
  compiled.wire = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) AppendWord(word, &compiled);
  return compiled;
}

void CommandMix::AppendWord(std::string_view word, Template* out) const {
  const bool is_key = word == "{key}" || word == "{counter}";
  const bool is_member = word == "{member}";
  const bool is_value = word == "{value}";
  std::string text(word);
  if (is_key) text = (word == "{key}" ? "key:" : "cnt:") + std::string(options_.key_bytes - kPrefixBytes, '0');
  if (is_member) text = "m:" + std::string(kMembersDigits, '0');
  if (is_value) text = std::string(options_.value_bytes, 'x');
  out->wire += fmt::format("${}\r\n", text.size());
  const auto start = static_cast<uint32_t>(out->wire.size());
  const auto length = static_cast<uint32_t>(text.size());
  if (is_key || is_member) {
    const auto prefix = static_cast<uint32_t>(is_key ? kPrefixBytes : 2);
    out->patches.push_back({Slot::kKeyDigits, start + prefix, length - prefix});
  }
  if (is_value) out->patches.push_back({Slot::kValue, start, length});
  out->wire += text;
  out->wire += "\r\n";
}

void CommandMix::Append(const Template& command, Random* random, uint64_t* fixed_key,
                        size_t* zipf_position, std::string* out) const {
  const size_t start = out->size();
  out->append(command.wire);
  char* wire = out->data() + start;
  for (const Patch& patch : command.patches) {
    if (patch.slot == Slot::kValue) {
      std::memcpy(wire + patch.offset, value_pool_.data() + random->Below(kValuePoolBytes), patch.length);
      continue;
    }
    uint64_t key = 0;
    if (fixed_key != nullptr) {
      key = *fixed_key;
    } else if (!zipf_draws_.empty()) {
      key = zipf_draws_[(*zipf_position)++ % kZipfDraws];
    } else {
      key = random->Below(options_.keys);
    }
    WriteDigits(wire + patch.offset + patch.length, key, patch.length);
  }
}

std::unique_ptr<RequestSource> CommandMix::MakeSource(unsigned thread) const {
  uint64_t seed = options_.seed + thread;
  return std::make_unique<MixSource>(*this, SplitMix64(&seed));
}

std::unique_ptr<RequestSource> CommandMix::MakeFillSource(unsigned thread, unsigned threads) const {
  auto set = Compile("SET {key} {value}");
  HOTKV_CHECK(set.ok());
  return std::make_unique<FillSource>(*this, std::move(set).value(), options_.keys * thread / threads,
                                      options_.keys * (thread + 1) / threads);
}

}  // namespace hotkv
