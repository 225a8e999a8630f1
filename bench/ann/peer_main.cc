// ann_peer_NAME --base FILE.fbin [--variant V] [--m 16] [--ef-construction 200] [--cache FILE]
//
// Builds the index (or reads it from the cache file, which it writes otherwise), says so in one line of JSON, then
// answers one line of JSON to each line of standard input:
//   queries FILE.fbin        which queries the next lines are about
//   find K EF FILE.ibin      writes the ids that a search for each query finds
//   rate K EF SECONDS        searches in turn for that long: how many, wall and CPU time of the thread
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "bench/ann/peer.h"

namespace hotkv {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A file of float32 rows, mapped, so that it does not count as the index's memory.
class Rows {
 public:
  explicit Rows(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts = {};
    if (file < 0 || fstat(file, &facts) != 0 || facts.st_size < 8) throw std::runtime_error("cannot read " + path);
    bytes_ = static_cast<size_t>(facts.st_size);
    start_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (start_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    uint32_t head[2] = {0, 0};
    std::memcpy(head, start_, sizeof(head));
    rows_ = head[0];
    columns_ = head[1];
    if (bytes_ < sizeof(head) + rows_ * columns_ * sizeof(float)) throw std::runtime_error("too short: " + path);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { munmap(start_, bytes_); }

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  const float* Row(size_t i) const { return static_cast<const float*>(start_) + 2 + i * columns_; }

 private:
  void* start_ = nullptr;
  size_t bytes_ = 0;
  size_t rows_ = 0;
  size_t columns_ = 0;
};

// Resident bytes of no file.
long long Anonymous() {
  malloc_trim(0);
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word) {
    long long kib = 0;
    if (word == "Anonymous:" && file >> kib) return kib * 1024;
  }
  return 0;
}

struct Arguments {
  std::string base;
  std::string cache;
  PeerSetup setup;
};

Arguments Parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--base") {
      a.base = value;
    } else if (name == "--cache") {
      a.cache = value;
    } else if (name == "--variant") {
      a.setup.variant = value;
    } else if (name == "--m") {
      a.setup.m = std::stoul(value);
    } else if (name == "--ef-construction") {
      a.setup.ef_construction = std::stoul(value);
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  if (a.base.empty()) throw std::invalid_argument("--base is needed");
  return a;
}

void Find(Peer* peer, const Rows& queries, size_t k, const std::string& path) {
  std::vector<int32_t> ids(queries.rows() * k, -1);
  for (size_t i = 0; i < queries.rows(); ++i) peer->Search(queries.Row(i), k, &ids[i * k]);
  const uint32_t head[2] = {static_cast<uint32_t>(queries.rows()), static_cast<uint32_t>(k)};
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(head), sizeof(head));
  out.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(ids.size() * sizeof(int32_t)));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
  std::printf("{}\n");
}

void Rate(Peer* peer, const Rows& queries, size_t k, double seconds) {
  std::vector<int32_t> ids(k);
  size_t next = 0;
  const auto search = [&] {
    peer->Search(queries.Row(next), k, ids.data());
    next = (next + 1) % queries.rows();
  };
  for (size_t i = 0; i < 50; ++i) search();
  const auto start = Clock::now();
  const double cpu = CpuSeconds();
  size_t done = 0;
  do {
    for (size_t i = 0; i < 20; ++i) search();
    done += 20;
  } while (Seconds(start) < seconds);
  std::printf("{\"queries\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", done, Seconds(start),
              CpuSeconds() - cpu);
}

void Answer(Peer* peer) {
  std::unique_ptr<Rows> queries;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string what, path;
    size_t k = 10, ef = 0;
    double seconds = 0;
    in >> what;
    if (what == "queries" && in >> path) {
      queries = std::make_unique<Rows>(path);
      std::printf("{}\n");
    } else if (what == "find" && queries && in >> k >> ef >> path) {
      peer->SetEf(ef);
      Find(peer, *queries, k, path);
    } else if (what == "rate" && queries && in >> k >> ef >> seconds) {
      peer->SetEf(ef);
      Rate(peer, *queries, k, seconds);
    } else {
      throw std::invalid_argument("not understood: " + line);
    }
    std::fflush(stdout);
  }
}

void Run(Arguments a) {
  const Rows base(a.base);
  a.setup.dim = base.columns();
  a.setup.rows = base.rows();
  const std::unique_ptr<Peer> peer = MakePeer(a.setup);
  const long long before = Anonymous();
  const bool cached = !a.cache.empty() && access(a.cache.c_str(), R_OK) == 0;
  const auto start = Clock::now();
  const double cpu = CpuSeconds();
  if (cached) {
    peer->Load(a.cache);
  } else {
    peer->Build(base.Row(0));
  }
  const double seconds = Seconds(start);
  const double cpu_seconds = CpuSeconds() - cpu;
  const long long after = Anonymous();
  if (!cached && !a.cache.empty()) peer->Save(a.cache);
  std::printf(
      "{\"version\": \"%s\", \"cached\": %s, \"rows\": %zu, \"dim\": %zu, \"seconds\": %.3f, \"cpu_seconds\": %.3f, "
      "\"anonymous_before\": %lld, \"anonymous_after\": %lld}\n",
      peer->Version().c_str(), cached ? "true" : "false", base.rows(), base.columns(), seconds, cpu_seconds, before,
      after);
  std::fflush(stdout);
  Answer(peer.get());
}

}  // namespace
}  // namespace hotkv

int main(int argc, char** argv) {
  try {
    hotkv::Run(hotkv::Parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  return 0;
}
