// SimWorld: a whole server's data in a simulated world, on one thread: engine, log, snapshots and
// catalog over SimEnv and SimStore, driven by a seed, with a model kept per commit. Its power can
// be cut at any file operation or catalog commit; what a new start then finds must be the model's
// state at some epoch that is at least the last acknowledged one.
//
// At each file operation a kill is thought of as well: no folder may be missing then that the
// catalog calls live.
//
// A violation is told by the returned text, not by a check: tests with a rule switched off want to
// see one.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "engine/base/sim_env.h"
#include "engine/tx/engine.h"
#include "persistence/catalog/sim_store.h"
#include "persistence/data_directory.h"
#include "tests/crash/model.h"

namespace hotkv::crash {

struct WorldOptions {
  uint64_t seed = 1;
  unsigned workers = 3;
  unsigned databases = 3;
  bool append_only = true;
  FsyncPolicy fsync = FsyncPolicy::kEverySecond;
  bool faults = false;          // syncs and writes fail now and then
  bool switch_log = false;      // CONFIG SET appendonly now and then
  unsigned object_percent = 0;  // of commits that change an object
  unsigned vector_percent = 0;  // of commits that change a vector index, through its commands
  bool snapshots = true;
  unsigned large_percent = 5;  // of values that go by reference
  uint64_t segment_bytes_min = 32 * 1024;
};

class SimWorld {
 public:
  explicit SimWorld(const WorldOptions& options);
  ~SimWorld();

  // Opens what the disk has, checks it against the model, and starts. A text: a violation, or a
  // start that failed.
  std::optional<std::string> Open();
  // One random action.
  void Step();
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }

  // Takes an image of the disk at the n-th file operation or catalog event from now on.
  void ArmCut(uint64_t events);
  // Takes the image now, in the middle of whatever runs.
  void CutNow();
  bool cut_taken() const { return image_ != nullptr; }
  // Goes on with the image: the running process is gone. Without one, the cut is now.
  void TakeCut();
  // As a kill -9 now: what was written is seen, but not durable.
  void Kill();
  // Stops as SHUTDOWN does. A text: something acknowledged would be lost.
  std::optional<std::string> Shutdown();

  // The highest epoch that anybody was told to be durable.
  uint64_t Acknowledged();

  // --- single actions, for tests of their own order ---
  void Commit(unsigned worker, const std::vector<std::string>& keys, const std::string& value);
  void RandomCommit();
  void SwitchLog(bool on);
  void Cycle(int64_t us);              // the log writer
  void EncodeStripe(unsigned worker);  // a step of a running snapshot
  bool Work();                         // the background thread
  void FinishSnapshot();               // until none runs or waits
  void SyncAll();                      // until all commits are durable
  // Comes to rest and compares the disk's files with the catalog's: a text names the first that is
  // too many or missing.
  std::optional<std::string> CheckFiles();
  // Paths of all files below the folder.
  void ListFiles(const std::string& folder, std::set<std::string>* files);
  // Cuts a file of the stopped world's disk.
  void Truncate(const std::string& path, uint64_t size);

  Engine& engine() { return *engine_; }
  DataDirectory& directory() { return *directory_; }
  SimEnv& env() { return *env_; }
  // The catalog of the disk that the next Open finds.
  SimStore& store_ref() { return *store_; }
  Model& model() { return model_; }
  Random& random() { return random_; }
  const WorldOptions& options() const { return options_; }
  uint64_t cuts() const { return cuts_; }
  int64_t now_ms() const { return now_us_ / 1000; }
  DataDirectoryOptions DirectoryOptions();

 private:
  struct Image {
    std::unique_ptr<SimEnv> env;
    std::unique_ptr<SimStore> store;
    uint64_t acknowledged = 0;
  };
  void OnEvent();
  void CheckFolders();
  void SetHooks();
  void Close();
  std::unique_ptr<Image> ImageNow();
  void UseImage(std::unique_ptr<Image> image);
  std::string RandomKey();
  std::string RandomValue();
  int64_t RandomExpiry();
  void ChangeKey(Txn& txn, uint32_t db, const std::string& key);
  void ChangeString(Txn& txn, uint32_t db, const std::string& key);
  void RenameKey(Txn& txn, uint32_t db, const std::string& from, const std::string& to);
  void ObjectCommit();
  void VectorCommit();
  void CopyCommit(unsigned worker, const std::string& key);  // of a vector index
  std::string RunCommand(unsigned worker, const std::vector<std::string>& words);
  void ChangeElement(Txn& txn, const KeyRef& key, class SlotObject* object, Value* value);
  void WholeKeyspaceCommit(Txn& txn);
  void EndCommit(Txn& txn, unsigned worker);
  void RandomFault();
  bool CanWrite() const;

  const WorldOptions options_;
  Random random_;
  std::unique_ptr<SimEnv> env_;
  std::unique_ptr<SimStore> store_;  // moves to the directory while it is open
  SimStore* open_store_ = nullptr;
  CommandTable commands_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<DataDirectory> directory_;
  Model model_;
  int64_t now_us_;
  uint64_t acknowledged_ = 0;
  bool acknowledging_ = true;
  uint64_t events_to_cut_ = 0;  // 0: not armed
  std::unique_ptr<Image> image_;
  std::optional<std::string> broken_;  // what CheckFolders has found
  uint64_t cuts_ = 0;
  uint64_t value_counter_ = 0;
};

}  // namespace hotkv::crash
