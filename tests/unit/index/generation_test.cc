#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "engine/base/file.h"
#include "engine/base/sim_env.h"
#include "engine/base/sync_point.h"
#include "tests/unit/index/index_support.h"

namespace hotkv {
namespace {

using namespace index_test;

// One logged change, as the engine's log would hold it.
struct Effect {
  enum Kind { kSet, kDelete, kAttr } kind;
  uint32_t slot;
  std::string name;
  std::vector<float> vector;
  std::string attr;
};

// An index with its log: what a caller of this library does.
class Rig {
 public:
  explicit Rig(Env* env) : env_(env) {}

  void Create(const IndexOptions& options) {
    index_ = VectorIndex::Create(options, env_, "ix").value();
    HOTKV_CHECK(env_->SyncDir(".").ok());  // the folder's own name is its maker's business
  }
  void Set(const std::string& name, const std::vector<float>& v, const std::string& attr = "") {
    auto prepared = index_->Prepare(name, v, attr);
    REQUIRE(prepared.ok());
    std::lock_guard<std::mutex> lock(mutex_);
    const CommitResult r = index_->Commit(std::move(*prepared));
    log_.push_back({Effect::kSet, r.slot, name, v, attr});
    model_[name] = {v, attr};
  }
  void Delete(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto slot = index_->Delete(name);
    REQUIRE(slot.has_value() == (model_.erase(name) == 1));
    if (slot) log_.push_back({Effect::kDelete, *slot, name, {}, {}});
  }
  void SetAttr(const std::string& name, const std::string& attr) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto slot = index_->SetAttr(name, attr);
    if (!slot) return;
    model_[name].second = attr;
    log_.push_back({Effect::kAttr, *slot, name, {}, attr});
  }
  Status Checkpoint(uint64_t generation) {
    size_t from;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      from = log_.size();
    }
    HOTKV_RETURN_IF_ERROR(index_->Checkpoint(generation));
    std::lock_guard<std::mutex> lock(mutex_);
    from_[generation] = from;
    return Status::Ok();
  }
  // Opens a generation (perhaps of another Env) and replays the log from its `from` on.
  Result<std::unique_ptr<VectorIndex>> Recover(Env* env, uint64_t generation,
                                               size_t until = SIZE_MAX) {
    HOTKV_ASSIGN_OR_RETURN(auto index, VectorIndex::Open(env, "ix", generation));
    for (size_t i = from_.at(generation); i < std::min(until, log_.size()); ++i) {
      const Effect& e = log_[i];
      switch (e.kind) {
        case Effect::kSet:
          HOTKV_RETURN_IF_ERROR(index->ApplySet(e.slot, e.name, e.vector, e.attr));
          break;
        case Effect::kDelete:
          HOTKV_RETURN_IF_ERROR(index->ApplyDelete(e.slot, e.name));
          break;
        case Effect::kAttr:
          HOTKV_RETURN_IF_ERROR(index->ApplyAttr(e.slot, e.name, e.attr));
          break;
      }
    }
    return index;
  }
  void Reopen(uint64_t generation) {
    index_.reset();
    index_ = Recover(env_, generation).value();
  }
  VectorIndex* index() { return index_.get(); }
  const std::map<std::string, std::pair<std::vector<float>, std::string>>& model() const {
    return model_;
  }
  std::mutex& mutex() { return mutex_; }

 private:
  Env* const env_;
  std::unique_ptr<VectorIndex> index_;
  std::mutex mutex_;  // the key's lock
  std::vector<Effect> log_;
  std::map<std::string, std::pair<std::vector<float>, std::string>> model_;
  std::map<uint64_t, size_t> from_;
};

// Names, attributes, vectors and count against the model.
void CheckContent(const VectorIndex& index, const Rig& rig) {
  REQUIRE(index.Count() == rig.model().size());
  size_t wrong = 0;
  for (const auto& [name, element] : rig.model()) {
    const auto v = index.GetVector(name);
    if (!v.ok() || *v != element.first || index.GetAttr(name) != element.second) ++wrong;
  }
  CHECK(wrong == 0);
  size_t visited = 0;
  for (uint32_t at = 0; at != kNoSlot;) {
    at = index.ForEach(at, 1000, [&](const VectorIndex::VisitedElement& e) {
      visited += rig.model().count(std::string(e.view.name));
    });
  }
  CHECK(visited == rig.model().size());
}

