// An engine in memory with commands, clients, workers and a clock that the test sets. No server, no
// files.
//
//   EngineFixture db;
//   CHECK(db("SET k v") == "+OK");
//   CHECK(db.Call({"GET", "k"}) == "$v");
//
// Replies as text: +simple, -error, :integer, $bulk, ,double, #bool, nil, [a, b, ...], {key, value,
// ...} for a RESP3 map. Every reply is checked to be exactly one whole RESP value.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/number.h"
#include "engine/base/resp_client.h"
#include "engine/commands/command_context.h"
#include "engine/commands/command_spec.h"
#include "engine/tx/client_state.h"
#include "engine/tx/engine.h"
#include "engine/tx/executor.h"
#include "index/expiry.h"

namespace hotkv {

struct EngineFixtureOptions {
  unsigned stripe_bits = 4;
  unsigned workers = 1;
  unsigned databases = 16;
  uint64_t hash_seed = 1;
  bool log_effects = true;
  int resp_version = 2;
  std::vector<std::span<const CommandSpec>> more_families = {};
};

// Effects of closed epochs in lsn order, with the bytes that they point into.
struct EffectLog {
  std::deque<std::string> bodies;
  std::vector<Effect> effects;
};

class EngineFixture {
 public:
  static constexpr int64_t kStartMs = 1'700'000'000'000;

  explicit EngineFixture(const EngineFixtureOptions& options = {});

  Engine& engine() { return *engine_; }
  const CommandTable& commands() const { return table_; }
  // Clients are made when first asked for.
  ClientState& client(size_t i);

  int64_t now_ms() const { return now_ms_; }
  void SetNow(int64_t now_ms);
  void Advance(int64_t ms) { SetNow(now_ms_ + ms); }
  // Active expiry of all workers, to the end of its cycle.
  void ExpireNow();

  // Words are separated by blanks; "" is an empty word.
  std::string operator()(std::string_view line) { return As(0, line); }
  std::string As(size_t client, std::string_view line);
  std::string Call(std::initializer_list<std::string_view> words) {
    return Dispatch(0, 0, {words.begin(), words.size()});
  }
  std::string Dispatch(size_t client, unsigned worker, Args args);
  // Nothing where the command waits for another thread's work and is to be called again.
  std::optional<std::string> TryAs(size_t client, std::string_view line);
  // The reply's bytes of the last command.
  const std::string& raw() const { return raw_; }

  // Closes the epoch and takes what was logged since the last call.
  EffectLog TakeLog();
  // The log's effects into another engine; fails the test when one does not apply.
  static void Replay(const EffectLog& log, Engine* into);

 private:
  DispatchResult::Kind Run(size_t client, unsigned worker, Args args);
  std::string Reply() const;  // raw_ as text

  const EngineFixtureOptions options_;
  CommandTable table_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::deque<ClientState> clients_;
  BlockPool pool_;
  int64_t now_ms_ = kStartMs;
  std::string raw_;
};

std::vector<std::string> SplitWords(std::string_view line);
// The elements of a flat array reply as the fixture shows it; none may hold ", ".
std::vector<std::string> SplitArray(std::string_view reply);

namespace fixture_internal {

inline std::vector<std::span<const CommandSpec>> Families(const EngineFixtureOptions& options) {
  std::vector<std::span<const CommandSpec>> families{StringCommands(), GenericCommands(),
                                                     TransactionCommands(), VectorCommands()};
  families.insert(families.end(), options.more_families.begin(), options.more_families.end());
  return families;
}

// separator: between the elements of an aggregate.
inline std::string Render(const RespValue& value, std::string_view separator = ", ");

inline std::string RenderItems(const RespValue& value, std::string_view separator, char open,
                               char close) {
  std::string text(1, open);
  for (const RespValue& item : value.items) {
    if (text.size() > 1) text.append(separator);
    text += Render(item, separator);
  }
  return text + close;
}

inline std::string Render(const RespValue& value, std::string_view separator) {
  switch (value.type) {
    case RespType::kNull:
      return "nil";
    case RespType::kSimple:
      return "+" + value.text;
    case RespType::kError:
      return "-" + value.text;
    case RespType::kInteger:
      return ":" + std::to_string(value.integer);
    case RespType::kBulk:
      return "$" + value.text;
    case RespType::kArray:
      return RenderItems(value, separator, '[', ']');
    case RespType::kMap:
      return RenderItems(value, separator, '{', '}');
    case RespType::kSet:
      return RenderItems(value, separator, '<', '>');
    case RespType::kPush:
      return RenderItems(value, separator, '(', ')');
    case RespType::kDouble:
      return "," + DoubleToText(value.number);
    case RespType::kBoolean:
      return value.integer != 0 ? "#t" : "#f";
    case RespType::kBigNumber:
      return value.text;
    case RespType::kVerbatim:
      return "=" + value.text;
  }
  return "?";
}

}  // namespace fixture_internal

inline EngineFixture::EngineFixture(const EngineFixtureOptions& options)
    : options_(options), table_(fixture_internal::Families(options)) {
  EngineOptions engine_options;
  engine_options.keyspace.stripe_bits = options.stripe_bits;
  engine_options.keyspace.hash_seed = options.hash_seed;
  engine_options.keyspace.databases = options.databases;
  engine_options.workers = options.workers;
  engine_ = std::make_unique<Engine>(engine_options, &table_);
  engine_->log_effects = options.log_effects;
  for (unsigned i = 0; i < options.workers; ++i) {
    executors_.push_back(std::make_unique<Executor>(engine_.get(), &engine_->worker(i)));
  }
  SetNow(kStartMs);
}

inline ClientState& EngineFixture::client(size_t i) {
  while (clients_.size() <= i) clients_.emplace_back().id = clients_.size();
  return clients_[i];
}

inline void EngineFixture::SetNow(int64_t now_ms) {
  now_ms_ = now_ms;
  ExpiryBook::OverrideNowForTest(now_ms);
  for (unsigned i = 0; i < engine_->workers(); ++i) engine_->worker(i).now_ms = now_ms;
}

inline void EngineFixture::ExpireNow() {
  for (unsigned i = 0; i < engine_->workers(); ++i) {
    WorkerState& worker = engine_->worker(i);
    worker.expire_next_ms = 0;
    constexpr int64_t kBudgetNs = 1'000'000'000;
    while (engine_->TurnEnd(worker, kBudgetNs)) {
    }
  }
}

inline std::vector<std::string> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(' ', at)) != std::string_view::npos) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    words.emplace_back(word == "\"\"" ? std::string_view() : word);
    at = end;
  }
  return words;
}

