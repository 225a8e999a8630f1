#include "persistence/snapshot/snapshot_file.h"

#include <algorithm>

#include <fmt/format.h>
#include <zstd.h>

#include "engine/base/crash_point.h"
#include "engine/base/crc32c.h"

namespace hotkv {

namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr int kCompressionLevel = 1;
constexpr size_t kCompressBytesMin = 64;  // below, a frame's head costs more than it saves
// A section's memory grows with what comes out of the decompressor, not with what its header
// announces.
constexpr size_t kDecompressStep = size_t{1} << 20;

uint64_t SizeOf(const std::vector<std::string_view>& pieces) {
  uint64_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  return size;
}

struct Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ~Decompressor() { ZSTD_freeDCtx(context); }
};

Status Decompress(std::string_view stored, uint64_t raw_bytes, std::string* out) {
  thread_local Decompressor decompressor;
  ZSTD_DCtx* context = decompressor.context;
  ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
  out->clear();
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  size_t left = 1;  // 0 at the end of a frame
  for (;;) {
    const size_t have = out->size();
    const size_t step = std::min<uint64_t>(kDecompressStep, raw_bytes - have);
    out->resize(have + step);
    ZSTD_outBuffer to{out->data() + have, step, 0};
    left = ZSTD_decompressStream(context, &to, &in);
    out->resize(have + to.pos);
    if (ZSTD_isError(left)) {
      return Status::Corruption(std::string("decompression: ") + ZSTD_getErrorName(left));
    }
    if (left == 0 && in.pos == in.size) break;
    if (to.pos == 0 && (in.pos == in.size || out->size() == raw_bytes)) {
      return Status::Corruption("decompression: wrong length");
    }
  }
  if (out->size() != raw_bytes) return Status::Corruption("decompression: wrong length");
  return Status::Ok();
}

}  // namespace

SnapshotWriter::SnapshotWriter(std::unique_ptr<File> file)
    : file_(std::move(file)), compressor_(ZSTD_createCCtx()) {}

SnapshotWriter::~SnapshotWriter() { ZSTD_freeCCtx(compressor_); }

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::Create(Env* env, const std::string& path,
                                                               const SnapshotHeader& header) {
  HOTKV_ASSIGN_OR_RETURN(auto file, env->Open(path, OpenMode::kCreateNew));
  std::unique_ptr<SnapshotWriter> writer(new SnapshotWriter(std::move(file)));
  writer->out_ = EncodeSnapshotHeader(header);
  return writer;
}

Status SnapshotWriter::Flush() {
  if (out_.empty()) return Status::Ok();
  HOTKV_CRASH_POINT("snapshot.before_write");
  HOTKV_RETURN_IF_ERROR(file_->WriteAt(offset_, out_));
  offset_ += out_.size();
  out_.clear();
  return Status::Ok();
}

Status SnapshotWriter::Append(std::string_view bytes) {
  // Large pieces go to the file as they are.
  if (bytes.size() >= kFlushBytes) {
    HOTKV_RETURN_IF_ERROR(Flush());
    HOTKV_RETURN_IF_ERROR(file_->WriteAt(offset_, bytes));
    offset_ += bytes.size();
    return Status::Ok();
  }
  out_.append(bytes);
  return out_.size() >= kFlushBytes ? Flush() : Status::Ok();
}

Status SnapshotWriter::AppendPlain(const std::vector<std::string_view>& pieces,
                                   SectionHeader* header) {
  for (const std::string_view piece : pieces) {
    header->body_crc = ExtendCrc32c(header->body_crc, piece);
    header->stored_bytes += piece.size();
    HOTKV_RETURN_IF_ERROR(Append(piece));
  }
  return Status::Ok();
}

