// One epoch's effects on their way to the log: gathered from the workers' buffers, grouped by
// stripe group, summed, and kept in memory until they are durable. The same block can be written
// more than once, each time at another place, when the file that it was written to first has
// failed.
//
// Thread rules: one thread at a time; the log writer makes and owns it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/byte_buffer.h"
#include "engine/tx/epoch.h"
#include "persistence/log/log_format.h"

namespace hotkv {

class EpochBlock {
 public:
  // Takes over all effects of the closed epoch; the clock may release it afterwards.
  void Gather(EpochClock* clock, uint64_t epoch);
  // A block as it was stored: bytes are all of it. For blocks that have to be written once more
  // after a restart.
  Status Restore(const BlockHeader& header, std::string_view bytes);
  void Clear();

  bool empty() const { return payload_bytes_ == 0; }
  uint64_t epoch() const { return header_.epoch; }
  uint64_t wall_ms() const { return header_.wall_ms; }
  void set_wall_ms(uint64_t wall_ms) { header_.wall_ms = wall_ms; }
  void set_clean_stop() { header_.clean_stop = true; }
  // Bytes of records.
  uint64_t payload_bytes() const { return payload_bytes_; }
  // Bytes that it takes in a file.
  uint64_t stored_bytes() const;
  size_t capacity_bytes() const;  // of memory that it holds
  // The records of one group: pieces one after the other. For those who want an epoch's effects as
  // they pass.
  void AppendGroupPieces(unsigned group, std::vector<std::string_view>* out) const;
  bool has_group(unsigned group) const { return (present_ >> group & 1) != 0; }

  struct Place {
    uint64_t segment = 0;
    uint64_t start = 0;
    uint32_t previous_checksum = 0;
    uint64_t durable_epoch = 0;
    uint32_t checksum_seed = 0;
  };
  // Makes the header for a place; needed before AppendPieces and checksum.
  void Seal(const Place& place);
  uint32_t checksum() const { return header_.checksum; }
  // All of the block, padding included. Valid until the block is changed or sealed again.
  void AppendPieces(std::vector<std::string_view>* out) const;

 private:
  struct Large {
    size_t position = 0;  // stands behind that many of the group's own bytes
    SharedBlockRef block;
  };
  struct Group {
    size_t begin = 0;  // of its own bytes in bytes_
    size_t end = 0;
    std::vector<Large> large;
    GroupEntry entry;
  };
  void MeasureWorker(const EffectBuffer& buffer);
  void PlaceGroups();
  void GatherWorker(EffectBuffer* buffer);
  void SumGroups();
  std::string_view BytesOf(const Group& group) const {
    return bytes_.view().substr(group.begin, group.end - group.begin);
  }

  std::array<Group, kStripeGroups> groups_;
  ByteBuffer bytes_;  // of all groups, one group after the other
  uint64_t present_ = 0;  // bit g: group g has records
  uint64_t payload_bytes_ = 0;
  BlockHeader header_;
  std::string header_bytes_;
};

}  // namespace hotkv
