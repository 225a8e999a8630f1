#include "tests/crash/sim_world.h"

#include <algorithm>

#include <cerrno>

#include "engine/base/buffer.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/reply.h"
#include "engine/tx/executor.h"
#include "engine/types/vector_set.h"
#include "tests/crash/slot_object.h"

namespace hotkv::crash {

namespace {

constexpr int64_t kNowMs =
    1'800'000'000'000;  // commands' clock: stands still, nothing expires by itself
constexpr unsigned kKeys = 60;
constexpr uint64_t kLogGrowthBytes = 96 * 1024;
constexpr int kPatience = 20'000;  // rounds until something that must come to an end has done so

}  // namespace

namespace {

std::map<std::string, std::string> ElementsOf(const VectorIndex& index) {
  std::map<std::string, std::string> elements;
  for (uint32_t slot = 0; slot != kNoSlot;) {
    slot = index.ForEach(
        slot, 64,
        [&](const VectorIndex::VisitedElement& e) {
          std::string text;
          for (const float f : e.vector) text += std::to_string(static_cast<int>(f)) + " ";
          HOTKV_CHECK(elements.emplace(e.view.name, text + std::string(e.view.attr)).second);
        },
        true);
  }
  return elements;
}

std::span<const std::span<const CommandSpec>> Families() {
  static const std::span<const CommandSpec> families[] = {GenericCommands(), VectorCommands()};
  return families;
}

}  // namespace

Contents Dump(Engine& engine) {
  Contents contents;
  Keyspace& keyspace = engine.keyspace();
  auto add = [&](uint32_t stripe, uint32_t db, const Entry& entry) {
    char scratch[24];
    Value value;
    value.expire_at_ms = entry.expire_at_ms();
    if (entry.type() == ValueType::kString) {
      value.bytes = entry.StringValue(scratch);
    } else if (entry.type() == ValueType::kVectorSet) {
      value.is_object = true;
      value.elements = ElementsOf(static_cast<const VectorSet*>(entry.object())->index());
    } else {
      value.is_object = true;
      value.elements = static_cast<const SlotObject*>(entry.object())->Elements();
    }
    HOTKV_CHECK(keyspace.MakeRef(entry.key()).stripe == stripe);
    HOTKV_CHECK(contents.emplace(std::pair{db, std::string(entry.key())}, value).second);
  };
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    for (uint32_t db = 0; db < keyspace.databases(); ++db) {
      Table* table = keyspace.stripe(i).table(db);
      for (uint32_t c = 0; table != nullptr && c < table->chunk_count(); ++c) {
        table->ForEachInChunk(c, [&](Entry** slot) { add(i, db, **slot); });
      }
    }
  }
  return contents;
}

SimWorld::SimWorld(const WorldOptions& options)
    : options_(options),
      random_(options.seed),
      env_(std::make_unique<SimEnv>(options.seed)),
      store_(std::make_unique<SimStore>()),
      commands_(Families()),
      now_us_(Clock::MonotonicNs() / 1000) {
  SetLogLevel(LogLevel::kNothing);
  SlotObject::Register();
  RegisterObjectTypes();
  SlotObject::during_checkpoint = [this](SlotObject*) {
    for (uint64_t i = random_.Below(12); i > 0; --i) RandomCommit();
  };
}

SimWorld::~SimWorld() {
  Close();
  SlotObject::during_checkpoint = nullptr;
}

void SimWorld::Close() {
  if (engine_ != nullptr) engine_->lazy_free().Drain();
  directory_.reset();
  engine_.reset();
  open_store_ = nullptr;
}

