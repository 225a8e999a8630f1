#include "tests/unit/server/command_rig.h"

namespace hotkv {

namespace {

// Sends without reading the reply.
void Send(CommandRig& rig, size_t client, std::initializer_list<std::string_view> words) {
  rig.client(client).Append(words);
  REQUIRE(rig.client(client).Flush().ok());
}

std::string Read(CommandRig& rig, size_t client) {
  const Result<RespValue> reply = rig.client(client).Read();
  return reply.ok() ? fixture_internal::Render(*reply, " ") : "closed";
}

}  // namespace

TEST_CASE("SAVE answers when the snapshot is finished, and others go on") {
  FakeDisk disk;
  CommandRig rig({.disk = &disk});
  Send(rig, 0, {"SAVE"});
  rig.client(0).Append({"PING"});
  REQUIRE(rig.client(0).Flush().ok());
  REQUIRE(Eventually([&] { return disk.reasons().size() == 1; }));
  CHECK(disk.reasons()[0] == SnapshotReason::kSave);
  disk.Change([](DurabilityStatus& s) { s.snapshot_running = true; });
  CHECK(rig.As(1, "SET k v") == "+OK");
  CHECK(rig.As(1, "SAVE") == "-ERR Background save already in progress");
  disk.Finish(1, SnapshotState::kDone);
  CHECK(Read(rig, 0) == "+OK");
  CHECK(Read(rig, 0) == "+PONG");  // its later command waited

  disk.Change([](DurabilityStatus& s) {
    s.snapshot_running = false;
    s.last_snapshot_error = "no space";
  });
  disk.Finish(2, SnapshotState::kFailed);
  CHECK(rig("SAVE") == "-ERR no space");
  CHECK(rig("MULTI") == "+OK");
  CHECK(rig("SAVE") == "-ERR Command not allowed inside a transaction");
}

TEST_CASE("BGSAVE and BGREWRITEAOF: started, refused, scheduled") {
  FakeDisk disk;
  CommandRig rig({.disk = &disk});
  CHECK(rig("BGSAVE FOO") == "-ERR syntax error");
  CHECK(rig("BGSAVE") == "+Background saving started");
  disk.Change([](DurabilityStatus& s) { s.snapshot_running = true; });
  CHECK(rig("BGSAVE") == "-ERR Background save already in progress");
  CHECK(rig("BGSAVE SCHEDULE") == "-ERR Background save already in progress");
  CHECK(rig("BGREWRITEAOF") == "+Background append only file rewriting scheduled");
  disk.Change([](DurabilityStatus& s) { s.snapshot_is_rewrite = true; });
  CHECK(rig("BGREWRITEAOF") == "-ERR Background append only file rewriting already in progress");
  CHECK(rig("BGSAVE") ==
        "-ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
        "in order to schedule "
        "a BGSAVE whenever possible.");
  CHECK(rig("BGSAVE SCHEDULE") == "+Background saving scheduled");
  disk.Change([](DurabilityStatus& s) { s.snapshot_running = false; });
  CHECK(rig("BGREWRITEAOF") == "+Background append only file rewriting started");
  CHECK(disk.reasons() ==
        std::vector<SnapshotReason>{SnapshotReason::kBackgroundSave, SnapshotReason::kRewrite,
                                    SnapshotReason::kBackgroundSave, SnapshotReason::kRewrite});
}

TEST_CASE("LASTSAVE and INFO persistence tell what the disk tells") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) {
    s.last_save_ms = 1'700'000'123'456;
    s.log_on = true;
    s.changes_since_save = 17;
    s.snapshots = 3;
    s.last_snapshot_error = "x";
    s.log_segments = 5;
    s.replication_id = std::string(40, 'a');
  });
  CommandRig rig({.disk = &disk});
  CHECK(rig("LASTSAVE") == ":1700000123");
  CHECK(rig.Info("persistence", "rdb_last_save_time") == "1700000123");
  CHECK(rig.Info("persistence", "rdb_changes_since_last_save") == "17");
  CHECK(rig.Info("persistence", "rdb_saves") == "3");
  CHECK(rig.Info("persistence", "rdb_last_bgsave_status") == "err");
  CHECK(rig.Info("persistence", "aof_enabled") == "1");
  CHECK(rig.Info("persistence", "rdb_bgsave_in_progress") == "0");
  CHECK(rig.Info("hotkv", "hotkv_log_segments") == "5");
  CHECK(rig.Info("replication", "master_replid") == std::string(40, 'a'));
  disk.Change([](DurabilityStatus& s) { s.snapshot_running = true; });
  CHECK(rig.Info("persistence", "rdb_bgsave_in_progress") == "1");
}