inline std::vector<std::string> SplitArray(std::string_view reply) {
  REQUIRE(reply.size() >= 2);
  REQUIRE(reply.front() == '[');
  reply = reply.substr(1, reply.size() - 2);
  std::vector<std::string> elements;
  while (!reply.empty()) {
    const size_t end = std::min(reply.find(", "), reply.size());
    elements.emplace_back(reply.substr(0, end));
    reply.remove_prefix(std::min(end + 2, reply.size()));
  }
  return elements;
}

inline std::string EngineFixture::As(size_t client, std::string_view line) {
  const std::vector<std::string> words = SplitWords(line);
  const std::vector<std::string_view> args(words.begin(), words.end());
  return Dispatch(client, 0, args);
}

inline DispatchResult::Kind EngineFixture::Run(size_t client_index, unsigned worker, Args args) {
  OutputChain chain(&pool_);
  ReplyWriter reply(&chain, options_.resp_version);
  Executor& executor = *executors_[worker];
  engine_->gate().Enter(worker);
  const DispatchResult result =
      executor.Dispatch(client(client_index), executor.Lookup(args), args, reply);
  executor.CountFinished();
  engine_->gate().Leave(worker);
  raw_ = chain.ToString();
  return result.kind;
}

inline std::optional<std::string> EngineFixture::TryAs(size_t client, std::string_view line) {
  const std::vector<std::string> words = SplitWords(line);
  const std::vector<std::string_view> args(words.begin(), words.end());
  if (Run(client, 0, args) == DispatchResult::Kind::kDone) return Reply();
  REQUIRE(raw_.empty());
  return std::nullopt;
}

inline std::string EngineFixture::Dispatch(size_t client_index, unsigned worker, Args args) {
  REQUIRE(Run(client_index, worker, args) == DispatchResult::Kind::kDone);
  return Reply();
}

inline std::string EngineFixture::Reply() const {
  RespReplyParser parser;
  parser.Feed(raw_);
  Result<std::optional<RespValue>> value = parser.Next();
  REQUIRE(value.ok());
  REQUIRE(value->has_value());
  Result<std::optional<RespValue>> more = parser.Next();
  REQUIRE(more.ok());
  REQUIRE_FALSE(more->has_value());
  return fixture_internal::Render(**value);
}

inline EffectLog EngineFixture::TakeLog() {
  EffectLog log;
  EpochClock& epochs = engine_->epochs();
  const uint64_t epoch = epochs.Close();
  for (unsigned w = 0; w < epochs.workers(); ++w) {
    EffectBuffer& buffer = epochs.Buffer(w, epoch);
    for (size_t at = 0; at < buffer.bytes.size();) {
      EffectBuffer::RecordHeader header;
      std::memcpy(&header, buffer.bytes.data() + at, sizeof(header));
      at += sizeof(header);
      std::string& body = log.bodies.emplace_back(buffer.bytes.view().substr(at, header.size));
      at += header.size;
      if (header.large != 0) body.append(buffer.large[header.large - 1].view());
      ByteReader reader(body);
      Effect effect;
      REQUIRE(DecodeEffect(&reader, epoch, &effect));
      REQUIRE(reader.empty());
      log.effects.push_back(effect);
    }
    buffer.Clear();
  }
  epochs.Release(epoch);
  std::stable_sort(log.effects.begin(), log.effects.end(), [](const Effect& a, const Effect& b) {
    return a.lsn != b.lsn ? a.lsn < b.lsn : a.worker < b.worker;
  });
  return log;
}

inline void EngineFixture::Replay(const EffectLog& log, Engine* into) {
  for (const Effect& effect : log.effects) {
    const Status status = into->Replay(effect);
    if (!status.ok()) FAIL("replay: " << status.ToString());
  }
}

}  // namespace hotkv
