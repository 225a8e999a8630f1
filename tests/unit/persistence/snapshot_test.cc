// Stripe codec and snapshot files: round trips, and bytes that were never written by us.
#include <catch2/catch.hpp>

#include <map>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/base/random.h"
#include "engine/base/sim_env.h"
#include "engine/store/stripe_codec.h"
#include "persistence/snapshot/snapshot_file.h"

using namespace hotkv;

namespace {

constexpr uint64_t kHashSeed = 99;

struct Keys {
  ReclaimDomain reclaim;
  Keyspace keyspace;
  explicit Keys(unsigned stripe_bits) : keyspace({stripe_bits, kHashSeed, 4}, &reclaim) {}

  void Set(uint32_t db, Entry::Spec spec) {
    const KeyRef ref = keyspace.MakeRef(spec.key);
    Stripe& stripe = keyspace.stripe(ref.stripe);
    if (Entry** slot = keyspace.Find(stripe, db, ref)) keyspace.Erase(stripe, db, ref, slot);
    keyspace.Insert(stripe, db, ref, Entry::Create(spec));
  }
  std::map<std::string, std::string> All() {
    std::map<std::string, std::string> all;
    for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
      for (uint32_t db = 0; db < keyspace.databases(); ++db) {
        Table* table = keyspace.stripe(i).table(db);
        for (uint32_t c = 0; table != nullptr && c < table->chunk_count(); ++c) {
          table->ForEachInChunk(c, [&](Entry** slot) {
            char scratch[24];
            all[std::to_string(db) + ":" + std::string((*slot)->key())] =
                std::string((*slot)->StringValue(scratch)) + "@" +
                std::to_string((*slot)->expire_at_ms()) + ((*slot)->is_int() ? "i" : "s");
          });
        }
      }
    }
    return all;
  }
};

std::string RandomBytes(Random* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random->Next());
  return bytes;
}

void Fill(Keys* keys, Random* random, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string key = RandomBytes(random, random->Below(random->Below(8) == 0 ? 600 : 20));
    Entry::Spec spec;
    spec.key = key;
    if (random->Below(2) == 0) {
      spec.expire_at_ms = 1 + static_cast<int64_t>(random->Next() >> random->Between(1, 40));
    }
    std::string value;
    switch (random->Below(4)) {
      case 0:
        spec.form = Entry::Form::kInt;
        spec.integer = static_cast<int64_t>(random->Next());
        break;
      case 1:
        value = std::string(random->Below(40'000), 'x') + RandomBytes(random, random->Below(3000));
        if (value.size() > kInlineValueBytesMax) {
          spec.form = Entry::Form::kRef;
          spec.pointer = SharedBlock::Copy(value);
        }
        break;
      default:
        value = RandomBytes(random, random->Below(50));
        break;
    }
    if (spec.form == Entry::Form::kInline) spec.bytes = value;
    keys->Set(static_cast<uint32_t>(random->Below(4)), spec);
  }
}

std::string Flat(const StripeImage& image) {
  std::string bytes;
  image.ForEachPiece([&](std::string_view piece) { bytes.append(piece); });
  CHECK(bytes.size() == image.size_bytes());
  return bytes;
}

const ObjectResolver kNoObjects = [](uint64_t, ValueType) -> Object* { return nullptr; };

}  // namespace

TEST_CASE("Stripes survive encoding, large values go by reference") {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    Keys from(3);
    Keys to(3);
    Fill(&from, &random, 200);
    uint64_t entries = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      StripeImage image;
      EncodeStripe(from.keyspace, from.keyspace.stripe(i), &image);
      entries += image.entries;
      for (const StripeImage::Large& large : image.large) CHECK(large.block.view().size() > 16'384);
      const Status status =
          DecodeStripe(to.keyspace, to.keyspace.stripe(i), Flat(image), kNoObjects);
      INFO(status.ToString());
      REQUIRE(status.ok());
    }
    CHECK(entries == from.All().size());
    CHECK(from.All() == to.All());
  }
}