TEST_CASE("WAITAOF waits for the epoch of the connection's last write") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) { s.log_on = true; });
  CommandRig rig({.disk = &disk});
  EpochClock& epochs = rig.engine().epochs();
  CHECK(rig("WAITAOF 1 0 0") == "[:1 :0]");  // nothing written: nothing to wait for
  rig("SET k v");
  Send(rig, 0, {"WAITAOF", "1", "0", "0"});
  REQUIRE(Eventually([&] { return disk.sync_requests > 0; }));
  CHECK(rig.As(1, "WAITAOF 1 0 0") == "[:1 :0]");  // another connection has written nothing
  epochs.SetDurable(epochs.current());
  CHECK(Read(rig, 0) == "[:1 :0]");
  CHECK(rig("WAITAOF 0 1 20") == "[:1 :0]");  // a replica does not come
  CHECK(rig("WAITAOF 2 0 0") == "-ERR value is out of range, value must between 0 and 1");
  CHECK(rig("WAITAOF 1 -1 0") == "-ERR value is out of range, must be positive");
  CHECK(rig("WAITAOF 1 0 -1") == "-ERR timeout is negative");
  CHECK(rig("WAITAOF 1 0 x") == "-ERR timeout is not an integer or out of range");
}

TEST_CASE("WAITAOF after appendonly was switched on waits for the snapshot that the log begins with") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) { s.log_on = true; });
  disk.log_counts = false;
  CommandRig rig({.disk = &disk});
  EpochClock& epochs = rig.engine().epochs();
  rig("SET k v");
  epochs.SetDurable(epochs.current());
  CHECK(rig("WAITAOF 1 0 20") == "[:0 :0]");
  CHECK(rig("WAITAOF 0 0 0") == "[:0 :0]");
  Send(rig, 0, {"WAITAOF", "1", "0", "0"});
  CHECK(rig.As(1, "PING") == "+PONG");
  disk.log_counts = true;
  rig.server().OnDurable();
  CHECK(Read(rig, 0) == "[:1 :0]");
}

TEST_CASE("WAITAOF: time-out, inside MULTI, without a log") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) { s.log_on = true; });
  CommandRig rig({.disk = &disk});
  rig("SET k v");
  CHECK(rig("WAITAOF 1 0 20") == "[:0 :0]");
  rig("MULTI");
  rig("WAITAOF 1 0 0");
  CHECK(rig("EXEC") == "[[:0 :0]]");
  disk.Change([](DurabilityStatus& s) { s.log_on = false; });
  CHECK(rig("WAITAOF 1 0 0") ==
        "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  CHECK(rig("WAITAOF 0 0 0") == "[:0 :0]");
}

TEST_CASE("WAIT: no replica ever comes") {
  CommandRig rig;
  CHECK(rig("WAIT 0 0") == ":0");
  CHECK(rig("WAIT 1 20") == ":0");
  rig("MULTI");
  rig("WAIT 1 0");
  CHECK(rig("EXEC") == "[:0]");
}

TEST_CASE("SHUTDOWN: syntax, and a stop without a snapshot") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) { s.log_on = true; });
  CommandRig rig({.disk = &disk});
  CHECK(rig("SHUTDOWN FOO") == "-ERR syntax error");
  CHECK(rig("SHUTDOWN SAVE NOSAVE") == "-ERR syntax error");
  CHECK(rig("SHUTDOWN ABORT NOW") == "-ERR syntax error");
  CHECK(rig("SHUTDOWN ABORT") == "-ERR No shutdown in progress.");
  rig("MULTI");
  CHECK(rig("SHUTDOWN") == "-ERR Command not allowed inside a transaction");
  rig("DISCARD");
  CHECK_FALSE(rig.server().shutting_down());
  Send(rig, 0, {"SHUTDOWN", "NOW"});
  REQUIRE(Eventually([&] { return rig.server().shutting_down(); }));
  CHECK(disk.reasons().empty());  // the log has everything
}