Status SnapshotWriter::AppendCompressed(const std::vector<std::string_view>& pieces,
                                        SectionHeader* header) {
  ZSTD_CCtx_reset(compressor_, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setPledgedSrcSize(compressor_, header->raw_bytes);
  scratch_.resize(ZSTD_CStreamOutSize());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ZSTD_EndDirective mode = i + 1 == pieces.size() ? ZSTD_e_end : ZSTD_e_continue;
    ZSTD_inBuffer in{pieces[i].data(), pieces[i].size(), 0};
    size_t left = 1;
    while (mode == ZSTD_e_end ? left != 0 : in.pos < in.size) {
      ZSTD_outBuffer to{scratch_.data(), scratch_.size(), 0};
      left = ZSTD_compressStream2(compressor_, &to, &in, mode);
      if (ZSTD_isError(left)) {
        return Status::Internal(std::string("compression: ") + ZSTD_getErrorName(left));
      }
      HOTKV_RETURN_IF_ERROR(AppendPlain({std::string_view(scratch_.data(), to.pos)}, header));
    }
  }
  return Status::Ok();
}

// The header stands before the body but is known after it: its place is filled in later, in the
// buffer or in the file.
Status SnapshotWriter::Add(const Section& section, const std::vector<std::string_view>& pieces) {
  const uint64_t place = bytes();
  HOTKV_RETURN_IF_ERROR(Append(std::string(kSectionHeaderBytes, '\0')));
  SectionHeader header;
  header.kind = section.kind;
  header.id = section.id;
  header.cut = section.cut;
  header.entries = section.entries;
  header.raw_bytes = SizeOf(pieces);
  if (header.raw_bytes >= kCompressBytesMin) {
    header.encoding = SectionEncoding::kZstd;
    HOTKV_RETURN_IF_ERROR(AppendCompressed(pieces, &header));
  } else {
    HOTKV_RETURN_IF_ERROR(AppendPlain(pieces, &header));
  }
  const std::string encoded = EncodeSectionHeader(header);
  if (place >= offset_) {
    out_.replace(place - offset_, encoded.size(), encoded);
  } else {
    HOTKV_RETURN_IF_ERROR(Flush());
    HOTKV_RETURN_IF_ERROR(file_->WriteAt(place, encoded));
  }
  sections_.push_back(
      {section.kind, section.id, place, section.cut, section.entries, SectionHeaderCrc(encoded)});
  return Status::Ok();
}

Status SnapshotWriter::AddStripe(uint32_t stripe, uint64_t cut, const StripeImage& image) {
  std::vector<std::string_view> pieces;
  image.ForEachPiece([&](std::string_view piece) { pieces.push_back(piece); });
  entries_ += image.entries;
  return Add({SectionKind::kStripe, stripe, cut, image.entries}, pieces);
}

Status SnapshotWriter::AddObject(uint64_t id, uint64_t cut, const ObjectSection& section) {
  const std::string body = EncodeObjectSection(section);
  return Add({SectionKind::kObject, id, cut, 1}, {body});
}

Status SnapshotWriter::AddEffects(uint64_t epoch, unsigned group,
                                  const std::vector<std::string_view>& pieces) {
  AppendEffectRunHead(epoch, static_cast<uint8_t>(group), SizeOf(pieces), &effects_);
  for (const std::string_view piece : pieces) effects_.append(piece);
  ++effect_runs_;
  return effects_.size() >= kEffectsSectionBytes ? FlushEffects() : Status::Ok();
}

Status SnapshotWriter::FlushEffects() {
  if (effects_.empty()) return Status::Ok();
  HOTKV_RETURN_IF_ERROR(
      Add({SectionKind::kEffects, effect_sections_++, 0, effect_runs_}, {effects_}));
  effects_.clear();
  effect_runs_ = 0;
  return Status::Ok();
}

Status SnapshotWriter::Finish(SnapshotFooter footer) {
  HOTKV_RETURN_IF_ERROR(FlushEffects());
  // Sections were written as they came; the footer has them in order.
  std::stable_sort(sections_.begin(), sections_.end(), [](const auto& a, const auto& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.id < b.id;
  });
  footer.sections = std::move(sections_);
  footer.entries = entries_;
  HOTKV_RETURN_IF_ERROR(Append(EncodeSnapshotFooter(footer, bytes())));
  HOTKV_RETURN_IF_ERROR(Flush());
  HOTKV_CRASH_POINT("snapshot.before_sync");
  HOTKV_RETURN_IF_ERROR(file_->Sync());
  HOTKV_CRASH_POINT("snapshot.after_sync");
  return Status::Ok();
}

