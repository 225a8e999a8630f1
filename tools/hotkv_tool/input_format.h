// Formats of input and output files, and how an input's format is told from its first bytes.
//
// Thread rules: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "tools/hotkv_tool/byte_stream.h"
#include "tools/hotkv_tool/fbin_reader.h"
#include "tools/hotkv_tool/record.h"

namespace hotkv {

enum class DataFormat : uint8_t { kUnknown, kResp, kNdjson, kFbin };

// "resp", "ndjson", "fbin"; kInvalidArgument for another name.
Result<DataFormat> ParseDataFormat(std::string_view name);
std::string_view DataFormatName(DataFormat format);

// head: the first bytes, 64 where there are so many. file_bytes: 0 where not known. kUnknown where nothing fits.
DataFormat GuessFormat(std::string_view head, uint64_t file_bytes, std::string_view name);

// Opens an input; kUnknown: the format is guessed.
Result<std::unique_ptr<RecordReader>> OpenInput(const std::string& path, DataFormat format,
                                                const FbinOptions& fbin);
// An output in resp or ndjson.
Result<std::unique_ptr<RecordWriter>> OpenOutput(const std::string& path, DataFormat format);

}  // namespace hotkv