TEST_CASE("SHUTDOWN SAVE: the stop comes after the snapshot; ABORT and a failure keep the server") {
  FakeDisk disk;
  disk.Change([](DurabilityStatus& s) {
    s.log_on = true;
    s.last_snapshot_error = "no space";
  });
  CommandRig rig({.disk = &disk});
  Send(rig, 0, {"SHUTDOWN", "SAVE"});
  REQUIRE(Eventually([&] { return disk.reasons().size() == 1; }));
  CHECK(rig.As(1, "SHUTDOWN ABORT") == "+OK");
  CHECK(Read(rig, 0) == "-ERR Errors trying to SHUTDOWN. Check logs.");
  disk.Finish(1, SnapshotState::kDone);

  disk.Finish(2, SnapshotState::kFailed);
  CHECK(rig("SHUTDOWN SAVE") == "-ERR Errors trying to SHUTDOWN. Check logs.");
  CHECK(rig("PING") == "+PONG");
  CHECK(rig("SHUTDOWN ABORT") == "-ERR No shutdown in progress.");
  CHECK_FALSE(rig.server().shutting_down());

  disk.Finish(3, SnapshotState::kFailed);
  Send(rig, 0, {"SHUTDOWN", "SAVE", "FORCE"});
  REQUIRE(Eventually([&] { return rig.server().shutting_down(); }));
}

TEST_CASE("SHUTDOWN SAVE is obeyed although its client has gone") {
  FakeDisk disk;
  CommandRig rig({.workers = 2, .disk = &disk});
  const bool resets = GENERATE(false, true);
  CHECK(rig("PING") == "+PONG");
  {
    const std::unique_ptr<RespClient> gone = rig.Connect();
    gone->Append({"SHUTDOWN", "SAVE"});
    REQUIRE(gone->Flush().ok());
    REQUIRE(Eventually([&] { return disk.reasons().size() == 1; }));
    if (resets) CHECK(rig("CLIENT KILL TYPE normal SKIPME yes") == ":1");
  }
  REQUIRE(Eventually([&] { return rig.Info("clients", "connected_clients") == "1"; }));
  CHECK_FALSE(rig.server().shutting_down());
  disk.Finish(1, SnapshotState::kDone);
  REQUIRE(Eventually([&] { return rig.server().shutting_down(); }));
}

TEST_CASE("SHUTDOWN SAVE of a client that has gone can still be aborted") {
  FakeDisk disk;
  CommandRig rig({.disk = &disk});
  {
    const std::unique_ptr<RespClient> gone = rig.Connect();
    gone->Append({"SHUTDOWN", "SAVE"});
    REQUIRE(gone->Flush().ok());
    REQUIRE(Eventually([&] { return disk.reasons().size() == 1; }));
  }
  REQUIRE(Eventually([&] { return rig.Info("clients", "connected_clients") == "1"; }));
  CHECK(rig("SHUTDOWN ABORT") == "+OK");
  disk.Finish(1, SnapshotState::kDone);
  CHECK(rig("SHUTDOWN ABORT") == "-ERR No shutdown in progress.");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // three ticks
  CHECK_FALSE(rig.server().shutting_down());
}

TEST_CASE("SHUTDOWN without a log: a snapshot where save points are set") {
  FakeDisk disk;
  {
    CommandRig rig({.settings = {"--save", "900 1"}, .disk = &disk});
    Send(rig, 0, {"SHUTDOWN"});
    REQUIRE(Eventually([&] { return disk.reasons().size() == 1; }));
    CHECK_FALSE(rig.server().shutting_down());
    disk.Finish(1, SnapshotState::kDone);
    REQUIRE(Eventually([&] { return rig.server().shutting_down(); }));
  }
  CommandRig rig({.settings = {"--save", ""}, .disk = &disk});
  Send(rig, 0, {"SHUTDOWN"});
  REQUIRE(Eventually([&] { return rig.server().shutting_down(); }));
  CHECK(disk.reasons().size() == 1);
}

}  // namespace hotkv
