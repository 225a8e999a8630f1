#include "index/file/generation.h"

#include <cstring>
#include <span>

#include "engine/base/crc32c.h"

namespace hotkv {

namespace {

constexpr char kGraphMagic[8] = {'H', 'K', 'G', 'R', 'A', 'P', 'H', '1'};
constexpr char kIdsMagic[8] = {'H', 'K', 'I', 'D', 'S', '0', '0', '1'};

template <typename Header>
void SealWith(Header* header, const char (&magic)[8]) {
  std::memcpy(header->magic, magic, sizeof(magic));
  header->version = kGenerationVersion;
  header->header_bytes = sizeof(Header);
  header->crc = CrcOf(reinterpret_cast<const char*>(header), offsetof(Header, crc));
}

template <typename Header>
Status ReadHeader(File* file, const char (&magic)[8], Header* header) {
  HOTKV_ASSIGN_OR_RETURN(const size_t got,
                         file->ReadAt(0, {reinterpret_cast<char*>(header), sizeof(Header)}));
  const auto bad = [file](const char* what) {
    return Status::Corruption(what).At(file->path(), 0);
  };
  if (got != sizeof(Header)) return bad("the header is cut off");
  if (std::memcmp(header->magic, magic, sizeof(magic)) != 0) return bad("not such a file");
  if (header->version != kGenerationVersion) {
    return Status::Unsupported("format version " + std::to_string(header->version))
        .At(file->path(), 8);
  }
  if (header->crc != CrcOf(reinterpret_cast<const char*>(header), offsetof(Header, crc))) {
    return bad("the header does not match its checksum");
  }
  HOTKV_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  for (const FileSection& section : header->sections) {
    if (section.offset % kGenerationPage != 0 || section.offset > size ||
        section.bytes > size - section.offset) {
      return bad("a section lies beyond the end of the file");
    }
  }
  return Status::Ok();
}

template <size_t kCount>
Status CheckSums(const Mapping& mapping, const std::array<FileSection, kCount>& sections,
                 const std::string& path) {
  for (const FileSection& section : sections) {
    if (CrcOf(mapping.data() + section.offset, section.bytes) == section.crc) continue;
    return Status::Corruption("a section does not match its checksum")
        .At(path, static_cast<int64_t>(section.offset));
  }
  return Status::Ok();
}

}  // namespace

std::string GraphFileName(uint64_t generation) { return "graph." + std::to_string(generation); }
std::string IdsFileName(uint64_t generation) { return "ids." + std::to_string(generation); }

uint64_t RoundToPage(uint64_t bytes) {
  return (bytes + kGenerationPage - 1) / kGenerationPage * kGenerationPage;
}

uint32_t CrcOf(const char* data, uint64_t bytes) {
  return Crc32c({data, static_cast<size_t>(bytes)});
}

void Seal(GraphHeader* header) { SealWith(header, kGraphMagic); }
void Seal(IdsHeader* header) { SealWith(header, kIdsMagic); }

Result<std::unique_ptr<Generation>> Generation::Open(Env* env, const std::string& dir,
                                                     uint64_t generation) {
  auto opened = std::make_unique<Generation>();
  opened->graph_path = JoinPath(dir, GraphFileName(generation));
  opened->ids_path = JoinPath(dir, IdsFileName(generation));
  HOTKV_ASSIGN_OR_RETURN(const auto graph, env->Open(opened->graph_path, OpenMode::kRead));
  HOTKV_ASSIGN_OR_RETURN(const auto ids, env->Open(opened->ids_path, OpenMode::kRead));
  HOTKV_RETURN_IF_ERROR(ReadHeader(graph.get(), kGraphMagic, &opened->graph_header));
  HOTKV_RETURN_IF_ERROR(ReadHeader(ids.get(), kIdsMagic, &opened->ids_header));
  const GraphHeader& g = opened->graph_header;
  const IdsHeader& i = opened->ids_header;
  if (g.generation != generation || i.generation != generation || g.index_uid != i.index_uid ||
      g.slots != i.slots) {
    return Status::Corruption("graph and ids are not of one generation").At(opened->ids_path, 0);
  }
  HOTKV_ASSIGN_OR_RETURN(opened->graph, graph->Map(0, 0, MapMode::kPrivate));
  HOTKV_ASSIGN_OR_RETURN(opened->ids, ids->Map(0, 0, MapMode::kPrivate));
  return opened;
}

Status Generation::CheckSections() const {
  HOTKV_RETURN_IF_ERROR(CheckSums(*graph, graph_header.sections, graph_path));
  return CheckSums(*ids, ids_header.sections, ids_path);
}

IndexOptions Generation::Options() const {
  IndexOptions options;
  options.dim = graph_header.dim;
  options.metric = static_cast<Metric>(graph_header.metric);
  options.type = static_cast<ElementType>(graph_header.type);
  options.m = graph_header.m;
  options.ef_construction = graph_header.ef_construction;
  options.ef_default = graph_header.ef_default;
  options.rerank = graph_header.rerank;
  options.seed = graph_header.seed;
  return options;
}

Result<std::vector<FieldSpec>> Generation::Fields() const {
  FieldsHeader header;
  std::memcpy(&header, ids->data() + kFieldsAt, sizeof(header));
  const char* bytes = ids->data() + kFieldsAt + sizeof(header);
  const bool fits = header.bytes <= kGenerationPage - kFieldsAt - sizeof(header);
  if (!fits || header.crc != CrcOf(bytes, header.bytes)) {
    return Status::Corruption("the fields do not match their checksum")
        .At(ids_path, static_cast<int64_t>(kFieldsAt));
  }
  auto fields = DecodeFields({bytes, header.bytes});
  if (!fields.ok()) {
    return Status(fields.status().code(), fields.status().message())
        .At(ids_path, static_cast<int64_t>(kFieldsAt));
  }
  return fields;
}

}  // namespace hotkv