TEST_CASE("Spoiled stripe bytes are an error or other entries, never more than the section holds") {
  Random random(6);
  Keys from(0);
  Fill(&from, &random, 60);
  StripeImage image;
  EncodeStripe(from.keyspace, from.keyspace.stripe(0), &image);
  const std::string good = Flat(image);
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      bad[random.Below(std::min<size_t>(bad.size(), 4000))] = static_cast<char>(random.Next());
    }
    if (random.Below(3) == 0) bad.resize(random.Below(bad.size()));
    Keys to(0);
    if (!DecodeStripe(to.keyspace, to.keyspace.stripe(0), bad, kNoObjects).ok()) ++refused;
  }
  CHECK(refused > 1000);
}

TEST_CASE("A key of another stripe, twice, or of a database too many is refused") {
  Keys from(4);
  from.Set(3, {.key = "k", .bytes = "v"});
  const uint32_t home = from.keyspace.MakeRef("k").stripe;
  StripeImage image;
  EncodeStripe(from.keyspace, from.keyspace.stripe(home), &image);
  Keys to(4);
  CHECK(DecodeStripe(to.keyspace, to.keyspace.stripe(home ^ 1), image.bytes, kNoObjects).code() ==
        Code::kCorruption);
  CHECK(DecodeStripe(to.keyspace, to.keyspace.stripe(home), image.bytes, kNoObjects).ok());
  CHECK(DecodeStripe(to.keyspace, to.keyspace.stripe(home), image.bytes, kNoObjects).code() ==
        Code::kCorruption);
  ReclaimDomain reclaim;
  Keyspace small({4, kHashSeed, 2}, &reclaim);
  const Status few = DecodeStripe(small, small.stripe(home), image.bytes, kNoObjects);
  CHECK(few.code() == Code::kInvalidArgument);
  CHECK(few.message().find("databases") != std::string::npos);
}

