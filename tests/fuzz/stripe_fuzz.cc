// Entries of a stripe. What decodes into a keyspace encodes and decodes into the same keyspace.
#include "engine/store/keyspace.h"
#include "engine/store/stripe_codec.h"
#include "engine/types/vector_set.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

// A keyspace of one stripe, so that each key belongs into it.
struct OneStripe {
  OneStripe() : keyspace({.stripe_bits = 0, .hash_seed = 3, .databases = 16}, &reclaim) {}
  Stripe& stripe() { return keyspace.stripe(0); }
  std::string Encoded() {
    StripeImage image;
    EncodeStripe(keyspace, stripe(), &image);
    std::string bytes;
    image.ForEachPiece([&bytes](std::string_view piece) { bytes.append(piece); });
    return bytes;
  }
  ReclaimDomain reclaim;
  Keyspace keyspace;
};

// An object that any link may name.
class Anything final : public Object {
 public:
  using Object::Object;
  uint64_t Digest() const override { return id(); }
  size_t MemoryBytes() const override { return 0; }

 private:
  ~Anything() override = default;
};

Object* Resolve(uint64_t id, ValueType type) { return id % 3 == 0 ? nullptr : new Anything(id, type); }

std::vector<std::string> Seeds() {
  OneStripe world;
  const auto add = [&](uint32_t db, Entry::Spec spec) {
    world.keyspace.Insert(world.stripe(), db, world.keyspace.MakeRef(spec.key), Entry::Create(spec));
  };
  add(0, {.key = "a", .bytes = "value"});
  add(0, {.key = "", .bytes = "", .expire_at_ms = 1764500000000});
  add(0, {.key = "n", .form = Entry::Form::kInt, .integer = -5});
  add(3, {.key = std::string_view("\xff\0k", 3), .bytes = "x"});
  add(3, {.key = "link",
          .type = ValueType::kVectorSet,
          .form = Entry::Form::kRef,
          .pointer = new Anything(7, ValueType::kVectorSet)});
  return {world.Encoded(), OneStripe().Encoded()};
}

}  // namespace
}  // namespace hotkv

HOTKV_FUZZ_TARGET(stripe, hotkv::Seeds) {
  RegisterObjectTypes();
  uint64_t visited = 0;
  const Status status = VisitStripeBytes(
      input, [](uint32_t, uint64_t) { return Status::Ok(); },
      [&visited](const DecodedEntry&) {
        ++visited;
        return Status::Ok();
      });
  HOTKV_CHECK(visited <= input.size());
  OneStripe first;
  const Status decoded = DecodeStripe(first.keyspace, first.stripe(), input, Resolve);
  if (!decoded.ok()) return;
  HOTKV_CHECK(status.ok());
  const std::string encoded = first.Encoded();
  OneStripe second;
  HOTKV_CHECK(DecodeStripe(second.keyspace, second.stripe(), encoded, Resolve).ok());
  for (uint32_t db = 0; db < 16; ++db) HOTKV_CHECK(first.keyspace.Size(db) == second.keyspace.Size(db));
}