Result<std::unique_ptr<SnapshotReader>> SnapshotReader::Open(Env* env, const std::string& path) {
  HOTKV_ASSIGN_OR_RETURN(auto file, env->Open(path, OpenMode::kRead));
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < kSnapshotHeaderBytes + kSnapshotTrailerBytes) {
    return Status::Corruption(fmt::format("a snapshot of {} bytes is cut off", size)).At(path, 0);
  }
  HOTKV_ASSIGN_OR_RETURN(auto mapping, file->Map(0, 0, MapMode::kReadOnly));
  std::unique_ptr<SnapshotReader> reader(new SnapshotReader(path, std::move(mapping)));
  HOTKV_RETURN_IF_ERROR(reader->ReadEnds());
  return reader;
}

Status SnapshotReader::ReadEnds() {
  Result<SnapshotHeader> header = DecodeSnapshotHeader(bytes());
  if (!header.ok()) return Status(header.status()).At(path_, 0);
  header_ = *header;
  const size_t trailer_at = bytes().size() - kSnapshotTrailerBytes;
  Result<uint64_t> offset = FooterOffset(bytes().substr(trailer_at), bytes().size());
  if (!offset.ok()) {
    return Status(offset.status()).At(path_, static_cast<int64_t>(trailer_at));
  }
  Result<SnapshotFooter> footer = DecodeSnapshotFooter(bytes().substr(*offset), *offset);
  if (!footer.ok()) return Status(footer.status()).At(path_, static_cast<int64_t>(*offset));
  footer_ = std::move(footer).value();
  return Status::Ok();
}

Status SnapshotReader::At(const SectionEntry& section, Status status) const {
  if (status.ok()) return status;
  const char* kind = section.kind == SectionKind::kStripe   ? "stripe"
                     : section.kind == SectionKind::kObject ? "object"
                                                            : "effects";
  Status placed(status.code(),
                fmt::format("section of {} {}: {}", kind, section.id, status.message()));
  return std::move(placed).At(path_, static_cast<int64_t>(section.offset));
}

Result<std::string_view> SnapshotReader::Read(const SectionEntry& section,
                                              std::string* scratch) const {
  const std::string_view from = bytes().substr(section.offset);
  Result<SectionHeader> header = DecodeSectionHeader(from);
  if (!header.ok()) return At(section, header.status());
  if (SectionHeaderCrc(from) != section.header_crc || header->kind != section.kind ||
      header->id != section.id || header->cut != section.cut) {
    return At(section, Status::Corruption("header is not the one that the footer means"));
  }
  if (header->stored_bytes > from.size() - kSectionHeaderBytes) {
    return At(section, Status::Corruption("runs past the end of the file"));
  }
  const std::string_view stored = from.substr(kSectionHeaderBytes, header->stored_bytes);
  if (Crc32c(stored) != header->body_crc) return At(section, Status::Corruption("checksum"));
  if (header->encoding == SectionEncoding::kPlain) return stored;
  Status status = Decompress(stored, header->raw_bytes, scratch);
  if (!status.ok()) return At(section, std::move(status));
  return std::string_view(*scratch);
}

Status SnapshotReader::VerifyAll() const {
  std::string scratch;
  for (const SectionEntry& section : footer_.sections) {
    HOTKV_ASSIGN_OR_RETURN(const std::string_view body, Read(section, &scratch));
    Status status;
    uint64_t entries = 0;
    switch (section.kind) {
      case SectionKind::kStripe:
        status = VisitStripeBytes(
            body, [](uint32_t, uint64_t) { return Status::Ok(); },
            [&](const DecodedEntry&) {
              ++entries;
              return Status::Ok();
            });
        break;
      case SectionKind::kObject:
        status = DecodeObjectSection(body).status();
        entries = 1;
        break;
      case SectionKind::kEffects: {
        const auto runs = DecodeEffectRuns(body);
        status = runs.status();
        entries = runs.ok() ? runs->size() : 0;
        break;
      }
    }
    if (status.ok() && entries != section.entries) {
      status =
          Status::Corruption(fmt::format("{} entries instead of {}", entries, section.entries));
    }
    HOTKV_RETURN_IF_ERROR(At(section, std::move(status)));
  }
  return Status::Ok();
}

}  // namespace hotkv
