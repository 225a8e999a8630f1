#include "tools/hotkv_bench/ann_bench.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "tools/common/process_stats.h"
#include "tools/common/progress.h"
#include "tools/hotkv_bench/kv_bench.h"

namespace hotkv {
namespace {

constexpr std::array kRecallTargets = {0.95, 0.99};

struct Data {
  Matrix<float> base;
  Matrix<float> queries;
  AnnTruth truth;
};

struct SearchRun {
  unsigned clients = 0;
  LoadResult result;
};

struct EfOutcome {
  unsigned ef = 0;
  double recall = 0;
  std::vector<SearchRun> runs;
};

struct LoadOutcome {
  LoadResult result;
  ResidentBytes before;
  ResidentBytes after;
};

class LoadSource : public RequestSource {
 public:
  LoadSource(const AnnOptions& options, const Matrix<float>& base, size_t from, size_t to)
      : options_(options), base_(base), next_(from), end_(to) {}

  size_t AppendBatch(std::string* out) override {
    if (next_ >= end_) return 0;
    const size_t to = std::min(end_, next_ + options_.batch);
    const size_t replies = AppendAnnLoad(options_.index, base_, next_, to, out);
    next_ = to;
    return replies;
  }

 private:
  const AnnOptions& options_;
  const Matrix<float>& base_;
  size_t next_;
  size_t end_;
};

// Goes round the prepared requests, from a random one on.
class SearchSource : public RequestSource {
 public:
  SearchSource(const std::vector<std::string>& requests, uint64_t seed) : requests_(requests) {
    next_ = Random(seed).Below(requests.size());
  }
  size_t AppendBatch(std::string* out) override {
    out->append(requests_[next_]);
    next_ = (next_ + 1) % requests_.size();
    return 1;
  }

