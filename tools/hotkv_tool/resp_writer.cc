#include "tools/hotkv_tool/resp_writer.h"

#include "engine/base/resp_client.h"

namespace hotkv {

void RespWriter::Append() { AppendRespCommand(line_.args(), output_->buffer()); }

void RespWriter::AppendPendingExpiry() {
  if (expire_at_ms_ == 0) return;
  MakeExpiry(expiring_key_, expire_at_ms_, &line_);
  Append();
  expire_at_ms_ = 0;
}

Status RespWriter::Put(const Record& record) {
  if (record.kind != RecordKind::kVector) AppendPendingExpiry();
  if (record.kind != RecordKind::kCommand && db_ != record.db) {
    MakeSelect(record.db, &line_);
    Append();
    db_ = record.db;
  }
  MakeCommand(record, &line_);
  Append();
  if (record.kind == RecordKind::kIndex) {
    expiring_key_ = record.key;
    expire_at_ms_ = record.expire_at_ms;
  }
  return output_->MaybeFlush();
}

Status RespWriter::Finish() {
  AppendPendingExpiry();
  return output_->Finish();
}

}  // namespace hotkv
