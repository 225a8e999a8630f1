// hotkv-tool log dump: the effects in a directory's log, readable.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/tx/effect.h"
#include "engine/tx/epoch.h"
#include "persistence/log/log_reader.h"
#include "tools/hotkv_tool/byte_stream.h"
#include "tools/hotkv_tool/log_scan.h"
#include "tools/hotkv_tool/subcommands.h"

namespace hotkv {

namespace {

using Json = nlohmann::ordered_json;

struct LogDumpArguments {
  CommonOptions common;
  std::string output = "-";
  uint64_t from_epoch = 0;
  uint64_t to_epoch = std::numeric_limits<uint64_t>::max();
  bool blocks_only = false;
};

std::string_view KindName(EffectKind kind) {
  switch (kind) {
    case EffectKind::kSetString:
    case EffectKind::kSetStringExpire: return "set";
    case EffectKind::kSetInt:
    case EffectKind::kSetIntExpire: return "set-int";
    case EffectKind::kDelete: return "delete";
    case EffectKind::kExpire: return "expire";
    case EffectKind::kAppend: return "append";
    case EffectKind::kSetRange: return "set-range";
    case EffectKind::kFlushDb: return "flush-db";
    case EffectKind::kSwapDb: return "swap-db";
    case EffectKind::kLink: return "link";
    case EffectKind::kRestore: return "restore";
    case EffectKind::kObjectCreate: return "object-create";
    case EffectKind::kObjectDrop: return "object-drop";
    case EffectKind::kObjectChange: return "object-change";
  }
  return "unknown";
}

Json EffectJson(const Effect& e) {
  Json json = {{"epoch", EpochOf(e.lsn)},
               {"count", e.lsn & kLsnCountMask},
               {"worker", e.worker},
               {"db", e.db},
               {"kind", KindName(e.kind)}};
  if (IsKeyedEffect(e.kind)) json["key"] = JsonBytes(e.key);
  if (e.object_id != 0) json["object"] = e.object_id;
  if (IsStripeWideEffect(e.kind)) json["stripe"] = e.number;
  if (e.kind == EffectKind::kSetRange) json["offset"] = e.number;
  if (e.kind == EffectKind::kSwapDb) json["other_db"] = e.other_db;
  if (e.kind == EffectKind::kSetInt || e.kind == EffectKind::kSetIntExpire) json["integer"] = e.integer;
  if (!e.bytes.empty()) json["bytes"] = JsonBytes(e.bytes);
  if (e.expire_at_ms != 0) json["expire_at_ms"] = e.expire_at_ms;
  return json;
}

Json BlockJson(const LogBlockRef& block) {
  return {{"block", block.header.epoch},
          {"segment", SegmentFileName(block.segment)},
          {"offset", block.offset},
          {"bytes", block.header.block_bytes},
          {"wall_ms", block.header.wall_ms},
          {"durable_epoch", block.header.durable_epoch},
          {"start", block.header.start},
          {"groups", block.header.groups.size()},
          {"clean_stop", block.header.clean_stop}};
}

class LogDump {
 public:
  LogDump(const LogDumpArguments& arguments, StoredDirectory* directory, OutputStream* output)
      : arguments_(arguments), reader_(directory->env(), directory->paths().log), output_(output) {}

  Status Block(const LogBlockRef& block) {
    const uint64_t epoch = block.header.epoch;
    if (epoch < arguments_.from_epoch || epoch > arguments_.to_epoch) return Status::Ok();
    std::string* out = output_->buffer();
    if (arguments_.common.json) {
      *out += BlockJson(block).dump() + "\n";
    } else {
      *out += fmt::format("epoch {} {} @{} {} bytes, {}, durable {}{}\n", epoch, SegmentFileName(block.segment),
                          block.offset, block.header.block_bytes,
                          TimeText(static_cast<int64_t>(block.header.wall_ms)), block.header.durable_epoch,
                          block.header.clean_stop ? ", clean stop" : "");
    }
    if (!arguments_.blocks_only) HOTKV_RETURN_IF_ERROR(Effects(block));
    return output_->MaybeFlush();
  }

 private:
  // In the order of their lsn over all groups; bodies keep what they point into.
  Status Effects(const LogBlockRef& block) {
    std::vector<std::string> bodies;
    std::vector<Effect> effects;
    bodies.reserve(block.header.groups.size());
    for (const GroupEntry& group : block.header.groups) {
      HOTKV_ASSIGN_OR_RETURN(std::string body, reader_.ReadGroup(GroupRefOf(block, group)));
      bodies.push_back(std::move(body));
      ByteReader bytes(bodies.back());
      Effect effect;
      while (!bytes.empty()) {
        if (!DecodeEffect(&bytes, block.header.epoch, &effect)) {
          return Status::Corruption(fmt::format("epoch {}: a record that cannot be decoded", block.header.epoch))
              .At(SegmentFileName(block.segment), static_cast<int64_t>(block.offset + group.offset));
        }
        effects.push_back(effect);
      }
    }
    std::stable_sort(effects.begin(), effects.end(), [](const Effect& a, const Effect& b) {
      return a.lsn != b.lsn ? a.lsn < b.lsn : a.worker < b.worker;
    });
    for (const Effect& effect : effects) {
      if (arguments_.common.json) {
        *output_->buffer() += EffectJson(effect).dump() + "\n";
      } else {
        *output_->buffer() += "  " + EffectToString(effect) + "\n";
      }
      HOTKV_RETURN_IF_ERROR(output_->MaybeFlush());
    }
    return Status::Ok();
  }

  const LogDumpArguments& arguments_;
  LogReader reader_;
  OutputStream* const output_;
};

int RunLogDump(const LogDumpArguments& arguments) {
  const CommonOptions& common = arguments.common;
  auto directory = StoredDirectory::Open(common.dir, StoredDirectory::Locking::kRefuseLocked);
  if (!directory.ok()) return ReportFailure(common, directory.status());
  auto output = OutputStream::Create(arguments.output);
  if (!output.ok()) return ReportFailure(common, output.status());
  LogDump dump(arguments, directory->get(), output->get());
  Problems problems;
  std::vector<std::string> notes;
  const Status status = ScanAllRanges(directory->get(), [&](const LogBlockRef& block) { return dump.Block(block); },
                                      &problems, &notes);
  const Status written = status.ok() ? (*output)->Finish() : status;
  if (!written.ok()) return ReportFailure(common, written);
  for (const std::string& note : notes) fmt::print(stderr, "{}\n", note);
  for (const std::string& text : problems.first()) fmt::print(stderr, "hotkv-tool: {}\n", text);
  return problems.empty() ? kExitFine : kExitProblems;
}

}  // namespace

Subcommand AddLogDump(CLI::App* root) {
  auto arguments = std::make_shared<LogDumpArguments>();
  CLI::App* log = root->add_subcommand("log", "the epoch log");
  log->require_subcommand(1);
  CLI::App* dump = log->add_subcommand("dump", "its effects, readable");
  dump->add_option("--dir", arguments->common.dir, "data directory of a stopped server")->required();
  dump->add_option("--from-epoch", arguments->from_epoch, "first epoch");
  dump->add_option("--to-epoch", arguments->to_epoch, "last epoch");
  dump->add_flag("--blocks", arguments->blocks_only, "only the blocks, not their effects");
  dump->add_option("--output", arguments->output, "file; - is standard output")->capture_default_str();
  dump->add_flag("--json", arguments->common.json, "one JSON object a line");
  return {dump, [arguments] { return RunLogDump(*arguments); }};
}

}  // namespace hotkv