IndexOptions Options(ElementType type = ElementType::kF32) {
  IndexOptions options;
  options.dim = 8;
  options.type = type;
  options.metric = Metric::kL2;
  options.m = 8;
  options.ef_construction = 40;
  return options;
}

void CheckGenerations(ElementType type) {
  SimEnv env(1);
  Rig rig(&env);
  rig.Create(Options(type));
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    rig.Set("n" + std::to_string(i), RandomVector(&random, 8),
            i % 3 == 0 ? "{\"i\":" + std::to_string(i) + "}" : "");
  }
  for (int i = 0; i < 3000; i += 7) rig.Delete("n" + std::to_string(i));
  for (int i = 1; i < 3000; i += 11) rig.SetAttr("n" + std::to_string(i), "changed");
  REQUIRE(rig.Checkpoint(1).ok());
  CHECK(VectorIndex::VerifyGeneration(&env, "ix", 1).ToString() == "OK");
  std::vector<std::vector<float>> queries;
  std::vector<std::vector<SearchRow>> before;
  for (int i = 0; i < 50; ++i) {
    queries.push_back(RandomVector(&random, 8));
    before.push_back(Find(*rig.index(), queries.back(), 10, 60));
  }
  const IndexInfo info = rig.index()->Info();
  rig.Reopen(1);
  CheckContent(*rig.index(), rig);
  const IndexInfo again = rig.index()->Info();
  CHECK(again.live == info.live);
  CHECK(again.dead == info.dead);
  CHECK(again.slots == info.slots);
  CHECK(again.top_level <= info.top_level);  // lower where the entry had been deleted
  CHECK(again.options.m == 8);
  CHECK(again.options.type == type);
  CHECK(again.options.metric == Metric::kL2);
  CHECK(again.options.ef_construction == 40);
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto after = Find(*rig.index(), queries[i], 10, 60);
    REQUIRE(after.size() == before[i].size());
    for (size_t j = 0; j < after.size(); ++j) CHECK(after[j].name == before[i][j].name);
  }
  // It goes on: growing past what was mapped, deleting, repairing, another generation.
  for (int i = 3000; i < 7000; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  for (int i = 2; i < 7000; i += 5) rig.Delete("n" + std::to_string(i));
  RepairAll(rig.index());
  CHECK(rig.index()->CheckInvariants().ToString() == "OK");
  REQUIRE(rig.Checkpoint(2).ok());
  rig.Reopen(2);
  CheckContent(*rig.index(), rig);
  CHECK(rig.index()->CheckInvariants().ToString() == "OK");
  CHECK(VectorIndex::RemoveGeneration(&env, "ix", 1).ok());
  CHECK(VectorIndex::RemoveGeneration(&env, "ix", 1).ok());
  CHECK_FALSE(VectorIndex::Open(&env, "ix", 1).ok());
}

TEST_CASE("a generation gives back what was there", "[index][generation]") {
  for (const ElementType type :
       {ElementType::kF32, ElementType::kF16, ElementType::kQ8, ElementType::kQ4, ElementType::kBin}) {
    INFO(ElementTypeName(type));
    CheckGenerations(type);
  }
}

TEST_CASE("replay after a generation: sets, replacements, deletes, attributes",
          "[index][generation]") {
  SimEnv env(2);
  Rig rig(&env);
  rig.Create(Options());
  Random random(2);
  for (int i = 0; i < 2000; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8), "a");
  REQUIRE(rig.Checkpoint(1).ok());
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "n" + std::to_string(random.Below(2500));
    const uint64_t what = random.Below(10);
    if (what < 6) {
      rig.Set(name, RandomVector(&random, 8), "b" + std::to_string(i));
    } else if (what < 8) {
      rig.Delete(name);
    } else {
      rig.SetAttr(name, "c" + std::to_string(i));
    }
  }
  auto index = rig.Recover(&env, 1).value();
  CheckContent(*index, rig);
  CHECK(index->Info().pending > 0);
  Model model{Metric::kL2, {}};
  for (const auto& [name, element] : rig.model()) model.elements[name] = element.first;
  std::vector<std::vector<float>> queries;
  for (int i = 0; i < 100; ++i) queries.push_back(RandomVector(&random, 8));
  // What is not linked yet is found all the same.
  CHECK(Recall(*index, model, queries, 10, 100) >= 0.97);
  size_t found = 0;
  for (const auto& [name, element] : rig.model()) {
    found += Find(*index, element.first, 1, 50).front().name == name ? 1u : 0u;
  }
  CHECK(found >= rig.model().size() * 99 / 100);
  while (index->LinkPending(100) != 0) {
  }
  CHECK(index->Info().pending == 0);
  CHECK(Recall(*index, model, queries, 10, 100) >= 0.97);
  RepairAll(index.get());
  CHECK(index->CheckInvariants().ToString() == "OK");
  // Replay over a state that has it all already changes nothing.
  CheckContent(*index, rig);
}

