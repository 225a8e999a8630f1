#include "tools/hotkv_tool/input_format.h"

#include "engine/base/coding.h"
#include "engine/base/limits.h"
#include "tools/hotkv_tool/ndjson.h"
#include "tools/hotkv_tool/resp_reader.h"
#include "tools/hotkv_tool/resp_writer.h"

namespace hotkv {

namespace {

constexpr size_t kHeadBytes = 64;

bool LooksLikeFbin(std::string_view head, uint64_t file_bytes) {
  if (head.size() < 8) return false;
  const uint64_t rows = LoadLe<uint32_t>(head.data());
  const uint64_t dim = LoadLe<uint32_t>(head.data() + 4);
  if (dim == 0 || dim > kVectorDimMax) return false;
  return file_bytes == 8 + rows * dim * sizeof(float);
}

}  // namespace

Result<DataFormat> ParseDataFormat(std::string_view name) {
  for (const DataFormat format : {DataFormat::kResp, DataFormat::kNdjson, DataFormat::kFbin}) {
    if (name == DataFormatName(format)) return format;
  }
  return Status::InvalidArgument("format must be resp, ndjson or fbin, not " + std::string(name));
}

std::string_view DataFormatName(DataFormat format) {
  switch (format) {
    case DataFormat::kResp: return "resp";
    case DataFormat::kNdjson: return "ndjson";
    case DataFormat::kFbin: return "fbin";
    case DataFormat::kUnknown: break;
  }
  return "unknown";
}

DataFormat GuessFormat(std::string_view head, uint64_t file_bytes, std::string_view name) {
  if (head.starts_with("*") || head.starts_with("#TS:") || head.starts_with("REDIS")) {
    return DataFormat::kResp;
  }
  if (LooksLikeFbin(head, file_bytes)) return DataFormat::kFbin;
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && head[first] == '{') return DataFormat::kNdjson;
  if (name.ends_with(".ndjson") || name.ends_with(".jsonl")) return DataFormat::kNdjson;
  if (name.ends_with(".resp") || name.ends_with(".aof")) return DataFormat::kResp;
  if (name.ends_with(".fbin")) return DataFormat::kFbin;
  return DataFormat::kUnknown;
}

Result<std::unique_ptr<RecordReader>> OpenInput(const std::string& path, DataFormat format,
                                                const FbinOptions& fbin) {
  HOTKV_ASSIGN_OR_RETURN(auto input, InputStream::Open(path));
  if (format == DataFormat::kUnknown) {
    HOTKV_ASSIGN_OR_RETURN(const std::string_view head, input->Peek(kHeadBytes));
    format = GuessFormat(head, input->size(), path);
  }
  switch (format) {
    case DataFormat::kResp:
      return std::unique_ptr<RecordReader>(std::make_unique<RespReader>(std::move(input)));
    case DataFormat::kNdjson:
      return std::unique_ptr<RecordReader>(std::make_unique<NdjsonReader>(std::move(input)));
    case DataFormat::kFbin: {
      HOTKV_ASSIGN_OR_RETURN(auto reader, FbinReader::Open(std::move(input), fbin));
      return std::unique_ptr<RecordReader>(std::move(reader));
    }
    case DataFormat::kUnknown:
      break;
  }
  return Status::InvalidArgument(path + ": its format cannot be told from its first bytes; name it with --format");
}

Result<std::unique_ptr<RecordWriter>> OpenOutput(const std::string& path, DataFormat format) {
  HOTKV_ASSIGN_OR_RETURN(auto output, OutputStream::Create(path));
  if (format == DataFormat::kNdjson) {
    return std::unique_ptr<RecordWriter>(std::make_unique<NdjsonWriter>(std::move(output)));
  }
  if (format == DataFormat::kResp) {
    return std::unique_ptr<RecordWriter>(std::make_unique<RespWriter>(std::move(output)));
  }
  return Status::InvalidArgument("an export is resp or ndjson");
}

}  // namespace hotkv