namespace {

struct Written {
  SimEnv env;
  std::vector<std::string> stripes;  // raw bodies
  SnapshotFooter footer;
};

void Write(Written* to, uint64_t seed, int keys) {
  Random random(seed);
  Keys from(3);
  Fill(&from, &random, keys);
  REQUIRE(to->env.MakeDir("s").ok());
  auto writer = SnapshotWriter::Create(&to->env, "s/00000001.hks", {11, 3, kHashSeed, 1, 4, 555});
  REQUIRE(writer.ok());
  for (uint32_t i = 0; i < 8; ++i) {
    StripeImage image;
    EncodeStripe(from.keyspace, from.keyspace.stripe(i), &image);
    to->stripes.push_back(Flat(image));
    REQUIRE((*writer)->AddStripe(i, 1000 + i, image).ok());
    if (i == 2) REQUIRE((*writer)->AddObject(77, 2000, {6, "definition", 3}).ok());
    const std::string records = RandomBytes(&random, random.Below(200'000));
    REQUIRE((*writer)->AddEffects(40 + i, i * 5, {records, "tail"}).ok());
  }
  SnapshotFooter footer;
  footer.from_epoch = 40;
  footer.last_epoch = 47;
  footer.has_effects = true;
  footer.next_object_id = 78;
  REQUIRE((*writer)->Finish(footer).ok());
  CHECK((*writer)->entries() == from.All().size());
}

// As a recovery reads it: everything, in one string.
Result<std::string> ReadAll(SimEnv* env) {
  HOTKV_ASSIGN_OR_RETURN(const auto reader, SnapshotReader::Open(env, "s/00000001.hks"));
  std::string all = std::to_string(reader->header().directory_id) + "," +
                    std::to_string(reader->footer().from_epoch) + "," +
                    std::to_string(reader->footer().last_epoch) + ";";
  for (const SectionEntry& section : reader->footer().sections) {
    std::string scratch;
    HOTKV_ASSIGN_OR_RETURN(const std::string_view body, reader->Read(section, &scratch));
    all += std::to_string(static_cast<int>(section.kind)) + "/" + std::to_string(section.id) + "/" +
           std::to_string(section.cut) + "=" + std::string(body) + ";";
  }
  return all;
}

}  // namespace

TEST_CASE("A snapshot file gives back its sections in order") {
  Written file;
  Write(&file, 1, 300);
  auto reader = SnapshotReader::Open(&file.env, "s/00000001.hks");
  REQUIRE(reader.ok());
  CHECK((*reader)->header() == SnapshotHeader{11, 3, kHashSeed, 1, 4, 555});
  CHECK((*reader)->VerifyAll().ok());
  const SnapshotFooter& footer = (*reader)->footer();
  CHECK(footer.has_effects);
  CHECK(footer.next_object_id == 78);
  REQUIRE(footer.sections.size() > 9);
  std::string scratch;
  for (uint32_t i = 0; i < 8; ++i) {
    CHECK(footer.sections[i].kind == SectionKind::kStripe);
    CHECK(footer.sections[i].id == i);
    CHECK(footer.sections[i].cut == 1000 + i);
    CHECK((*reader)->Read(footer.sections[i], &scratch).value() == file.stripes[i]);
  }
  CHECK(footer.sections[8].kind == SectionKind::kObject);
  const auto body = (*reader)->Read(footer.sections[8], &scratch);
  const auto object = DecodeObjectSection(*body);
  REQUIRE(object.ok());
  CHECK(object->definition == "definition");
  CHECK(object->generation == 3);
  std::vector<uint64_t> epochs;
  for (size_t i = 9; i < footer.sections.size(); ++i) {
    std::string bytes;
    const auto runs = DecodeEffectRuns(*(*reader)->Read(footer.sections[i], &bytes));
    REQUIRE(runs.ok());
    for (const EffectRun& run : *runs) {
      epochs.push_back(run.epoch);
      CHECK(run.group == (run.epoch - 40) * 5);
      CHECK(run.records.ends_with("tail"));
    }
  }
  CHECK(epochs == std::vector<uint64_t>{40, 41, 42, 43, 44, 45, 46, 47});
}

TEST_CASE("Any changed byte of a snapshot is found, with the file's name and an offset") {
  Written file;
  Write(&file, 2, 6);
  const std::string good = *ReadAll(&file.env);
  auto handle = file.env.Open("s/00000001.hks", OpenMode::kReadWrite, FileIo::kPosix);
  const uint64_t size = *(*handle)->Size();
  Random random(8);
  uint64_t unnoticed = 0;
  for (int round = 0; round < 1500; ++round) {
    // Both ends have all the structure; the middle is bodies.
    const uint64_t near = random.Below(2000);
    const uint64_t at = round % 3 == 0   ? near % size
                        : round % 3 == 1 ? size - 1 - near % size
                                         : random.Below(size);
    char before = 0;
    REQUIRE((*handle)->ReadAt(at, {&before, 1}).ok());
    const char after = static_cast<char>(before ^ static_cast<char>(1u << random.Below(8)));
    REQUIRE((*handle)->WriteAt(at, {&after, 1}).ok());
    const auto all = ReadAll(&file.env);
    if (all.ok()) {
      ++unnoticed;  // a byte of reserved room that no reader looks at
      CHECK(*all == good);
    } else {
      CHECK(all.status().path() == "s/00000001.hks");
      CHECK(all.status().offset() >= 0);
    }
    REQUIRE((*handle)->WriteAt(at, {&before, 1}).ok());
  }
  CHECK(unnoticed == 0);
  CHECK(*ReadAll(&file.env) == good);
  for (uint64_t cut = size; cut-- > 0; cut -= std::min(cut, random.Below(500))) {
    REQUIRE((*handle)->Truncate(cut).ok());
    CHECK(ReadAll(&file.env).status().code() == Code::kCorruption);
    if (cut == 0) break;
  }
}

TEST_CASE("A snapshot of a newer format is refused as such") {
  std::string header = EncodeSnapshotHeader({1, 2, 3, 4, 5, 6});
  StoreLe<uint32_t>(header.data() + 12, kSnapshotFormat + 1);
  StoreLe<uint32_t>(header.data() + 8, Crc32c(std::string_view(header).substr(12)));
  CHECK(DecodeSnapshotHeader(header).status().code() == Code::kUnsupported);
}