 private:
  const std::vector<std::string>& requests_;
  size_t next_;
};

Result<Data> ReadData(const AnnOptions& options) {
  Data data;
  if (!options.queries.ends_with("query")) {
    return Status::InvalidArgument("--queries: query, or a name that ends in .query");
  }
  const std::string kind = options.queries.substr(0, options.queries.size() - 5);
  HOTKV_ASSIGN_OR_RETURN(data.queries, ReadFbin(options.data + "." + options.queries + ".fbin"));
  if (options.reuse && options.no_recall) {
    if (data.queries.rows == 0) return Status::InvalidArgument("no queries");
    return data;
  }
  HOTKV_ASSIGN_OR_RETURN(data.base, ReadFbin(options.data + ".base.fbin"));
  HOTKV_ASSIGN_OR_RETURN(data.truth.ids, ReadIbin(options.data + "." + kind + "gt.ibin"));
  if (auto cosines = ReadFbin(options.data + "." + kind + "gtcos.fbin"); cosines.ok()) {
    data.truth.cosines = std::move(cosines).value();
  }
  if (data.queries.rows == 0 || data.queries.columns != data.base.columns ||
      data.truth.ids.rows != data.queries.rows || data.truth.ids.columns < options.k) {
    return Status::InvalidArgument("base, queries and truth do not fit together");
  }
  return data;
}

ResidentBytes Resident(int pid) {
  if (pid == 0) return {};
  auto resident = ProcessResidentBytes(pid);
  return resident.ok() ? *resident : ResidentBytes{};
}

Result<LoadOutcome> LoadIndex(const AnnOptions& options, const Data& data) {
  HOTKV_ASSIGN_OR_RETURN(auto client, RespClient::Connect(options.load.address));
  HOTKV_ASSIGN_OR_RETURN(const RespValue deleted, client->CallOk({"DEL", options.index.name}));
  if (const std::string create = AnnCreateCommand(options.index); !create.empty()) {
    client->AppendRaw(create);
    HOTKV_ASSIGN_OR_RETURN(const RespValue created, client->Read());
    if (created.is_error()) return Status::Internal("creating the index: " + created.text);
  }
  LoadOutcome outcome;
  outcome.before = Resident(options.load.server_pid);
  LoadOptions load = options.load;
  load.seconds = 0;
  const uint64_t rows_a_reply = options.index.dialect == AnnDialect::kVsim ? options.batch : 1;
  ProgressBar bar("loading", data.base.rows);
  load.on_progress = [&](uint64_t replies) {
    bar.Update(std::min<uint64_t>(replies * rows_a_reply, data.base.rows));
  };
  const size_t threads = std::max(1U, std::min(load.threads, load.clients));
  HOTKV_ASSIGN_OR_RETURN(outcome.result, RunLoad(load, [&](unsigned thread) {
                           return std::make_unique<LoadSource>(options, data.base,
                                                               data.base.rows * thread / threads,
                                                               data.base.rows * (thread + 1) / threads);
                         }));
  bar.Finish();
  outcome.after = Resident(options.load.server_pid);
  outcome.result.operations = data.base.rows;
  if (outcome.result.errors > 0) return Status::Internal("loading: " + outcome.result.first_error);
  return outcome;
}

std::vector<std::string> SearchRequests(const AnnOptions& options, const Data& data, unsigned ef) {
  std::vector<std::string> requests(data.queries.rows);
  for (size_t i = 0; i < requests.size(); ++i) {
    AppendAnnSearch(options.index, data.queries.Row(i), options.k, ef, &requests[i]);
  }
  return requests;
}

Result<double> MeasureRecall(const AnnOptions& options, const Data& data,
                             const std::vector<std::string>& requests) {
  HOTKV_ASSIGN_OR_RETURN(auto client, RespClient::Connect(options.load.address));
  double sum = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    client->AppendRaw(requests[i]);
    HOTKV_ASSIGN_OR_RETURN(const RespValue reply, client->Read());
    HOTKV_ASSIGN_OR_RETURN(const auto ids, AnnIdsOfReply(reply));
    sum += AnnRecall(data.truth, i, options.k, ids);
  }
  return sum / static_cast<double>(requests.size());
}

Result<EfOutcome> MeasureEf(const AnnOptions& options, const Data& data, unsigned ef) {
  const std::vector<std::string> requests = SearchRequests(options, data, ef);
  EfOutcome outcome;
  outcome.ef = ef;
  if (!options.no_recall) {
    HOTKV_ASSIGN_OR_RETURN(outcome.recall, MeasureRecall(options, data, requests));
  }
  for (const unsigned clients : options.clients) {
    LoadOptions load = options.load;
    load.clients = clients;
    SearchRun run;
    run.clients = clients;
    HOTKV_ASSIGN_OR_RETURN(run.result, RunLoad(load, [&](unsigned thread) {
                             return std::make_unique<SearchSource>(requests, thread + 1);
                           }));
    if (run.result.errors > 0) return Status::Internal("searching: " + run.result.first_error);
    outcome.runs.push_back(std::move(run));
  }
  return outcome;
}

double PerCpuSecond(const LoadResult& result) {
  if (result.server_cpu_ns == 0) return 0;
  return static_cast<double>(result.operations) / (static_cast<double>(result.server_cpu_ns) / 1e9);
}

// Queries a second at a recall, for the clients'th entry of the list of numbers of clients; by CPU second if asked.
double AtRecall(const std::vector<EfOutcome>& outcomes, size_t which, double recall, bool by_cpu) {
  std::vector<RecallPoint> points;
  for (const EfOutcome& each : outcomes) {
    const LoadResult& result = each.runs[which].result;
    points.push_back({each.recall, by_cpu ? PerCpuSecond(result) : result.PerSecond()});
  }
  return InterpolateAtRecall(std::move(points), recall);
}

void PrintLoad(const Data& data, const LoadOutcome& load) {
  const double rows = static_cast<double>(data.base.rows);
  fmt::print("loaded {} vectors of {} in {:.1f} s: {:.0f}/s", data.base.rows, data.base.columns,
             load.result.seconds, load.result.PerSecond());
  if (load.result.server_cpu_ns > 0) {
    fmt::print(", {:.0f} a server CPU second; resident growth {:.0f} bytes a vector ({:.0f} not of files)",
               PerCpuSecond(load.result),
               (static_cast<double>(load.after.total) - static_cast<double>(load.before.total)) / rows,
               (static_cast<double>(load.after.anonymous) - static_cast<double>(load.before.anonymous)) / rows);
  }
  fmt::print("\n");
}

void PrintSearches(const AnnOptions& options, const std::vector<EfOutcome>& outcomes) {
  fmt::print("{:>5} {:>9} {:>8} {:>11} {:>9} {:>9} {:>13} {:>12}\n", "ef", "recall@" + std::to_string(options.k),
             "clients", "queries/s", "p50 ms", "p99 ms", "CPU us/query", "q/CPU second");
  for (const EfOutcome& each : outcomes) {
    for (const SearchRun& run : each.runs) {
      const Histogram& latency = run.result.batch_latency_ns;
      fmt::print("{:>5} {:>9.4f} {:>8} {:>11.0f} {:>9.3f} {:>9.3f} {:>13.1f} {:>12.0f}\n", each.ef, each.recall,
                 run.clients, run.result.PerSecond(), static_cast<double>(latency.Percentile(50)) / 1e6,
                 static_cast<double>(latency.Percentile(99)) / 1e6, run.result.ServerCpuUsPerOperation(),
                 PerCpuSecond(run.result));
    }
  }
  for (const double target : kRecallTargets) {
    for (size_t i = 0; i < options.clients.size(); ++i) {
      const double rate = AtRecall(outcomes, i, target, false);
      if (rate < 0) continue;
      fmt::print("at recall {:.2f}, {} clients: {:.0f} queries/s, {:.0f} a server CPU second\n", target,
                 options.clients[i], rate, std::max(0.0, AtRecall(outcomes, i, target, true)));
    }
  }
}

nlohmann::json LoadJson(const Data& data, const LoadOutcome& load) {
  return {{"vectors", data.base.rows},
          {"dim", data.base.columns},
          {"seconds", load.result.seconds},
          {"vectors_per_second", load.result.PerSecond()},
          {"vectors_per_server_cpu_second", PerCpuSecond(load.result)},
          {"resident_bytes_before", load.before.total},
          {"resident_bytes_after", load.after.total},
          {"resident_anonymous_before", load.before.anonymous},
          {"resident_anonymous_after", load.after.anonymous}};
}

nlohmann::json SearchesJson(const AnnOptions& options, const std::vector<EfOutcome>& outcomes) {
  nlohmann::json json;
  json["searches"] = nlohmann::json::array();
  json["at_recall"] = nlohmann::json::array();
  for (const EfOutcome& each : outcomes) {
    for (const SearchRun& run : each.runs) {
      json["searches"].push_back({{"ef", each.ef},
                                  {"recall", each.recall},
                                  {"clients", run.clients},
                                  {"queries_per_second", run.result.PerSecond()},
                                  {"latency_us", LatencyJson(run.result.batch_latency_ns)},
                                  {"server_cpu_us_per_query", run.result.ServerCpuUsPerOperation()},
                                  {"queries_per_server_cpu_second", PerCpuSecond(run.result)}});
    }
  }
  for (const double target : kRecallTargets) {
    for (size_t i = 0; i < options.clients.size(); ++i) {
      const double rate = AtRecall(outcomes, i, target, false);
      if (rate < 0) continue;
      json["at_recall"].push_back({{"recall", target},
                                   {"clients", options.clients[i]},
                                   {"queries_per_second", rate},
                                   {"queries_per_server_cpu_second", AtRecall(outcomes, i, target, true)}});
    }
  }
  return json;
}

nlohmann::json SetupJson(const AnnOptions& options, const ServerFacts& facts) {
  return {{"bench", "ann"},
          {"server", ServerJson(facts)},
          {"data", options.data},
          {"queries", options.queries},
          {"dialect", options.index.dialect == AnnDialect::kVsim ? "vsim" : "vset"},
          {"type", options.index.type},
          {"m", options.index.m},
          {"ef_construction", options.index.ef_construction},
          {"k", options.k}};
}

}  // namespace

