// Rule switches: each rule on which durability rests can be switched off in
// test builds. The power-cut simulation must then find a violation: so it is known to see what it
// is for. In other builds Enabled() is the constant true.
//
// Thread rules: any thread may ask; tests switch while nothing runs.
#pragma once

#include <atomic>
#include <cstdint>

namespace hotkv {

enum class Rule : uint8_t {
  kSyncOldSegmentAtRotation,     // a block of a new segment is durable only after the old one is
                                 // synced
  kSegmentLiveBeforeFirstBlock,  // a segment is in the catalog, and its name synced, before a block
                                 // counts
  kWatermark,           // torn tail and corruption are told apart by the last epoch known durable
  kCutByEpoch,          // nothing behind a torn block is taken, even if it is valid
  kChain,               // a block names the checksum of the one before
  kStartNumber,         // each start writes a start number of its own
  kSyncAcceptedBlocks,  // blocks found above the watermark at a start are synced before they count
  kFailedFileNeverWritten,    // after a failed write or sync a file is left alone
  kEndInCatalogBeforeResume,  // a given-up segment's end is in the catalog before blocks are
                              // written elsewhere
  kSyncBeforePublish,         // an epoch is durable only after its sync
  kEpochUnderLocks,           // an effect goes to the buffer of the epoch in its lsn
  kCutIsEpoch,        // a stripe's cut is the larger of its lsn and the current epoch's first
  kSnapshotAfterLog,  // a snapshot is live once the log is durable past its last section
  kSnapshotSyncedBeforeLive,  // file and folder are synced before the catalog names them live
  kKeepLogFromOldestCut,      // the log is dropped only up to the oldest cut in use
  kSlotReuse,             // a slot is written again only after a generation begun later is durable
  kGenerationAfterLog,    // an index generation is published when the log is durable past its copy
  kImmutableColdRecords,  // cold records never change and outlive running snapshots
};

#ifdef HOTKV_TEST_HOOKS

namespace rules {

inline std::atomic<uint64_t> switched_off{0};

inline bool Enabled(Rule rule) {
  return (switched_off.load(std::memory_order_relaxed) >> static_cast<unsigned>(rule) & 1) == 0;
}

// Off while it lives.
class Off {
 public:
  explicit Off(Rule rule) : bit_(uint64_t{1} << static_cast<unsigned>(rule)) {
    switched_off.fetch_or(bit_, std::memory_order_relaxed);
  }
  ~Off() { switched_off.fetch_and(~bit_, std::memory_order_relaxed); }
  Off(const Off&) = delete;
  Off& operator=(const Off&) = delete;

 private:
  const uint64_t bit_;
};

}  // namespace rules

#else

namespace rules {
constexpr bool Enabled(Rule) { return true; }
}  // namespace rules

#endif

}  // namespace hotkv
