// Whole input files of hotkv-tool import, whatever their format: read to the end or to an error that names a place.
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/resp_client.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/hotkv_tool/input_format.h"

namespace hotkv {
namespace {

// A file in memory with a path of its own.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    HOTKV_CHECK(fd_ >= 0);
    HOTKV_CHECK(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

void ReadAll(RecordReader* reader) {
  Record record;
  uint64_t last = 0;
  for (int errors = 0; errors < 100;) {
    const Result<bool> more = reader->Next(&record);
    if (!more.ok()) {
      ++errors;
      HOTKV_CHECK(!more.status().path().empty());
      if (!reader->SkipBad()) return;
      continue;
    }
    if (!*more) return;
    HOTKV_CHECK(reader->position() >= last);
    last = reader->position();
    HOTKV_CHECK(!reader->Where(last).empty());
    HOTKV_CHECK(record.kind != RecordKind::kCommand || !record.args.empty());
  }
}

std::string Packed(uint8_t format, std::string_view file, std::string_view keys, std::string_view attrs) {
  std::string out(1, static_cast<char>(format));
  AppendPiece(keys, &out);
  AppendPiece(attrs, &out);
  out.append(file);
  return out;
}

std::vector<std::string> Seeds() {
  std::string resp;
  AppendRespCommand({"SELECT", "3"}, &resp);
  AppendRespCommand({"MULTI"}, &resp);
  AppendRespCommand({"SET", "k", "v"}, &resp);
  AppendRespCommand({"EXEC"}, &resp);
  std::string fbin;
  AppendLe<uint32_t>(&fbin, 2);
  AppendLe<uint32_t>(&fbin, 2);
  for (const float x : {1.0f, 2.0f, 3.0f, 4.0f}) AppendLe(&fbin, x);
  return {Packed(0, "#TS:1764500000\r\n" + resp + "SET a \"b c\"\r\n", "", ""),
          Packed(0, "{\"key\":\"k\",\"value\":\"v\"}\nwrong\n{\"index\":\"i\",\"id\":\"a\",\"vector\":[1]}", "", ""),
          Packed(3, fbin, "a\nb\n", "row\tx\ty\n0\t1\ta\n1\t2\t\n"), Packed(0, "REDIS0011", "", "")};
}

}  // namespace
}  // namespace hotkv

// The first byte is the format (0: guessed), then ids and attributes for vectors, then the file.
HOTKV_FUZZ_TARGET(import_file, hotkv::Seeds) {
  FuzzInput pieces(input);
  const auto format = static_cast<DataFormat>(pieces.Byte() % 4);
  const MemoryFile keys(pieces.Piece());
  const MemoryFile attrs(pieces.Piece());
  const MemoryFile file(pieces.Rest());
  FbinOptions options;
  options.index = "docs";
  for (const bool with_tables : {false, true}) {
    options.keys_path = with_tables ? keys.path() : "";
    options.attrs_path = with_tables ? attrs.path() : "";
    auto reader = OpenInput(file.path(), format, options);
    if (reader.ok()) ReadAll(reader->get());
    if (format != DataFormat::kFbin) break;
  }
}