Status RunAnnBench(AnnOptions options) {
  HOTKV_ASSIGN_OR_RETURN(const Data data, ReadData(options));
  HOTKV_ASSIGN_OR_RETURN(const ServerFacts facts, AskServer(options.load.address));
  if (options.load.server_pid == 0) options.load.server_pid = facts.pid;
  options.index.dim = data.queries.columns;
  nlohmann::json json = SetupJson(options, facts);
  if (!options.reuse) {
    HOTKV_ASSIGN_OR_RETURN(const LoadOutcome load, LoadIndex(options, data));
    json["load"] = LoadJson(data, load);
    if (!options.json) PrintLoad(data, load);
  }
  std::vector<EfOutcome> outcomes;
  double best_recall = 0;
  for (const unsigned ef : options.efs) {
    HOTKV_ASSIGN_OR_RETURN(EfOutcome outcome, MeasureEf(options, data, ef));
    best_recall = std::max(best_recall, outcome.recall);
    outcomes.push_back(std::move(outcome));
  }
  if (options.json) {
    json.update(SearchesJson(options, outcomes));
    fmt::print("{}\n", json.dump());
  } else {
    PrintSearches(options, outcomes);
  }
  if (!options.keep) {
    HOTKV_ASSIGN_OR_RETURN(auto client, RespClient::Connect(options.load.address));
    HOTKV_ASSIGN_OR_RETURN(const RespValue deleted, client->CallOk({"DEL", options.index.name}));
  }
  if (best_recall < options.recall_min) {
    return Status::Internal(fmt::format("recall {:.4f} is below {:.4f}", best_recall, options.recall_min));
  }
  return {};
}

}  // namespace hotkv