TEST_CASE("a full disk: a set that needs a new slab says which file, and goes on when there is room",
          "[index][generation]") {
  SimEnv env(4);
  IndexOptions options;
  options.dim = 64;
  options.metric = Metric::kL2;
  options.type = ElementType::kQ8;  // slabs of vectors and of codes
  Rig rig(&env);
  rig.Create(options);
  Random random(4);
  rig.Set("first", RandomVector(&random, options.dim), "");
  env.SetCapacity(0);
  Status refused;
  int stored = 1;
  for (; stored < 100'000 && refused.ok(); ++stored) {
    refused = rig.index()->Prepare("n" + std::to_string(stored), RandomVector(&random, options.dim), "").status();
  }
  REQUIRE(!refused.ok());
  CHECK(refused.code() == Code::kNoSpace);
  CHECK_THAT(refused.path(), Catch::Matchers::StartsWith("ix/"));
  CHECK(rig.index()->Count() == 1);
  env.SetCapacity(UINT64_MAX);
  for (int i = 0; i < 3000; ++i) rig.Set("m" + std::to_string(i), RandomVector(&random, options.dim), "");
  REQUIRE(rig.Checkpoint(1).ok());
  CheckContent(*rig.Recover(&env, 1).value(), rig);
}

TEST_CASE("replay twice is replay once", "[index][generation]") {
  SimEnv env(3);
  Rig rig(&env);
  rig.Create(Options());
  Random random(3);
  for (int i = 0; i < 500; ++i) rig.Set("n" + std::to_string(i % 300), RandomVector(&random, 8));
  REQUIRE(rig.Checkpoint(1).ok());
  for (int i = 0; i < 500; ++i) {
    const std::string name = "n" + std::to_string(random.Below(400));
    random.Below(3) == 0 ? rig.Delete(name) : rig.Set(name, RandomVector(&random, 8));
  }
  // A generation taken later has seen all of the log; replaying it from the earlier `from` must not
  // matter.
  REQUIRE(rig.index()->Checkpoint(2).ok());
  {
    Rig* r = &rig;
    auto first = r->Recover(&env, 1).value();
    CheckContent(*first, rig);
  }
  auto later = VectorIndex::Open(&env, "ix", 2).value();
  CheckContent(*later, rig);
}

TEST_CASE("a checkpoint beside writers is sound, and replay makes it complete",
          "[index][generation][threads]") {
  for (uint64_t round = 0; round < 3; ++round) {
    SimEnv env(10 + round);
    Rig rig(&env);
    rig.Create(Options());
    Random random(round);
    for (int i = 0; i < 1500; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        Random mine(round * 10 + static_cast<uint64_t>(t) + 100);
        while (!stop.load()) {
          const std::string name = "n" + std::to_string(mine.Below(2500));
          const uint64_t what = mine.Below(10);
          if (what < 6) {
            rig.Set(name, RandomVector(&mine, 8), "x");
          } else if (what < 9) {
            rig.Delete(name);
          } else {
            rig.SetAttr(name, "y" + std::to_string(mine.Below(1000)));
          }
        }
      });
    }
    threads.emplace_back([&] {
      while (!stop.load()) {
        rig.index()->RepairStep(300);
        std::this_thread::yield();
      }
    });
    for (uint64_t generation = 1; generation <= 4; ++generation) {
      REQUIRE(rig.Checkpoint(generation).ok());
      rig.index()->ReleaseSlots(generation > 1 ? generation - 1 : 1);
    }
    stop.store(true);
    for (auto& t : threads) t.join();
    for (uint64_t generation = 3; generation <= 4; ++generation) {
      CHECK(VectorIndex::VerifyGeneration(&env, "ix", generation).ToString() == "OK");
      auto index = rig.Recover(&env, generation).value();
      CheckContent(*index, rig);
      while (index->LinkPending(1000) != 0) {
      }
      RepairAll(index.get());
      CHECK(index->CheckInvariants().ToString() == "OK");
    }
  }
}

