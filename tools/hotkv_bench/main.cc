// hotkv-bench: the load generator. Exit codes: 0 fine, 1 the server answered with errors or too low a recall, 2 could
// not run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/hotkv_bench/ann_bench.h"
#include "tools/hotkv_bench/kv_bench.h"

namespace hotkv {
namespace {

struct Common {
  std::string url = "redis://127.0.0.1:6379";
  std::vector<int> pin;
};

void AddCommon(CLI::App* app, Common* common, LoadOptions* load, bool* json) {
  app->add_option("--url", common->url, "server: redis://[user:password@]host:port/db or unix:///path")
      ->capture_default_str();
  app->add_option("--threads", load->threads, "generator threads")->capture_default_str();
  app->add_option("--pin", common->pin, "cores for the generator's threads, as in 1 or 1,2")->delimiter(',');
  app->add_flag("--busy-poll", load->busy_poll,
                "never sleep: the generator's wake-up is no part of a latency (a core for each thread)");
  app->add_option("--seconds", load->seconds, "measured span of each run")->capture_default_str();
  app->add_option("--warmup", load->warmup_s, "seconds before it")->capture_default_str();
  app->add_option("--pid", load->server_pid,
                  "process whose CPU time is measured (default: what INFO of a local server says)");
  app->add_flag("--json", *json, "one JSON object on standard output");
}

void AddKv(CLI::App* kv, KvOptions* options) {
  kv->add_option("--clients", options->load.clients, "connections")->capture_default_str();
  kv->add_option("--pipeline", options->mix.pipeline, "commands a batch")->capture_default_str();
  kv->add_option("--keys", options->mix.keys, "number of different keys")->capture_default_str();
  kv->add_option("--dist", options->mix.distribution, "uniform or zipf:EXPONENT")->capture_default_str();
  kv->add_option("--key-size", options->mix.key_bytes, "bytes of a key")->capture_default_str();
  kv->add_option("--size", options->mix.value_bytes, "bytes of a value")->capture_default_str();
  kv->add_option("--mix", options->mix.mix,
                 "commands with weights, of: " + BuiltInCommands())
      ->capture_default_str();
  kv->add_option("--command", options->mix.command,
                 "instead of --mix one command line with {key} {counter} {value} {member}");
  kv->add_option("--fill", options->fill, "write every key once first (1 or 0)")->capture_default_str();
  kv->add_flag("--fill-only", options->fill_only, "write every key once and stop");
  kv->add_option("--seed", options->mix.seed, "of keys and values")->capture_default_str();
}

void AddAnn(CLI::App* ann, AnnOptions* options, std::string* dialect) {
  ann->add_option("--data", options->data, "STEM of STEM.base.fbin, STEM.query.fbin, STEM.gt.ibin")->required();
  ann->add_option("--queries", options->queries, "query or ex.query")->capture_default_str();
  ann->add_option("--index", options->index.name, "key of the index")->capture_default_str();
  ann->add_option("--dialect", *dialect, "vsim (HotKV) or vset (Redis vector sets)")
      ->check(CLI::IsMember({"vsim", "vset"}))
      ->capture_default_str();
  ann->add_option("--type", options->index.type, "vsim: F32 F16 Q8 Q4 BIN; vset: NOQUANT Q8 BIN");
  ann->add_option("--metric", options->index.metric, "of the index (the truth files are for COSINE)")
      ->capture_default_str();
  ann->add_option("--m", options->index.m, "links a node")->capture_default_str();
  ann->add_option("--ef-construction", options->index.ef_construction, "depth of building")
      ->capture_default_str();
  ann->add_option("--ef", options->efs, "depths of search")->delimiter(',')->capture_default_str();
  ann->add_option("--clients", options->clients, "numbers of connections that search")
      ->delimiter(',')
      ->capture_default_str();
  ann->add_option("--k", options->k, "neighbours asked for")->check(CLI::Range(1, 100))->capture_default_str();
  ann->add_option("--load-clients", options->load.clients, "connections while loading")->capture_default_str();
  ann->add_option("--batch", options->batch, "vectors in one step of loading")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  ann->add_flag("--reuse", options->reuse, "the index is loaded already");
  ann->add_flag("--keep", options->keep, "do not delete the index at the end");
  ann->add_flag("--no-recall", options->no_recall, "measure speed only; recall is shown as 0");
  ann->add_option("--recall-min", options->recall_min, "fail if no depth reaches it");
}

Status Prepare(const Common& common, LoadOptions* load) {
  HOTKV_ASSIGN_OR_RETURN(load->address, RespAddress::Parse(common.url));
  load->pin_cores = common.pin;
  if (load->clients < 1 || load->clients > 10'000 || load->threads < 1 || load->threads > 1'000) {
    return Status::InvalidArgument("--clients or --threads out of range");
  }
  if (load->seconds <= 0 || load->warmup_s < 0) {
    return Status::InvalidArgument("--seconds or --warmup out of range");
  }
  return {};
}

int ExitCode(const Status& status) {
  if (status.ok()) return 0;
  std::fflush(stdout);
  fmt::print(stderr, "hotkv-bench: {}\n", status.message());
  return status.code() == Code::kInternal ? 1 : 2;
}

int Main(int argc, char** argv) {
  CLI::App app("Load generator for HotKV and other servers that speak RESP");
  app.require_subcommand(1);
  Common common;
  KvOptions kv_options;
  AnnOptions ann_options;
  ann_options.load.clients = 4;
  ann_options.load.seconds = 4;
  std::string dialect = "vsim";
  CLI::App* kv = app.add_subcommand("kv", "commands on keys and values");
  AddCommon(kv, &common, &kv_options.load, &kv_options.json);
  AddKv(kv, &kv_options);
  CLI::App* ann = app.add_subcommand("ann", "vector search: recall and queries a second");
  AddCommon(ann, &common, &ann_options.load, &ann_options.json);
  AddAnn(ann, &ann_options, &dialect);
  CLI11_PARSE(app, argc, argv);
  if (kv->parsed()) {
    Status status = Prepare(common, &kv_options.load);
    return ExitCode(status.ok() ? RunKvBench(std::move(kv_options)) : status);
  }
  ann_options.index.dialect = dialect == "vset" ? AnnDialect::kVset : AnnDialect::kVsim;
  Status status = Prepare(common, &ann_options.load);
  return ExitCode(status.ok() ? RunAnnBench(std::move(ann_options)) : status);
}

}  // namespace
}  // namespace hotkv

int main(int argc, char** argv) { return hotkv::Main(argc, argv); }
