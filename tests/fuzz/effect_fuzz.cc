// Records of the log: what decodes encodes back to an equal effect, can be shown, and can be replayed or is refused.
#include "engine/tx/effect.h"
#include "engine/tx/engine.h"
#include "engine/types/vector_set.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

constexpr uint64_t kEpoch = 5;

std::string Encoded(const Effect& effect) {
  std::string bytes;
  AppendVarint(&bytes, effect.lsn & kLsnCountMask);
  bytes.push_back(static_cast<char>(effect.worker));
  if (AppendEffectTail(effect, &bytes)) bytes.append(effect.bytes);
  return bytes;
}

bool Same(const Effect& a, const Effect& b) {
  return a.lsn == b.lsn && a.worker == b.worker && a.db == b.db && a.kind == b.kind && a.type == b.type &&
         a.key == b.key && a.bytes == b.bytes && a.integer == b.integer && a.expire_at_ms == b.expire_at_ms &&
         a.object_id == b.object_id && a.number == b.number && a.other_db == b.other_db;
}

std::vector<std::string> Seeds() {
  std::string all;
  uint64_t count = 0;
  const auto add = [&](EffectKind kind, std::string_view key, std::string_view bytes, auto&& more) {
    Effect effect;
    effect.kind = kind;
    effect.key = key;
    effect.bytes = bytes;
    effect.lsn = FirstLsnOf(kEpoch) + ++count;
    more(effect);
    all += Encoded(effect);
  };
  const auto nothing = [](Effect&) {};
  const auto expires = [](Effect& e) { e.expire_at_ms = 1764500000000; };
  const auto object = [](Effect& e) {
    e.object_id = 4;
    e.type = 6;
  };
  add(EffectKind::kSetString, "k", "value", nothing);
  add(EffectKind::kSetStringExpire, "e", "v", expires);
  add(EffectKind::kSetInt, "n", "", [](Effect& e) { e.integer = -42, e.worker = 3, e.db = 9; });
  add(EffectKind::kExpire, "k", "", expires);
  add(EffectKind::kAppend, "k", "more", nothing);
  add(EffectKind::kSetRange, "k", "x", [](Effect& e) { e.number = 20; });
  add(EffectKind::kSwapDb, "", "", [](Effect& e) { e.other_db = 2; });
  add(EffectKind::kFlushDb, "", "", nothing);
  add(EffectKind::kObjectCreate, "", "definition", object);
  add(EffectKind::kLink, "index", "", object);
  add(EffectKind::kObjectChange, "", "change", [](Effect& e) { e.object_id = 4; });
  add(EffectKind::kObjectDrop, "", "", [](Effect& e) { e.object_id = 4; });
  add(EffectKind::kRestore, "list", "encoded", [](Effect& e) { e.type = 1; });
  add(EffectKind::kDelete, "k", "", nothing);
  return {all, all.substr(0, 40)};
}

const CommandTable& NoCommands() {
  static const CommandTable table({});
  return table;
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(effect, hotkv::Seeds) {
  RegisterObjectTypes();
  EngineOptions options;
  options.keyspace.stripe_bits = 0;
  Engine engine(options, &NoCommands());
  ByteReader reader(input);
  Effect effect;
  while (!reader.empty() && DecodeEffect(&reader, kEpoch, &effect)) {
    HOTKV_CHECK(!EffectToString(effect).empty());
    const std::string encoded = Encoded(effect);
    ByteReader again(encoded);
    Effect second;
    HOTKV_CHECK(DecodeEffect(&again, kEpoch, &second) && again.empty());
    HOTKV_CHECK(Same(effect, second));
    // A gap of a huge offset is filled with zeros: bounded by what a string may be, but too much for each input.
    const bool huge = effect.kind == EffectKind::kSetRange && effect.number > (1 << 16);
    if (!huge) static_cast<void>(engine.Replay(effect).ok());
  }
  engine.Digest();
}
