#include "index/cold_rows.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace hotkv {
namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kRowBytes = 2 * kPage;
constexpr uint32_t kRows = 8192;  // 64 MiB
constexpr uint32_t kApart = 64;

// A file of rows and its mapping; the file has no name any more.
class RowFile {
 public:
  RowFile() {
    char name[] = "/var/tmp/hotkv-cold-XXXXXX";
    fd_ = mkstemp(name);
    REQUIRE(fd_ >= 0);
    unlink(name);
    const std::vector<char> row(kRowBytes, 'r');
    for (uint32_t i = 0; i < kRows; ++i) {
      REQUIRE(write(fd_, row.data(), row.size()) == static_cast<ssize_t>(row.size()));
    }
    REQUIRE(fdatasync(fd_) == 0);
    void* at = mmap(nullptr, size_t{kRows} * kRowBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    REQUIRE(at != MAP_FAILED);
    memory_ = static_cast<char*>(at);
    slabs_.Adopt(memory_, 1);
  }
  ~RowFile() {
    munmap(memory_, size_t{kRows} * kRowBytes);
    close(fd_);
  }
  const SlabArray& rows() const { return slabs_; }

  // False where the file system keeps all in memory.
  bool Drop() {
    constexpr int kQuietTurns = 20;  // what is just being read is neither told nor dropped
    int quiet = 0;
    for (int turn = 0; turn < 500 && quiet < kQuietTurns; ++turn) {
      REQUIRE(madvise(memory_, size_t{kRows} * kRowBytes, MADV_DONTNEED) == 0);
      REQUIRE(posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0);
      quiet = PagesInMemory() == 0 ? quiet + 1 : 0;
      usleep(10'000);
    }
    return quiet == kQuietTurns;
  }
  size_t PagesInMemory() const {
    std::vector<unsigned char> pages(size_t{kRows} * kRowBytes / kPage);
    REQUIRE(mincore(memory_, pages.size() * kPage, pages.data()) == 0);
    return static_cast<size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
  }
  bool InMemory(uint32_t row) const {
    unsigned char pages[kRowBytes / kPage];
    REQUIRE(mincore(memory_ + size_t{row} * kRowBytes, kRowBytes, pages) == 0);
    for (const unsigned char page : pages) {
      if ((page & 1) == 0) return false;
    }
    return true;
  }

 private:
  static SlabGeometry Geometry() {
    return SlabGeometry::For(kRowBytes, size_t{kRows} * kRowBytes, size_t{kRows} * kRowBytes);
  }
  int fd_ = -1;
  char* memory_ = nullptr;
  SlabArray slabs_{Geometry(), {}};
};

void Read(const SlabArray& rows, uint32_t first, uint32_t count) {
  ColdRows reading(&rows, kRowBytes);
  for (uint32_t i = 0; i < count; ++i) {
    const volatile char* row = rows.Row(first + i * kApart);
    REQUIRE(row[0] == 'r');
    REQUIRE(row[kRowBytes - 1] == 'r');
  }
  reading.CountRead(count);
}

bool IsCold(const SlabArray& rows) { return ColdRows(&rows, kRowBytes).cold(); }

TEST_CASE("cold rows: slow readings make the next ones ask for their rows together, until none waits") {
  RowFile file;
  const SlabArray& rows = file.rows();
  if (!file.Drop()) {
    WARN("this file system keeps its files in memory: nothing to test");
    return;
  }
  CHECK_FALSE(IsCold(rows));
  Read(rows, 0, 100);
  REQUIRE(IsCold(rows));
  CHECK_FALSE(ColdRows(nullptr, kRowBytes).cold());  // of private memory

  REQUIRE(file.Drop());
  {
    ColdRows reading(&rows, kRowBytes);
    for (uint32_t row = 0; row < 50 * kApart; row += kApart) {
      reading.Ask(row);
      reading.Ask(row + 1);  // its neighbour, in the same call
    }
    reading.Send();
    const auto arrived = [&] {
      for (uint32_t row = 0; row < 50 * kApart; row += kApart) {
        if (!file.InMemory(row) || !file.InMemory(row + 1)) return false;
      }
      return true;
    };
    for (int ms = 0; ms < 20'000 && !arrived(); ++ms) usleep(1000);
    CHECK(arrived());
    CHECK(file.PagesInMemory() == 50 * 2 * kRowBytes / kPage);  // and nothing else
  }

  Read(rows, 0, 50);
  int readings = 0;  // a preempted one counts as slow
  for (; readings < 100'000 && IsCold(rows); ++readings) Read(rows, 0, 50);
  CHECK_FALSE(IsCold(rows));
  CHECK(readings > 10);
}

}  // namespace
}  // namespace hotkv