TEST_CASE("a prepared element in the copy is dead there and revived by the log",
          "[index][generation][threads]") {
  SimEnv env(4);
  Rig rig(&env);
  rig.Create(Options());
  Random random(4);
  for (int i = 0; i < 100; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  const auto v = RandomVector(&random, 8);
  auto prepared = rig.index()->Prepare("late", v, "attr").value();
  const uint32_t slot = prepared.slot();
  REQUIRE(rig.Checkpoint(1).ok());
  rig.index()->Commit(std::move(prepared));
  {
    auto index = VectorIndex::Open(&env, "ix", 1).value();
    CHECK_FALSE(index->Contains("late"));
    CHECK(index->Info().dead == 1);
    REQUIRE(index->ApplySet(slot, "late", v, "attr").ok());
    CHECK(index->Info().dead == 0);
    CHECK(index->GetAttr("late") == "attr");
    CHECK(Find(*index, v, 1).front().name == "late");
    CHECK(index->CheckInvariants().ToString() == "OK");
    REQUIRE(index->ApplyDelete(slot, "late").ok());
    REQUIRE(index->ApplyDelete(slot, "late").ok());
    CHECK_FALSE(index->Contains("late"));
    RepairAll(index.get());
    CHECK(index->CheckInvariants().ToString() == "OK");
  }
}

#ifdef HOTKV_TEST_HOOKS
TEST_CASE("an element deleted while it is being linked is unlinked again",
          "[index][generation][threads]") {
  SimEnv env(5);
  Rig rig(&env);
  rig.Create(Options());
  Random random(5);
  for (int i = 0; i < 50; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  REQUIRE(rig.Checkpoint(1).ok());
  auto index = VectorIndex::Open(&env, "ix", 1).value();
  REQUIRE(index->ApplySet(60, "x", RandomVector(&random, 8), "").ok());
  CHECK(index->Info().free_slots == 10);
  SyncBlock block("index.pending.linking");
  std::thread linker([&] { index->LinkPending(10); });
  REQUIRE(block.AwaitReached(1));
  REQUIRE(index->ApplyDelete(60, "x").ok());
  CHECK(index->Count() == 50);
  block.Release();
  linker.join();
  CHECK(index->Info().pending == 0);
  CHECK(index->Info().dead == 1);
  RepairAll(index.get());
  CHECK(index->CheckInvariants().ToString() == "OK");
}

TEST_CASE("an element that is deleted before it was linked, while a checkpoint copies, keeps its name in the copy",
          "[index][generation][threads]") {
  SimEnv env(8);
  Rig rig(&env);
  rig.Create(Options());
  Random random(8);
  for (int i = 0; i < 50; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  REQUIRE(rig.Checkpoint(1).ok());
  auto index = VectorIndex::Open(&env, "ix", 1).value();
  REQUIRE(index->ApplySet(60, "x", RandomVector(&random, 8), "").ok());
  SyncBlock block("index.checkpoint.planned");
  std::thread checkpoint([&] { CHECK(index->Checkpoint(2).ok()); });
  REQUIRE(block.AwaitReached(1));
  REQUIRE(index->Delete("x") == std::optional<uint32_t>(60));
  // Repair is held off while the links are copied, so its step waits for the checkpoint.
  std::thread repair([&] { RepairAll(index.get()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  block.Release();
  checkpoint.join();
  repair.join();
  auto again = VectorIndex::Open(&env, "ix", 2).value();
  CHECK(again->CheckInvariants().ToString() == "OK");
  CHECK(again->Contains("x"));
  // What the log has after the generation's beginning fits it.
  CHECK(again->ApplyDelete(60, "x").ok());
  CHECK(again->Count() == 50);
}
#endif

TEST_CASE("a slot that is set, deleted and set again within the log keeps the last element",
          "[index][generation]") {
  SimEnv env(9);
  Rig rig(&env);
  rig.Create(Options());
  Random random(9);
  for (int i = 0; i < 20; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  REQUIRE(rig.Checkpoint(1).ok());
  auto index = VectorIndex::Open(&env, "ix", 1).value();
  REQUIRE(index->ApplySet(30, "x", RandomVector(&random, 8), "").ok());
  REQUIRE(index->ApplyDelete(30, "x").ok());
  REQUIRE(index->ApplySet(30, "y", RandomVector(&random, 8), "").ok());
  while (index->LinkPending(10) != 0) {
  }
  RepairAll(index.get());
  CHECK(index->Contains("y"));
  CHECK_FALSE(index->Contains("x"));
  CHECK(index->CheckInvariants().ToString() == "OK");
}

TEST_CASE("slots are reused only after a generation begun later is kept alone",
          "[index][generation]") {
  SimEnv env(6);
  Rig rig(&env);
  rig.Create(Options());
  Random random(6);
  const auto churn = [&](int from) {
    for (int i = from; i < from + 100; ++i)
      rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  };
  churn(0);
  REQUIRE(rig.Checkpoint(1).ok());
  for (int i = 0; i < 100; ++i) rig.Delete("n" + std::to_string(i));
  RepairAll(rig.index());
  CHECK(rig.index()->Info().held_slots == 100);
  churn(100);
  CHECK(rig.index()->Info().slots == 200);
  rig.index()->ReleaseSlots(1);
  CHECK(rig.index()->Info().free_slots == 0);
  REQUIRE(rig.Checkpoint(2).ok());
  churn(200);
  CHECK(rig.index()->Info().slots == 300);
  rig.index()->ReleaseSlots(1);  // generation 1 is still kept by a snapshot
  CHECK(rig.index()->Info().free_slots == 0);
  rig.index()->ReleaseSlots(2);
  CHECK(rig.index()->Info().free_slots == 100);
  CHECK(rig.index()->Info().held_slots == 0);
  rig.index()->HoldSlots();
  churn(300);
  CHECK(rig.index()->Info().slots == 400);
  rig.index()->UnholdSlots();
  churn(400);
  CHECK(rig.index()->Info().slots == 400);
  CHECK(rig.index()->CheckInvariants().ToString() == "OK");
  // After a restart free slots wait until it is known which generations are kept.
  for (int i = 400; i < 450; ++i) rig.Delete("n" + std::to_string(i));
  RepairAll(rig.index());
  REQUIRE(rig.Checkpoint(3).ok());
  rig.Reopen(3);
  CHECK(rig.index()->Info().free_slots == 50);
  churn(500);
  CHECK(rig.index()->Info().slots == 500);
  rig.index()->ReleaseSlots(2);
  churn(600);
  CHECK(rig.index()->Info().slots == 600);
  rig.index()->ReleaseSlots(3);
  churn(700);
  CHECK(rig.index()->Info().slots == 650);
}

TEST_CASE("flipped bits in a generation are found", "[index][generation]") {
  SimEnv env(7);
  Rig rig(&env);
  rig.Create(Options());
  Random random(7);
  for (int i = 0; i < 400; ++i)
    rig.Set("n" + std::to_string(i), RandomVector(&random, 8), "attribute");
  for (int i = 0; i < 40; ++i) rig.Delete("n" + std::to_string(i));
  REQUIRE(rig.Checkpoint(1).ok());
  REQUIRE(VectorIndex::VerifyGeneration(&env, "ix", 1).ok());
  // Bytes that are in use: what differs from zero.
  for (const std::string& file :
       {std::string("graph.1"), std::string("ids.1"), std::string("vectors.00.f32")}) {
    const std::string content = ReadWholeFile(&env, "ix/" + file).value();
    std::vector<size_t> used;
    const size_t end = file[0] == 'v' ? 4096 + 400 * 32 : content.size();
    for (size_t i = 0; i < end; ++i) {
      if (content[i] != 0) used.push_back(i);
    }
    size_t missed = 0;
    for (int i = 0; i < 150; ++i) {
      const size_t at = used[random.Below(used.size())];
      // Rows of deleted elements are nobody's.
      const bool vectors = file[0] == 'v' && at >= 4096;
      const char flipped = static_cast<char>(content[at] ^ (1 << random.Below(8)));
      env.Corrupt("ix/" + file, at, {&flipped, 1});
      const Status status = VectorIndex::VerifyGeneration(&env, "ix", 1);
      if (status.ok()) ++missed;
      if (vectors) CHECK((status.ok() || status.code() == Code::kCorruption));
      const char back = content[at];
      env.Corrupt("ix/" + file, at, {&back, 1});
    }
    CHECK(missed == 0);
  }
  CHECK(VectorIndex::VerifyGeneration(&env, "ix", 1).ToString() == "OK");
  CHECK(VectorIndex::FilesOfGeneration(&env, "ix", 1).value() ==
        std::vector<std::string>{"graph.1", "ids.1", "vectors.00.f32"});
}

TEST_CASE("files that are cut off or of another index are refused", "[index][generation]") {
  SimEnv env(8);
  Rig rig(&env);
  rig.Create(Options());
  Random random(8);
  for (int i = 0; i < 300; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  REQUIRE(rig.Checkpoint(1).ok());
  CHECK(VectorIndex::Create(Options(), &env, "ix").status().code() == Code::kExists);
  CHECK_FALSE(VectorIndex::Open(&env, "ix", 2).ok());
  CHECK_FALSE(VectorIndex::Open(&env, "nowhere", 1).ok());
  const std::string ids = ReadWholeFile(&env, "ix/ids.1").value();
  for (const size_t length : {size_t{0}, size_t{50}, size_t{4096}, ids.size() / 2}) {
    auto file = env.Open("ix/ids.1", OpenMode::kReadWrite, FileIo::kPosix).value();
    REQUIRE(file->Truncate(length).ok());
    CHECK_FALSE(VectorIndex::Open(&env, "ix", 1).ok());
    REQUIRE(file->WriteAt(0, ids).ok());
  }
  CHECK(VectorIndex::VerifyGeneration(&env, "ix", 1).ToString() == "OK");
  {
    auto file = env.Open("ix/vectors.00.f32", OpenMode::kReadWrite, FileIo::kPosix).value();
    REQUIRE(file->Truncate(8192).ok());
  }
  CHECK(VectorIndex::Open(&env, "ix", 1).status().code() == Code::kCorruption);
}

TEST_CASE("a full disk and a failed sync are told, and change nothing", "[index][generation]") {
  SimEnv env(9);
  Rig rig(&env);
  rig.Create(Options());
  Random random(9);
  for (int i = 0; i < 1000; ++i) rig.Set("n" + std::to_string(i), RandomVector(&random, 8));
  env.SetCapacity(env.UsedBytes() + 64 * 1024);
  CHECK(rig.Checkpoint(1).code() == Code::kNoSpace);
  bool full = false;
  for (int i = 0; i < 100000 && !full; ++i) {
    full = rig.index()
               ->Prepare("x" + std::to_string(i), RandomVector(&random, 8), "")
               .status()
               .code() == Code::kNoSpace;
  }
  CHECK(full);
  CHECK(rig.index()->Count() == 1000);
  CheckContent(*rig.index(), rig);
  env.SetCapacity(UINT64_MAX);
  rig.Set("after", RandomVector(&random, 8));
  SimFault fault;
  fault.op = SimOp::kSync;
  fault.path_part = "vectors";
  fault.error = 5;
  env.Inject(fault);
  CHECK(rig.Checkpoint(2).code() == Code::kIoError);
  env.ClearFaults();
  // The pages that could not be written may be gone: no later checkpoint may claim to have them.
  CHECK(rig.Checkpoint(3).code() == Code::kIoError);
  CheckContent(*rig.index(), rig);
}

TEST_CASE("power cuts around checkpoints leave a generation that replay completes",
          "[index][generation]") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SimEnv env(100 + seed);
    Rig rig(&env);
    rig.Create(Options(seed % 2 == 0 ? ElementType::kF32 : ElementType::kQ4));
    Random random(seed);
    uint64_t published = 0;
    for (int step = 0; step < 12; ++step) {
      for (int i = 0; i < 120; ++i) {
        const std::string name = "n" + std::to_string(random.Below(400));
        random.Below(3) == 0 ? rig.Delete(name) : rig.Set(name, RandomVector(&random, 8));
      }
      RepairAll(rig.index());
      if (step % 3 != 2) {
        // The log is taken as durable up to here, so the generation may be published.
        REQUIRE(rig.Checkpoint(published + 1).ok());
        ++published;
        rig.index()->ReleaseSlots(published);
      }
      for (uint64_t cut = 0; cut < 4; ++cut) {
        auto image = env.PowerCut(seed * 1000 + static_cast<uint64_t>(step) * 10 + cut);
        auto index = rig.Recover(image.get(), published);
        REQUIRE(index.ok());
        CheckContent(**index, rig);
        while ((*index)->LinkPending(1000) != 0) {
        }
        RepairAll(index->get());
        CHECK((*index)->CheckInvariants().ToString() == "OK");
      }
    }
  }
}

}  // namespace
}  // namespace hotkv
