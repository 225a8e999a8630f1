#include "persistence/log/epoch_block.h"

#include <bit>
#include <cstring>
#include <utility>

#include "engine/base/crc32c.h"

namespace hotkv {

namespace {

constexpr std::string_view kPadding{
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    kBlockAlignBytes};

// Calls f(group) for each bit.
template <typename F>
void ForEachBit(uint64_t bits, F f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<unsigned>(std::countr_zero(bits)));
}

}  // namespace

void EpochBlock::Clear() {
  ForEachBit(present_, [&](unsigned g) {
    groups_[g].begin = groups_[g].end = 0;
    groups_[g].large.clear();
  });
  bytes_.Clear();
  present_ = 0;
  payload_bytes_ = 0;
  header_ = BlockHeader();
}

size_t EpochBlock::capacity_bytes() const { return sizeof(EpochBlock) + bytes_.capacity(); }

// Two passes over the records, so that all groups lie in one piece of memory, each byte copied once.
void EpochBlock::Gather(EpochClock* clock, uint64_t epoch) {
  Clear();
  header_.epoch = epoch;
  for (unsigned worker = 0; worker < clock->workers(); ++worker) {
    MeasureWorker(clock->Buffer(worker, epoch));
  }
  PlaceGroups();
  for (unsigned worker = 0; worker < clock->workers(); ++worker) {
    GatherWorker(&clock->Buffer(worker, epoch));
  }
  SumGroups();
}

// Leaves each group's size in its `end`.
void EpochBlock::MeasureWorker(const EffectBuffer& buffer) {
  const char* p = buffer.bytes.data();
  const char* const end = p + buffer.bytes.size();
  while (p < end) {
    EffectBuffer::RecordHeader record;
    std::memcpy(&record, p, sizeof(record));
    p += sizeof(record) + record.size;
    HOTKV_DCHECK(record.group < kStripeGroups && p <= end);
    groups_[record.group].end += record.size;
    present_ |= uint64_t{1} << record.group;
  }
}

void EpochBlock::PlaceGroups() {
  size_t at = 0;
  ForEachBit(present_, [&](unsigned g) {
    at += std::exchange(groups_[g].end, at);
    groups_[g].begin = groups_[g].end;
  });
  bytes_.Extend(at);
}

void EpochBlock::GatherWorker(EffectBuffer* buffer) {
  const char* p = buffer->bytes.data();
  const char* const end = p + buffer->bytes.size();
  char* const out = bytes_.data();
  while (p < end) {
    EffectBuffer::RecordHeader record;
    std::memcpy(&record, p, sizeof(record));
    p += sizeof(record);
    Group& group = groups_[record.group];
    std::memcpy(out + group.end, p, record.size);
    group.end += record.size;
    p += record.size;
    if (record.large != 0) {
      group.large.push_back(
          {group.end - group.begin, std::move(buffer->large[record.large - 1])});
    }
  }
}

void EpochBlock::SumGroups() {
  std::vector<std::string_view> pieces;
  ForEachBit(present_, [&](unsigned g) {
    GroupEntry entry;
    entry.group = static_cast<uint8_t>(g);
    pieces.clear();
    AppendGroupPieces(g, &pieces);
    for (std::string_view piece : pieces) {
      entry.crc = ExtendCrc32c(entry.crc, piece);
      entry.bytes += piece.size();
    }
    groups_[g].entry = entry;
    payload_bytes_ += entry.bytes;
  });
}

Status EpochBlock::Restore(const BlockHeader& header, std::string_view bytes) {
  Clear();
  header_.epoch = header.epoch;
  header_.wall_ms = header.wall_ms;
  if (bytes.size() < header.block_bytes) return Status::Corruption("block is cut off");
  bytes_.Append(bytes);
  for (const GroupEntry& entry : header.groups) {
    const std::string_view stored = bytes.substr(entry.offset, entry.bytes);
    if (Crc32c(stored) != entry.crc) return Status::Corruption("group checksum");
    groups_[entry.group].begin = entry.offset;
    groups_[entry.group].end = entry.offset + entry.bytes;
    groups_[entry.group].entry = entry;
    present_ |= uint64_t{1} << entry.group;
    payload_bytes_ += entry.bytes;
  }
  return Status::Ok();
}

uint64_t EpochBlock::stored_bytes() const {
  const auto groups = static_cast<uint64_t>(std::popcount(present_));
  return BlockBytesFor(kBlockFixedBytes + groups * kGroupEntryBytes + payload_bytes_);
}

void EpochBlock::Seal(const Place& place) {
  header_.segment = place.segment;
  header_.start = place.start;
  header_.previous_checksum = place.previous_checksum;
  header_.durable_epoch = place.durable_epoch;
  header_.groups.clear();
  ForEachBit(present_, [&](unsigned g) { header_.groups.push_back(groups_[g].entry); });
  header_bytes_ = EncodeBlockHeader(&header_, place.checksum_seed);
  HOTKV_DCHECK(header_.block_bytes == stored_bytes());
}

void EpochBlock::AppendGroupPieces(unsigned g, std::vector<std::string_view>* out) const {
  const std::string_view bytes = BytesOf(groups_[g]);
  size_t done = 0;
  for (const Large& large : groups_[g].large) {
    out->push_back(bytes.substr(done, large.position - done));
    out->push_back(large.block.view());
    done = large.position;
  }
  if (done < bytes.size()) out->push_back(bytes.substr(done));
}

void EpochBlock::AppendPieces(std::vector<std::string_view>* out) const {
  out->push_back(header_bytes_);
  ForEachBit(present_, [&](unsigned g) { AppendGroupPieces(g, out); });
  const uint64_t used = header_bytes_.size() + payload_bytes_;
  out->push_back(kPadding.substr(0, static_cast<size_t>(header_.block_bytes - used)));
}

}  // namespace hotkv