DataDirectoryOptions SimWorld::DirectoryOptions() {
  DataDirectoryOptions options;
  options.path = "data";
  options.env = env_.get();
  options.open_catalog = [this](const std::string&, bool) -> Result<std::unique_ptr<CatalogStore>> {
    return std::unique_ptr<CatalogStore>(std::move(store_));
  };
  options.stripe_bits = 3 + static_cast<unsigned>(options_.seed % 5);
  options.random_seed = options_.seed;
  options.append_only = options_.append_only;
  options.fsync = options_.fsync;
  options.log_growth = {kLogGrowthBytes, options_.snapshots ? 100u : 0u};
  options.manual = true;
  options.log.segment_bytes_min = options_.segment_bytes_min;
  options.log.segment_bytes_max = 4 * options_.segment_bytes_min;
  options.log.retry_ms = 20;
  options.log.wall_ms = [this] { return static_cast<uint64_t>(now_us_ / 1000); };
  return options;
}

// --- starts and cuts ---

std::optional<std::string> SimWorld::Open() {
  open_store_ = store_.get();
  acknowledging_ = false;  // nobody is told anything before the start is over
  SetHooks();
  auto opened = DataDirectory::Open(DirectoryOptions());
  if (!opened.ok()) return "start refused: " + opened.status().ToString();
  directory_ = std::move(opened).value();
  const EngineParameters parameters = directory_->parameters();
  EngineOptions engine_options;
  engine_options.keyspace = {parameters.stripe_bits, parameters.hash_seed, options_.databases};
  engine_options.workers = options_.workers;
  engine_options.first_epoch = parameters.first_epoch;
  engine_options.first_object_id = parameters.first_object_id;
  engine_ = std::make_unique<Engine>(engine_options, &commands_);
  const Status loaded = directory_->Load(engine_.get());
  if (!loaded.ok()) return "load failed: " + loaded.ToString();
  const uint64_t epoch = directory_->recovery().last_epoch();
  if (epoch < acknowledged_) {
    return "recovered epoch " + std::to_string(epoch) + ", acknowledged was " +
           std::to_string(acknowledged_);
  }
  const Contents found = Dump(*engine_);
  if (found != model_.At(epoch)) {
    return "not the state at the end of epoch " + std::to_string(epoch) + ": " +
           Difference(model_.At(epoch), found);
  }
  model_.CutAfter(epoch);
  model_.ForgetBefore(acknowledged_);
  const Status started = directory_->Start();
  if (!started.ok()) return "start failed: " + started.ToString();
  acknowledging_ = directory_->LogCounts();
  return broken_;
}

void SimWorld::SetHooks() {
  env_->SetHook([this](const SimOperation&) {
    CheckFolders();
    OnEvent();
  });
  open_store_->SetHook([this] { OnEvent(); });
}

void SimWorld::OnEvent() {
  if (events_to_cut_ == 0 || --events_to_cut_ != 0) return;
  image_ = ImageNow();
}

void SimWorld::CheckFolders() {
  if (directory_ == nullptr || broken_) return;
  std::vector<uint64_t> live;
  directory_->catalog().With([&](const CatalogState& state) {
    for (const auto& [id, record] : state.objects) {
      if (record.state == FileState::kLive) live.push_back(id);
    }
  });
  for (const uint64_t id : live) {
    const std::string folder = "data/index/" + std::to_string(id);
    const Result<bool> exists = env_->Exists(folder);
    if (exists.ok() && !*exists) broken_ = folder + " is live in the catalog, but not on the disk";
  }
}

void SimWorld::ArmCut(uint64_t events) {
  events_to_cut_ = events;
  image_.reset();
}

void SimWorld::CutNow() {
  if (image_ == nullptr) image_ = ImageNow();
}

std::unique_ptr<SimWorld::Image> SimWorld::ImageNow() {
  const uint64_t seed = random_.Next();
  auto image = std::make_unique<Image>();
  image->acknowledged = Acknowledged();
  image->env = env_->PowerCut(seed);
  image->store = open_store_->Image(seed);
  return image;
}

void SimWorld::UseImage(std::unique_ptr<Image> image) {
  events_to_cut_ = 0;
  ++cuts_;
  env_->SetHook(nullptr);
  env_->PowerOff();
  open_store_->SetHook(nullptr);
  Close();
  env_ = std::move(image->env);
  store_ = std::move(image->store);
  acknowledged_ = image->acknowledged;
}

