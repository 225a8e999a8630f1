// Commands that walk a database: KEYS, SCAN, RANDOMKEY. They hold one stripe's lock at a time.
#include <charconv>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/glob.h"
#include "engine/base/random.h"
#include "engine/commands/generic_commands.h"
#include "engine/tx/engine.h"

namespace hotkv {

namespace {

constexpr int64_t kScanCountDefault = 10;

Keyspace::ScanHooks HooksFor(CommandContext& ctx, std::function<void(const Entry&)> visit_live) {
  Keyspace::ScanHooks hooks;
  hooks.lock = [&ctx](Stripe& stripe) { ctx.txn.LockStripe(stripe); };
  hooks.unlock = [&ctx](Stripe& stripe) { ctx.txn.UnlockStripe(stripe); };
  hooks.visit = [now_ms = ctx.now_ms(), visit = std::move(visit_live)](Stripe&, Entry* entry) {
    if (!entry->ExpiredAt(now_ms)) visit(*entry);
  };
  return hooks;
}

// As strtoul reads it, which is what Redis does: nothing is 0, a minus wraps round.
std::optional<uint64_t> ParseCursor(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() && !negative) return 0;
  uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return negative ? ~cursor + 1 : cursor;
}

struct ScanOptions {
  int64_t count = kScanCountDefault;
  std::optional<std::string_view> pattern;
  std::optional<std::string> type;  // in lower case
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower;
}

std::optional<ScanOptions> ParseScanOptions(CommandContext& ctx) {
  ScanOptions options;
  for (size_t i = 2; i < ctx.argc(); i += 2) {
    const bool has_value = i + 1 < ctx.argc();
    if (ctx.Is(i, "COUNT") && has_value) {
      if (!ctx.ParseInt(i + 1, &options.count)) return std::nullopt;
    } else if (ctx.Is(i, "MATCH") && has_value) {
      options.pattern = ctx.arg(i + 1);
    } else if (ctx.Is(i, "TYPE") && has_value) {
      options.type = Lower(ctx.arg(i + 1));
    } else {
      ctx.SyntaxError();
      return std::nullopt;
    }
    if (options.count < 1) {
      ctx.SyntaxError();
      return std::nullopt;
    }
  }
  return options;
}

Random& ThreadRandom() {
  thread_local Random random(static_cast<uint64_t>(Clock::NowUs()) ^
                             reinterpret_cast<uintptr_t>(&random));
  return random;
}

// A stripe, chosen with the weight of its keys; null when the database is empty.
Stripe* RandomStripe(CommandContext& ctx) {
  Keyspace& keyspace = ctx.txn.keyspace();
  const ReclaimPin pin(ctx.engine.reclaim(), ctx.worker.reclaim_slot);
  const uint64_t size = keyspace.Size(ctx.db());
  if (size == 0) return nullptr;
  uint64_t left = ThreadRandom().Below(size);
  Stripe* last = nullptr;
  for (uint32_t i = 0; i < keyspace.stripe_count(); ++i) {
    const Table* table = keyspace.stripe(i).table(ctx.db());
    const uint64_t here = table == nullptr ? 0 : table->size();
    if (here != 0) last = &keyspace.stripe(i);
    if (left < here) return last;
    left -= here;
  }
  return last;  // keys went while we counted
}

// An entry of a table that is not empty, all with the same chance.
const Entry* RandomEntry(Table* table) {
  for (;;) {
    Chunk& chunk = table->chunks()[ThreadRandom().Below(table->chunk_count())];
    const auto slot = static_cast<unsigned>(ThreadRandom().Below(Chunk::kSlots));
    if (chunk.tags[slot] != 0) return chunk.slots[slot];
  }
}

}  // namespace

void KeysCommand(CommandContext& ctx) {
  const std::string_view pattern = ctx.arg(1);
  const ReplyWriter::Deferred array = ctx.reply.DeferArray();
  size_t count = 0;
  ctx.txn.keyspace().Scan(0, ctx.db(), SIZE_MAX, HooksFor(ctx, [&](const Entry& entry) {
                            if (!GlobMatches(pattern, entry.key())) return;
                            ctx.reply.Bulk(entry.key());
                            ++count;
                          }));
  ctx.reply.Close(array, count);
}

void ScanCommand(CommandContext& ctx) {
  const std::optional<uint64_t> cursor = ParseCursor(ctx.arg(1));
  if (!cursor) {
    ctx.reply.Error("ERR invalid cursor");
    return;
  }
  const std::optional<ScanOptions> options = ParseScanOptions(ctx);
  if (!options) return;
  // The cursor is replied first but known last, so the keys are kept here meanwhile.
  std::string bytes;
  std::vector<size_t> ends;
  const auto visit = [&](const Entry& entry) {
    if (options->type && TypeName(entry.type()) != *options->type) return;
    if (options->pattern && !GlobMatches(*options->pattern, entry.key())) return;
    bytes.append(entry.key());
    ends.push_back(bytes.size());
  };
  const uint64_t next = ctx.txn.keyspace().Scan(
      *cursor, ctx.db(), static_cast<size_t>(options->count), HooksFor(ctx, visit));
  ctx.reply.ArrayHeader(2);
  ctx.reply.BulkInt(static_cast<int64_t>(next));
  ctx.reply.ArrayHeader(ends.size());
  size_t begin = 0;
  for (const size_t end : ends) {
    ctx.reply.Bulk(std::string_view(bytes).substr(begin, end - begin));
    begin = end;
  }
}

void RandomKeyCommand(CommandContext& ctx) {
  constexpr unsigned kTriesMax = 100;  // where nearly all keys have expired but are still there
  for (unsigned i = 0; i < kTriesMax; ++i) {
    Stripe* stripe = RandomStripe(ctx);
    if (stripe == nullptr) break;
    std::optional<std::string> key;
    ctx.txn.LockStripe(*stripe);
    Table* table = stripe->table(ctx.db());
    if (table != nullptr && table->size() != 0) {
      const Entry* entry = RandomEntry(table);
      if (!entry->ExpiredAt(ctx.now_ms())) key = entry->key();
    }
    ctx.txn.UnlockStripe(*stripe);
    if (key) {
      ctx.reply.Bulk(*key);
      return;
    }
  }
  ctx.reply.Null();
}

}  // namespace hotkv
