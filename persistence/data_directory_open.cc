// DataDirectory: from a folder to a running directory.
#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/crash_point.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "persistence/catalog/lmdb_store.h"
#include "persistence/data_directory.h"

namespace hotkv {

namespace {

constexpr size_t kIdDigits = 40;

Result<std::unique_ptr<CatalogStore>> OpenLmdb(const std::string& path, bool create) {
  HOTKV_ASSIGN_OR_RETURN(auto store, LmdbStore::Open(path, create ? LmdbStore::Mode::kCreateOrOpen
                                                                  : LmdbStore::Mode::kReadWrite));
  return std::unique_ptr<CatalogStore>(std::move(store));
}

// A start that is refused names the way out: what is damaged can be looked at, cut and salvaged.
Status WithAdvice(Status status, const std::string& root) {
  if (status.code() != Code::kCorruption && status.code() != Code::kNotFound) return status;
  Status advised(
      status.code(),
      fmt::format("{}. To see all that is damaged: hotkv-tool verify --dir {}; to save what is not: "
                  "hotkv-tool export --salvage --dir {} --output FILE; see also hotkv-tool repair "
                  "and docs/operations.md",
                  status.message(), root, root));
  return status.path().empty() ? advised : std::move(advised).At(status.path(), status.offset());
}

// Names that another server's data has.
bool IsForeign(const DirEntry& entry) {
  const std::string_view name = entry.name;
  return name == "appendonlydir" || name == "appendonly.aof" || name.ends_with(".rdb");
}

}  // namespace

DataDirectory::DataDirectory(DataDirectoryOptions options)
    : options_(std::move(options)),
      env_(options_.env != nullptr ? options_.env : PosixEnv()),
      paths_(options_.path),
      random_state_(options_.random_seed),
      save_points_(options_.save_points),
      log_growth_(options_.log_growth) {
  std::random_device device;
  while (random_state_ == 0) random_state_ = uint64_t{device()} << 32 | device();
}

uint64_t DataDirectory::RandomNumber() { return SplitMix64(&random_state_); }

std::string DataDirectory::RandomHex(size_t digits) {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", RandomNumber());
  text.resize(digits);
  return text;
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::Open(DataDirectoryOptions options) {
  std::unique_ptr<DataDirectory> directory(new DataDirectory(std::move(options)));
  HOTKV_RETURN_IF_ERROR(WithAdvice(directory->TakeLock(), directory->paths_.root));
  HOTKV_RETURN_IF_ERROR(WithAdvice(directory->OpenCatalog(), directory->paths_.root));
  const CatalogState state = directory->catalog_->Read();
  directory->server_id_ = state.server_id;
  directory->replication_id_ = state.replication_id;
  directory->start_number_ = state.start_number;
  auto recovery = Recovery::Inspect(directory->env_, directory->paths_, state);
  if (!recovery.ok()) return WithAdvice(std::move(recovery).status(), directory->paths_.root);
  directory->recovery_ = std::move(recovery).value();
  return directory;
}

Status DataDirectory::TakeLock() {
  HOTKV_ASSIGN_OR_RETURN(const bool exists, env_->Exists(paths_.root));
  if (!exists) {
    HOTKV_RETURN_IF_ERROR(env_->MakeDir(paths_.root));
    HOTKV_RETURN_IF_ERROR(env_->SyncDir(ParentFolder(paths_.root)));
  }
  // Before the lock's file is made in a directory that is somebody else's.
  HOTKV_ASSIGN_OR_RETURN(const bool locked_before, env_->Exists(paths_.lock));
  if (!locked_before && options_.open_catalog == nullptr) {
    HOTKV_ASSIGN_OR_RETURN(const bool has_catalog, HasCatalog());
    HOTKV_RETURN_IF_ERROR(CheckForeignFiles(has_catalog));
  }
  Result<std::unique_ptr<FileLock>> lock = env_->Lock(paths_.lock);
  if (!lock.ok() && lock.status().code() == Code::kLocked) {
    return Status::Locked("another hotkv-server or hotkv-tool works on this directory")
        .At(paths_.root, -1);
  }
  if (!lock.ok()) return lock.status();
  lock_ = std::move(lock).value();
  return Status::Ok();
}

// An empty file is what a first start leaves that ended early; opening it would fill it.
Result<bool> DataDirectory::HasCatalog() const {
  HOTKV_ASSIGN_OR_RETURN(const bool has_file, env_->Exists(paths_.catalog));
  if (!has_file) return false;
  HOTKV_ASSIGN_OR_RETURN(const auto file, env_->Open(paths_.catalog, OpenMode::kRead));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return size != 0;
}

Status DataDirectory::CheckForeignFiles(bool has_catalog) const {
  HOTKV_ASSIGN_OR_RETURN(const std::vector<DirEntry> entries, env_->List(paths_.root));
  for (const DirEntry& entry : entries) {
    const bool ours = entry.name == "log" || entry.name == "snapshots" || entry.name == "index";
    if (ours && !has_catalog) {
      return Status::Corruption(
                 "the directory has data but no catalog (restore it, or salvage: the files' headers "
                 "are enough for that)")
          .At(paths_.catalog, -1);
    }
    // With data of our own, a file that somebody has put beside it is his.
    if (IsForeign(entry) && !has_catalog) {
      return Status::Exists(
                 "the data of another server lies here and would not be loaded; import it first "
                 "(hotkv-tool import) or choose another directory")
          .At(JoinPath(paths_.root, entry.name), -1);
    }
  }
  return Status::Ok();
}

Status DataDirectory::OpenCatalog() {
  HOTKV_ASSIGN_OR_RETURN(const bool has_file, env_->Exists(paths_.catalog));
  const bool own_store = options_.open_catalog == nullptr;
  if (own_store) {
    HOTKV_ASSIGN_OR_RETURN(const bool has_catalog, HasCatalog());
    HOTKV_RETURN_IF_ERROR(CheckForeignFiles(has_catalog));
  }
  auto store = own_store ? OpenLmdb(paths_.catalog, !has_file)
                         : options_.open_catalog(paths_.catalog, !has_file);
  if (!store.ok()) return store.status();
  HOTKV_ASSIGN_OR_RETURN(catalog_, Catalog::Open(std::move(store).value()));
  bool initialised = false;
  catalog_->With([&](const CatalogState& state) { initialised = state.format != 0; });
  if (initialised) return Status::Ok();
  HOTKV_RETURN_IF_ERROR(CheckForeignFiles(false));
  return InitialiseCatalog();
}

Status DataDirectory::InitialiseCatalog() {
  HOTKV_CHECK(options_.stripe_bits <= kStripeBitsMax);
  HOTKV_RETURN_IF_ERROR(catalog_->Update([this](CatalogState* state) {
    state->format = kDirectoryFormat;
    state->directory_id = RandomNumber();
    state->stripe_bits = options_.stripe_bits;
    state->hash_seed = RandomNumber();
    state->server_id = RandomHex(kIdDigits);
    state->replication_id = RandomHex(kIdDigits);
  }));
  HOTKV_CRASH_POINT("directory.initialised");
  return env_->SyncDir(paths_.root);
}

EngineParameters DataDirectory::parameters() const {
  EngineParameters parameters;
  catalog_->With([&](const CatalogState& state) {
    parameters.stripe_bits = state.stripe_bits;
    parameters.hash_seed = state.hash_seed;
  });
  parameters.first_epoch = recovery_->first_epoch();
  parameters.first_object_id = recovery_->first_object_id();
  return parameters;
}

Status DataDirectory::Load(Engine* engine) {
  engine_ = engine;
  unsigned threads = options_.load_threads;
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  HOTKV_RETURN_IF_ERROR(WithAdvice(recovery_->Load(engine, options_.manual ? 1 : threads), paths_.root));
  folders_ = std::make_unique<ObjectFolders>(env_, paths_.index, catalog_.get(), engine);
  engine->SetObjectHost(folders_.get());
  folders_->ForgetUnknown();
  std::lock_guard lock(mutex_);
  loaded_keys_ = 0;
  for (uint32_t db = 0; db < engine->keyspace().databases(); ++db) {
    loaded_keys_ += engine->keyspace().Size(db);
  }
  return Status::Ok();
}

// Which stretch of the log goes on from the loaded state. The segments of all others are dropped.
void DataDirectory::ChooseLogRange(CatalogState* state) const {
  std::optional<LogRange> range = recovery_->range();
  if (range && options_.append_only) range->last_epoch = 0;
  if (range && !options_.append_only && range->last_epoch == 0) {
    range->last_epoch = recovery_->log() ? recovery_->log()->end.epoch : 0;
    if (range->last_epoch == 0) range.reset();  // nothing is in it
  }
  std::set<uint64_t> kept;
  if (range) {
    for (const LogSegmentEntry& entry : Recovery::SegmentsOf(*state, *range))
      kept.insert(entry.number);
  }
  uint64_t last_number = 0;
  for (auto& [number, entry] : state->segments) {
    last_number = number;
    if (!kept.contains(number)) entry.state = SegmentState::kDropped;
  }
  if (!range && options_.append_only) {
    // What was loaded is a snapshot's state, or nothing: from there on the log covers everything.
    range = LogRange{0, 0, last_number + 1};
    const uint64_t number = recovery_->snapshot_number();
    if (number != 0) range->first_epoch = state->snapshots.at(number).from_epoch;
  }
  // With no segment left the writer may begin with a lower number than before.
  if (range && kept.empty()) range->first_segment = last_number + 1;
  state->ranges.clear();
  if (range) state->ranges[range->first_epoch] = *range;
}

Status DataDirectory::EnterStart() {
  const bool torn = recovery_->log() && recovery_->log()->torn.has_value();
  if (torn) {
    const LogTornTail& tail = *recovery_->log()->torn;
    Log(LogLevel::kWarning,
        fmt::format("The log ends in a torn tail, as after a crash: {} is cut at offset {} ({} "
                    "bytes, {} whole blocks "
                    "are dropped: {})",
                    tail.path, tail.offset, tail.bytes, tail.blocks, tail.reason));
  }
  const std::string fresh_id = RandomHex(kIdDigits);
  HOTKV_RETURN_IF_ERROR(catalog_->Update([&](CatalogState* state) {
    ++state->start_number;
    state->epoch_max = std::max(state->epoch_max, recovery_->first_epoch() - 1);
    if (torn) state->replication_id = fresh_id;
    for (auto& [number, snapshot] : state->snapshots) {
      // The newest was read and checked as it was loaded.
      if (number != recovery_->snapshot_number()) snapshot.state = FileState::kDropped;
    }
    ChooseLogRange(state);
  }));
  HOTKV_CRASH_POINT("directory.start_entered");
  catalog_->With([&](const CatalogState& state) {
    std::lock_guard lock(mutex_);
    start_number_ = state.start_number;
    replication_id_ = state.replication_id;
    const auto newest = state.snapshots.find(recovery_->snapshot_number());
    last_save_ms_ = Clock::NowMs();
    if (newest == state.snapshots.end()) return;
    last_save_ms_ = newest->second.created_us / kMicrosPerMilli;
    snapshot_bytes_ = newest->second.bytes;
  });
  return Status::Ok();
}

Status DataDirectory::RemoveLeftovers() {
  std::vector<uint64_t> dropped;
  catalog_->With([&](const CatalogState& state) {
    for (const auto& [number, snapshot] : state.snapshots) {
      if (snapshot.state == FileState::kDropped) dropped.push_back(number);
    }
  });
  if (dropped.empty()) return Status::Ok();
  for (const uint64_t number : dropped) {
    Status status = env_->Unlink(JoinPath(paths_.snapshots, SnapshotFileName(number)));
    if (!status.ok() && status.code() != Code::kNotFound) return status;
  }
  HOTKV_CRASH_POINT("snapshot.unlinked");
  HOTKV_RETURN_IF_ERROR(env_->SyncDir(paths_.snapshots));
  return catalog_->Update([&](CatalogState* state) {
    for (const uint64_t number : dropped) state->snapshots.erase(number);
  });
}

void DataDirectory::ReportUnknownFiles() const {
  const CatalogState state = catalog_->Read();
  auto report = [](const std::string& path) {
    Log(LogLevel::kWarning, path + " is not in the catalog: left alone");
  };
  if (auto files = env_->List(paths_.snapshots); files.ok()) {
    for (const DirEntry& file : *files) {
      const Result<uint64_t> number = ParseFileNumber(file.name, ".hks");
      if (!number.ok() || !state.snapshots.contains(*number)) {
        report(JoinPath(paths_.snapshots, file.name));
      }
    }
  }
  if (auto folders = env_->List(paths_.index); folders.ok()) {
    for (const DirEntry& folder : *folders) {
      const Result<uint64_t> number = ParseFileNumber(folder.name, "");
      if (!number.ok() || !state.objects.contains(*number)) {
        report(JoinPath(paths_.index, folder.name));
      }
    }
  }
}

LogWriterOptions DataDirectory::WriterOptions() const {
  LogWriterOptions options = options_.log;
  options.env = env_;
  options.folder = paths_.log;
  options.clock = &engine_->epochs();
  options.catalog = catalog_log_.get();
  catalog_->With([&](const CatalogState& state) {
    options.identity = {state.directory_id, 1u << state.stripe_bits, state.hash_seed};
    options.start = state.start_number;
  });
  if (recovery_->log()) {
    options.end = recovery_->log()->end;
    options.durable_end = recovery_->log()->durable_end;
    options.unsynced = recovery_->log()->unsynced;
    options.uses = recovery_->log()->uses;
  }
  options.policy = options_.fsync;
  options.logging = options_.append_only;
  options.manual = options_.manual;
  return options;
}

Status DataDirectory::Start() {
  HOTKV_CHECK(engine_ != nullptr && writer_ == nullptr);
  HOTKV_RETURN_IF_ERROR(EnterStart());
  HOTKV_RETURN_IF_ERROR(env_->MakeDir(paths_.snapshots));
  HOTKV_RETURN_IF_ERROR(env_->MakeDir(paths_.index));
  HOTKV_RETURN_IF_ERROR(env_->SyncDir(paths_.root));
  HOTKV_RETURN_IF_ERROR(RemoveLeftovers());
  ReportUnknownFiles();
  catalog_log_ = std::make_unique<CatalogLog>(catalog_.get());
  log_ = std::make_unique<DirectoryLog>(engine_);
  LogWriterOptions options = WriterOptions();
  options.on_progress = [this] { OnLogProgress(); };
  const bool tail = !options.unsynced.empty();
  HOTKV_ASSIGN_OR_RETURN(writer_, LogWriter::Start(std::move(options)));
  // What a snapshot alone has brought back is durable as well.
  if (!tail && recovery_->durable_epoch() > engine_->epochs().durable()) {
    engine_->epochs().SetDurable(recovery_->durable_epoch());
  }
  log_->SetWriter(writer_.get());
  SetFsyncPolicy(options_.fsync);
  live_writer_.store(writer_.get(), std::memory_order_release);
  UpdateDenial();  // what the writer's thread has told too early
  log_counts_.store(LogCounts(), std::memory_order_release);
  started_.store(true, std::memory_order_release);
  if (!options_.manual) thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

}  // namespace hotkv