void SimWorld::TakeCut() {
  if (image_ == nullptr) image_ = ImageNow();
  UseImage(std::move(image_));
}

void SimWorld::Kill() {
  auto image = std::make_unique<Image>();
  image->acknowledged = Acknowledged();
  image->env = env_->KillProcess();
  image->store = open_store_->Image(0);
  UseImage(std::move(image));
}

std::optional<std::string> SimWorld::Shutdown() {
  const Status status = directory_->Stop(false);
  if (!status.ok()) return "stop failed: " + status.ToString();
  if (acknowledging_) acknowledged_ = std::max(acknowledged_, model_.last_epoch());
  acknowledging_ = false;  // the epochs of the closed log are not asked any more
  TakeCut();
  return std::nullopt;
}

uint64_t SimWorld::Acknowledged() {
  if (directory_ == nullptr || engine_ == nullptr) return acknowledged_;
  if (acknowledging_) acknowledged_ = std::max(acknowledged_, engine_->epochs().durable());
  return acknowledged_;
}

// --- actions ---

void SimWorld::Step() {
  const uint64_t dice = random_.Below(100);
  if (dice < 50) {
    RandomCommit();
  } else if (dice < 70) {
    Cycle(static_cast<int64_t>(random_.Below(9000)));
  } else if (dice < 82) {
    EncodeStripe(static_cast<unsigned>(random_.Below(options_.workers)));
  } else if (dice < 93) {
    Work();
  } else if (dice < 95) {
    if (options_.snapshots) directory_->BeginSnapshot(SnapshotWhy::kBackgroundSave);
  } else if (dice < 97) {
    Cycle(1'100'000);
  } else if (dice < 98) {
    directory_->RequestSync();
  } else if (options_.vector_percent > 0 && dice == 98) {
    for (const ObjectRef<Object>& object : engine_->objects().All()) {
      static_cast<DurableObject&>(*object).Upkeep();
    }
  } else if (options_.faults && dice == 98) {
    RandomFault();
  } else if (options_.switch_log && random_.Below(4) == 0) {
    SwitchLog(directory_->GetStatus().log_on ? false : true);
  }
}

void SimWorld::SwitchLog(bool on) {
  const bool counted = acknowledging_;
  Acknowledged();
  acknowledging_ = false;
  if (!directory_->SetAppendOnly(on).ok()) {
    acknowledging_ = counted && directory_->LogCounts();
    return;
  }
  // The log was synced before it ended.
  if (!on && counted) acknowledged_ = std::max(acknowledged_, model_.last_epoch());
}

void SimWorld::Cycle(int64_t us) {
  now_us_ += us;
  directory_->log().Cycle(now_us_);
}

bool SimWorld::Work() {
  const bool worked = directory_->Work(now_us_ / 1000);
  if (!acknowledging_) acknowledging_ = directory_->LogCounts();
  return worked;
}

void SimWorld::EncodeStripe(unsigned worker) {
  if (SnapshotJob* job = directory_->snapshot_job_or_null()) {
    (void)job->EncodeNext(engine_->worker(worker));
  }
}

void SimWorld::FinishSnapshot() {
  for (int i = 0; i < kPatience; ++i) {
    const DirectoryStatus status = directory_->GetStatus();
    if (!status.snapshot_running && !status.snapshot_scheduled) return;
    EncodeStripe(0);
    Work();
    Cycle(1000);
  }
  HOTKV_CHECK(false && "a snapshot that never ends");
}

void SimWorld::SyncAll() {
  const uint64_t epoch = engine_->epochs().current();
  for (int i = 0; i < kPatience && engine_->epochs().durable() < epoch; ++i) {
    directory_->RequestSync();
    Cycle(1000);
  }
  HOTKV_CHECK(engine_->epochs().durable() >= epoch);
}

