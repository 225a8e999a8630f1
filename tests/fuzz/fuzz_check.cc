// The fuzz targets without libFuzzer: corpus, seeds, and seeded mutations of both, in any build.
//
//   fuzz_check NAME [--corpus DIR] [--mutations N] [--seed N] [--seconds N]
//   fuzz_check NAME --write-corpus DIR     the target's own seeds as files
//   fuzz_check --list
//
// An input that crashes is left in the working directory as NAME.crash.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "engine/base/random.h"
#include "tests/fuzz/fuzz_target.h"

namespace hotkv {
namespace {

struct Target {
  FuzzFunction run = nullptr;
  FuzzSeeds seeds = nullptr;
};

std::map<std::string, Target>& Targets() {
  static std::map<std::string, Target> targets;
  return targets;
}

struct Options {
  std::string name;
  std::string corpus;
  std::string write_corpus;
  uint64_t mutations = 3000;
  uint64_t seed = 1;
  int64_t seconds = 15;
};

// ---- the input under way, for the signal handler ----

std::string crash_path;        // constant once the handler is installed
std::string_view under_way;    // written and read by the one thread

void SaveInput(int signal) {
  const int fd = ::open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd >= 0) {
    const ssize_t wrote = ::write(fd, under_way.data(), under_way.size());
    static_cast<void>(wrote);
    ::close(fd);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(const Target& target, const std::string& input) {
  // A copy of exactly this size: reads past its end are found by AddressSanitizer.
  const std::vector<char> exact(input.begin(), input.end());
  under_way = {exact.data(), exact.size()};
  target.run(under_way);
  under_way = {};
}

// ---- mutations ----

constexpr size_t kInputBytesMax = 16 * 1024;

std::string RandomNumber(Random& random) {
  std::string bytes;
  const uint64_t value = random.Next() >> random.Below(64);
  switch (random.Below(4)) {
    case 0: AppendVarint(&bytes, value); break;
    case 1: AppendLe<uint32_t>(&bytes, static_cast<uint32_t>(value)); break;
    case 2: AppendLe<uint64_t>(&bytes, random.Below(2) == 0 ? ~value : value); break;
    default: bytes = std::to_string(static_cast<int64_t>(value));
  }
  return bytes;
}

void Mutate(Random& random, const std::vector<std::string>& inputs, std::string* bytes) {
  const size_t at = random.Below(bytes->size() + 1);
  const size_t span = std::min<size_t>(random.Below(32), bytes->size() - at);
  switch (random.Below(8)) {
    case 0:
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << random.Below(8)));
      break;
    case 1: {
      constexpr unsigned char kEdges[] = {0, 1, 0x7f, 0x80, 0xff, '\r', '\n', '"', '{', '[', '*', '$'};
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>(kEdges[random.Below(std::size(kEdges))]);
      break;
    }
    case 2: bytes->erase(at, span); break;
    case 3: bytes->insert(at, bytes->substr(at, span)); break;
    case 4: bytes->resize(at); break;
    case 5: bytes->replace(at, span, RandomNumber(random)); break;
    case 6: {
      const std::string& other = inputs[random.Below(inputs.size())];
      const size_t from = random.Below(other.size() + 1);
      bytes->replace(at, span, other, from, random.Below(64));
      break;
    }
    default: bytes->insert(at, 1, static_cast<char>(random.Next()));
  }
  if (bytes->size() > kInputBytesMax) bytes->resize(kInputBytesMax);
}

std::vector<std::string> LoadInputs(const Target& target, const std::string& corpus) {
  std::vector<std::string> inputs = target.seeds();
  if (!corpus.empty() && std::filesystem::is_directory(corpus)) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  inputs.emplace_back();
  return inputs;
}

int WriteCorpus(const Target& target, const std::string& folder) {
  std::filesystem::create_directories(folder);
  size_t number = 0;
  for (const std::string& seed : target.seeds()) {
    std::ofstream(folder + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  }
  return 0;
}

void LimitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A length that is believed before the bytes are there ends in bad_alloc instead of eating the machine's memory.
  const rlimit limit = {rlim_t{4} << 30, rlim_t{4} << 30};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

int Check(const Options& options) {
  const auto found = Targets().find(options.name);
  if (found == Targets().end()) {
    std::fprintf(stderr, "no target %s\n", options.name.c_str());
    return 2;
  }
  const Target& target = found->second;
  if (!options.write_corpus.empty()) return WriteCorpus(target, options.write_corpus);
  LimitMemory();
  crash_path = options.name + ".crash";
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SaveInput);
  const std::vector<std::string> inputs = LoadInputs(target, options.corpus);
  for (const std::string& input : inputs) Run(target, input);
  Random random(options.seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  uint64_t done = 0;
  for (; done < options.mutations && std::chrono::steady_clock::now() < end; ++done) {
    std::string bytes = inputs[random.Below(inputs.size())];
    for (uint64_t n = 1 + random.Below(6); n > 0; --n) Mutate(random, inputs, &bytes);
    Run(target, bytes);
  }
  std::printf("%s: %zu inputs, %llu mutations\n", options.name.c_str(), inputs.size(),
              static_cast<unsigned long long>(done));
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--list") {
      for (const auto& [name, target] : Targets()) std::printf("%s\n", name.c_str());
      return 0;
    }
    if (!arg.starts_with("--")) {
      options.name = arg;
      continue;
    }
    ++i;
    if (arg == "--corpus") options.corpus = value;
    if (arg == "--write-corpus") options.write_corpus = value;
    if (arg == "--mutations") options.mutations = std::strtoull(value, nullptr, 10);
    if (arg == "--seed") options.seed = std::strtoull(value, nullptr, 10);
    if (arg == "--seconds") options.seconds = std::strtoll(value, nullptr, 10);
  }
  return Check(options);
}

}  // namespace

FuzzRegistration::FuzzRegistration(const char* name, FuzzFunction run, FuzzSeeds seeds) {
  Targets()[name] = {run, seeds};
}

}  // namespace hotkv

int main(int argc, char** argv) { return hotkv::Main(argc, argv); }
