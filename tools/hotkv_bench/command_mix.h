// The commands that `hotkv-bench kv` sends: templates in wire form whose keys and values are filled in place, drawn by
// weight. A template is a command line whose words may be
//   {key}      a key out of --keys, uniform or Zipf       {value}   --size random bytes
//   {counter}  the same with a prefix of its own          {member}  a short name with a number out of --keys
//
// Thread rules: a CommandMix is constant after Make and may be shared; a MixSource belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/random.h"
#include "engine/base/result.h"
#include "tools/hotkv_bench/load_loop.h"

namespace hotkv {

struct MixOptions {
  std::string mix = "set=50,get=50";  // names of BuiltInCommands() with weights
  std::string command;                // not empty: this one template instead
  uint64_t keys = 1'000'000;
  unsigned key_bytes = 16;
  unsigned value_bytes = 64;
  std::string distribution = "uniform";  // or zipf:EXPONENT
  unsigned pipeline = 1;
  uint64_t seed = 1;
};

// The names that may stand in a mix, with blanks between.
std::string BuiltInCommands();

class CommandMix {
 public:
  static Result<std::shared_ptr<const CommandMix>> Make(const MixOptions& options);

  // A source for one thread that never ends.
  std::unique_ptr<RequestSource> MakeSource(unsigned thread) const;
  // Sources that write every key once, divided among `threads` threads: strings if anything reads them, counters not.
  std::unique_ptr<RequestSource> MakeFillSource(unsigned thread, unsigned threads) const;
  bool reads_keys() const { return reads_keys_; }
  const MixOptions& options() const { return options_; }

 private:
  friend class MixSource;
  friend class FillSource;
  enum class Slot : uint8_t { kKeyDigits, kValue };
  struct Patch {
    Slot slot;
    uint32_t offset;
    uint32_t length;
  };
  struct Template {
    std::string wire;
    std::vector<Patch> patches;
  };

  explicit CommandMix(MixOptions options) : options_(std::move(options)) {}
  Status ParseMix();
  Status ParseDistribution();
  Result<Template> Compile(std::string_view line) const;
  void AppendWord(std::string_view word, Template* out) const;
  void Append(const Template& command, Random* random, uint64_t* fixed_key, size_t* zipf_position,
              std::string* out) const;

  MixOptions options_;
  std::vector<Template> templates_;
  std::vector<uint16_t> chosen_;  // template numbers, each as often as its weight says
  std::vector<uint32_t> zipf_draws_;
  std::string value_pool_;
  bool reads_keys_ = false;
};

}  // namespace hotkv