std::optional<std::string> SimWorld::CheckFiles() {
  env_->ClearFaults();
  directory_->SetLogGrowth({.percent = 0});
  SlotObject::during_checkpoint = nullptr;
  for (int i = 0; i < kPatience && !CanWrite(); ++i) Cycle(50'000);
  FinishSnapshot();
  SyncAll();
  directory_->BeginSnapshot(SnapshotWhy::kSave);
  FinishSnapshot();
  SyncAll();
  for (int i = 0; i < 5; ++i) {
    Work();
    Cycle(50'000);
  }
  const CatalogState state = directory_->catalog().Read();
  std::set<std::string> expected;
  std::set<uint64_t> referred;
  for (const auto& [number, record] : state.snapshots) {
    if (record.state != FileState::kLive) return "a snapshot that is not live stays in the catalog";
    expected.insert("data/snapshots/" + SnapshotFileName(number));
    for (const GenerationRef& ref : record.generations) referred.insert(ref.object_id);
  }
  for (const auto& [number, entry] : state.segments) {
    // A spare one keeps its file until it is used again.
    if (entry.state != SegmentState::kPlanned)
      expected.insert("data/log/" + SegmentFileName(number));
  }
  for (const auto& [id, record] : state.objects) {
    const std::string folder = "data/index/" + std::to_string(id);
    // What a vector index has in its folder is its own business.
    if (record.type != static_cast<uint8_t>(SlotObject::kType)) {
      ListFiles(folder, &expected);
      continue;
    }
    expected.insert(folder + "/slots");
    for (const auto& [number, generation] : record.generations) {
      if (generation.state != FileState::kLive)
        return folder + " has a generation that is not live";
      expected.insert(folder + "/names." + std::to_string(number));
    }
    if (!engine_->objects().Find(id) && !referred.contains(id))
      return folder + " is of an object that is gone";
  }
  std::set<std::string> found;
  for (const char* folder : {"data/snapshots", "data/log", "data/index"}) ListFiles(folder, &found);
  for (const std::string& path : found) {
    if (!expected.contains(path)) return path + " is not in the catalog";
  }
  for (const std::string& path : expected) {
    if (!found.contains(path)) return path + " is in the catalog, but not on the disk";
  }
  return broken_;
}

void SimWorld::ListFiles(const std::string& folder, std::set<std::string>* files) {
  auto entries = env_->List(folder);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries) {
    const std::string path = JoinPath(folder, entry.name);
    entry.is_dir ? ListFiles(path, files) : static_cast<void>(files->insert(path));
  }
}

void SimWorld::Truncate(const std::string& path, uint64_t size) {
  auto file = env_->Open(path, OpenMode::kReadWrite, FileIo::kPosix);
  HOTKV_CHECK(file.ok());
  HOTKV_CHECK((*file)->Truncate(size).ok());
  HOTKV_CHECK((*file)->Sync().ok());
}

void SimWorld::RandomFault() {
  env_->ClearFaults();
  SimFault fault;
  fault.op = random_.Below(2) == 0 ? SimOp::kSync : SimOp::kWrite;
  fault.path_part = random_.Below(3) == 0 ? "" : "/log/";
  fault.nth = 1 + random_.Below(5);
  fault.count = 1 + random_.Below(3);
  fault.error = random_.Below(2) == 0 ? EIO : ENOSPC;
  fault.bytes_done = random_.Below(2) * random_.Below(4096);
  env_->Inject(fault);
}

// --- commits ---

bool SimWorld::CanWrite() const {
  return !engine_->disk_denied.load() && !engine_->epochs().writes_wait();
}

std::string SimWorld::RandomKey() {
  if (options_.object_percent > 0 && random_.Below(20) == 0)
    return "object:" + std::to_string(random_.Below(4));
  return "key:" + std::to_string(random_.Below(kKeys)) +
         std::string(random_.Below(3) == 0 ? 40 : 0, 'k');
}

std::string SimWorld::RandomValue() {
  std::string value = "v" + std::to_string(++value_counter_) + "-";
  const uint64_t size = random_.Below(100) < options_.large_percent ? 17'000 + random_.Below(8'000)
                                                                    : random_.Below(120);
  value.resize(value.size() + size, static_cast<char>('a' + random_.Below(26)));
  return value;
}

int64_t SimWorld::RandomExpiry() {
  return random_.Below(3) == 0 ? kNowMs + 1 + static_cast<int64_t>(random_.Below(1'000'000'000))
                               : 0;
}

// A key that holds an object, or gets one; some of its elements change.
void SimWorld::ObjectCommit() {
  const auto worker = static_cast<unsigned>(random_.Below(options_.workers));
  const auto db = static_cast<uint32_t>(random_.Below(options_.databases));
  const std::string key = "object:" + std::to_string(random_.Below(4));
  const KeyRef ref = engine_->keyspace().MakeRef(key);
  const auto found = model_.now.find({db, key});
  if (found != model_.now.end() && !found->second.is_object) return;
  ObjectRef<Object> fresh;
  if (found == model_.now.end()) {
    const uint64_t id = engine_->objects().NewId();
    const auto folder = engine_->object_host_or_null()->MakeFolder(id, SlotObject::kType);
    if (!folder.ok()) return;
    const auto made = SlotObject::Create({id, env_.get(), *folder}, "definition of " + key);
    if (!made.ok()) return engine_->object_host_or_null()->ForgetFolder(id);
    fresh = ObjectRef<Object>::Adopt(*made);
  }
  Txn& txn = engine_->worker(worker).txn;
  txn.Begin(kNowMs);
  txn.LockKey(ref);
  Value& value = model_.now[{db, key}];
  value.is_object = true;
  SlotObject* object = nullptr;
  if (fresh) {
    object = static_cast<SlotObject*>(fresh.get());
    txn.LinkNewObject(db, ref, fresh.Release(), object->definition());
  } else {
    object = static_cast<SlotObject*>(txn.Peek(db, ref)->object());
  }
  for (uint64_t i = 1 + random_.Below(3); i > 0; --i) ChangeElement(txn, ref, object, &value);
  EndCommit(txn, worker);
}

std::string SimWorld::RunCommand(unsigned worker, const std::vector<std::string>& words) {
  const std::vector<std::string_view> args(words.begin(), words.end());
  BlockPool pool;
  OutputChain chain(&pool);
  ReplyWriter reply(&chain, 2);
  ClientState client;
  Executor executor(engine_.get(), &engine_->worker(worker));
  const uint64_t before = engine_->worker(worker).last_lsn;
  engine_->gate().Enter(worker);
  executor.Dispatch(client, executor.Lookup(args), args, reply);
  engine_->gate().Leave(worker);
  const uint64_t after = engine_->worker(worker).last_lsn;
  if (after != before) model_.Committed(EpochOf(after));
  if (engine_->lazy_free().pending() != 0) engine_->lazy_free().Drain();
  return chain.ToString();
}

// The model is changed before the command runs: what it should do is known beforehand.
void SimWorld::VectorCommit() {
  const auto worker = static_cast<unsigned>(random_.Below(options_.workers));
  const std::string key = "vectors:" + std::to_string(random_.Below(3));
  const auto found = model_.now.find({0, key});
  if (found == model_.now.end()) {
    if (directory_->snapshot_job_or_null() != nullptr && random_.Below(2) == 0) return;
    const char* const types[] = {"F32", "Q8", "Q4"};
    model_.now[{0, key}].is_object = true;
    const std::string reply = RunCommand(worker, {"VSIM.CREATEINDEX", key, "DIM", "4", "METRIC",
                                                  "L2", "TYPE", types[random_.Below(3)]});
    if (reply != "+OK\r\n") model_.now.erase({0, key});
    return;
  }
  if (!found->second.is_object) return;
  if (random_.Below(10) == 0) return CopyCommit(worker, key);
  auto& elements = found->second.elements;
  const std::string name = "e" + std::to_string(random_.Below(12));
  if (elements.contains(name) && random_.Below(3) == 0) {
    elements.erase(name);
    HOTKV_CHECK(RunCommand(worker, {"VSIM.DEL", key, name}) == ":1\r\n");
    return;
  }
  std::vector<std::string> words{"VSIM.SET", key, name, "VALUES", "4"};
  std::string text;
  for (int i = 0; i < 4; ++i) {
    words.push_back(std::to_string(random_.Below(1000)));
    text += words.back() + " ";
  }
  const std::string attr = "{\"n\":" + std::to_string(++value_counter_) + "}";
  words.insert(words.end(), {"ATTR", attr});
  const std::optional<std::string> before =
      elements.contains(name) ? std::optional(elements[name]) : std::nullopt;
  elements[name] = text + attr;
  // A full disk may refuse the slab of a new slot.
  if (RunCommand(worker, words)[0] == ':') return;
  before ? static_cast<void>(elements[name] = *before) : static_cast<void>(elements.erase(name));
}

void SimWorld::CopyCommit(unsigned worker, const std::string& key) {
  const std::string to = "vectors:" + std::to_string(random_.Below(3));
  if (to == key) return;
  const auto old = model_.now.find({0, to});
  const std::optional<Value> before =
      old == model_.now.end() ? std::nullopt : std::optional(old->second);
  model_.now[{0, to}] = Value(model_.now[{0, key}]);
  // A full disk may refuse the copy's files.
  if (RunCommand(worker, {"COPY", key, to, "REPLACE"}) == ":1\r\n") return;
  before ? static_cast<void>(model_.now[{0, to}] = *before)
         : static_cast<void>(model_.now.erase({0, to}));
}

void SimWorld::ChangeElement(Txn& txn, const KeyRef& key, SlotObject* object, Value* value) {
  const std::string name = "e" + std::to_string(random_.Below(15));
  std::string change;
  if (value->elements.contains(name) && random_.Below(3) == 0) {
    change = object->Delete(name);
    value->elements.erase(name);
  } else {
    const std::string text = "value " + std::to_string(++value_counter_) + " of " + name;
    change = object->Set(name, text);
    if (change.empty()) return;
    value->elements[name] = text;
  }
  txn.RecordObjectChange(key, object->id(), change);
}

void SimWorld::EndCommit(Txn& txn, unsigned worker) {
  const bool changed = txn.has_effects();
  txn.CommitAndUnlock();
  if (engine_->lazy_free().pending() != 0)
    engine_->lazy_free().Drain();  // frees of objects happen at a known moment
  if (changed) model_.Committed(EpochOf(engine_->worker(worker).last_lsn));
}

void SimWorld::Commit(unsigned worker, const std::vector<std::string>& keys,
                      const std::string& value) {
  Txn& txn = engine_->worker(worker).txn;
  txn.Begin(kNowMs);
  std::vector<KeyRef> refs;
  for (const std::string& key : keys) refs.push_back(engine_->keyspace().MakeRef(key));
  txn.LockKeys(refs);
  for (const KeyRef& ref : refs) {
    txn.SetString(0, ref, value, 0);
    model_.now[{0, std::string(ref.key)}] = {value, 0};
  }
  EndCommit(txn, worker);
}

void SimWorld::RandomCommit() {
  if (!CanWrite()) return;
  if (random_.Below(100) < options_.object_percent) return ObjectCommit();
  if (random_.Below(100) < options_.vector_percent) return VectorCommit();
  const auto worker = static_cast<unsigned>(random_.Below(options_.workers));
  Txn& txn = engine_->worker(worker).txn;
  txn.Begin(kNowMs);
  const uint64_t dice = random_.Below(100);
  if (dice < 3) {
    engine_->gate().Enter(worker);
    txn.StopWorld();
    WholeKeyspaceCommit(txn);
    EndCommit(txn, worker);
    engine_->gate().Leave(worker);
    return;
  }
  const uint64_t count = dice < 60 ? 1 : 2 + random_.Below(4);
  std::vector<std::string> keys;
  std::vector<KeyRef> refs;
  for (uint64_t i = 0; i < count; ++i) keys.push_back(RandomKey());
  for (const std::string& key : keys) refs.push_back(engine_->keyspace().MakeRef(key));
  txn.LockKeys(refs);
  const auto db = static_cast<uint32_t>(random_.Below(options_.databases));
  if (dice >= 60 && dice < 70 && keys[0] != keys[1]) {
    RenameKey(txn, db, keys[0], keys[1]);
  } else {
    for (const std::string& key : keys) ChangeKey(txn, db, key);
  }
  EndCommit(txn, worker);
}

void SimWorld::WholeKeyspaceCommit(Txn& txn) {
  const auto a = static_cast<uint32_t>(random_.Below(options_.databases));
  const auto b = static_cast<uint32_t>(random_.Below(options_.databases));
  if (random_.Below(3) == 0) {
    txn.FlushDb(a);
    std::erase_if(model_.now, [a](const auto& entry) { return entry.first.first == a; });
    return;
  }
  if (a == b) return;
  txn.SwapDb(a, b);
  Contents swapped;
  for (auto& [key, value] : model_.now) {
    const uint32_t db = key.first == a ? b : key.first == b ? a : key.first;
    swapped[{db, key.second}] = std::move(value);
  }
  model_.now = std::move(swapped);
}

void SimWorld::RenameKey(Txn& txn, uint32_t db, const std::string& from, const std::string& to) {
  const auto source = model_.now.find({db, from});
  if (source == model_.now.end()) return;
  Keyspace& keyspace = engine_->keyspace();
  txn.Move(db, keyspace.MakeRef(from), db, keyspace.MakeRef(to));
  model_.now[{db, to}] = source->second;
  model_.now.erase({db, from});
}

void SimWorld::ChangeKey(Txn& txn, uint32_t db, const std::string& key) {
  const KeyRef ref = engine_->keyspace().MakeRef(key);
  const auto found = model_.now.find({db, key});
  const bool exists = found != model_.now.end();
  const uint64_t dice = random_.Below(10);
  if (dice < 2) {
    HOTKV_CHECK(txn.Delete(db, ref) == exists);
    model_.now.erase({db, key});
  } else if (dice == 2 && exists) {
    found->second.expire_at_ms = RandomExpiry();
    txn.SetExpire(db, ref, found->second.expire_at_ms);
  } else {
    ChangeString(txn, db, key);
  }
}

void SimWorld::ChangeString(Txn& txn, uint32_t db, const std::string& key) {
  const KeyRef ref = engine_->keyspace().MakeRef(key);
  Value& value = model_.now[{db, key}];
  if (value.is_object) {
    value = {RandomValue(), 0};
    return txn.SetString(db, ref, value.bytes, 0);
  }
  const uint64_t dice = random_.Below(10);
  if (dice < 2) {
    const std::string more = RandomValue();
    txn.Append(db, ref, more);
    value.bytes += more;
  } else if (dice < 3) {
    const std::string part = RandomValue();
    const size_t offset = random_.Below(value.bytes.size() + 20);
    txn.SetRange(db, ref, offset, part);
    if (value.bytes.size() < offset + part.size()) value.bytes.resize(offset + part.size(), '\0');
    value.bytes.replace(offset, part.size(), part);
  } else if (dice < 5) {
    const auto number = static_cast<int64_t>(random_.Next());
    value = {std::to_string(number), RandomExpiry()};
    txn.SetInt(db, ref, number, value.expire_at_ms);
  } else {
    value = {RandomValue(), RandomExpiry()};
    txn.SetString(db, ref, value.bytes, value.expire_at_ms);
  }
}

}  // namespace hotkv::crash
