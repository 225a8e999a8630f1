// The store's blocks: room, zeros, alignment; and that the sanitizers' builds do see what is wrong with them.
#include "engine/base/allocator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace hotkv {
namespace {

TEST_CASE("allocator: a block holds whatever is of its size class", "[allocator]") {
  size_t last = 0;
  for (size_t bytes = 1; bytes <= 70'000; bytes += bytes < 2'000 ? 1 : 97) {
    const size_t whole = SizeClassOf(bytes);
    CHECK(whole >= bytes);
    CHECK(whole >= last);
    CHECK(SizeClassOf(whole) == whole);
    last = whole;
    auto* block = static_cast<char*>(AllocateBlock(bytes));
    REQUIRE(block != nullptr);
    CHECK(BlockBytes(block) >= whole);
    std::memset(block, 0x5a, whole);
    FreeBlock(block);
  }
}

TEST_CASE("allocator: zeroed blocks are zero and aligned, used memory too", "[allocator]") {
  for (int round = 0; round < 3; ++round) {
    for (const size_t bytes : {size_t{1}, size_t{128}, size_t{200}, size_t{4096}, size_t{300'000}}) {
      auto* block = static_cast<char*>(AllocateZeroedBlock(bytes, 128));
      REQUIRE(block != nullptr);
      CHECK(reinterpret_cast<uintptr_t>(block) % 128 == 0);
      CHECK(std::all_of(block, block + bytes, [](char c) { return c == 0; }));
      std::memset(block, 0x5a, bytes);
      FreeBlock(block);
    }
  }
}

#ifdef HOTKV_SANITIZED

// Faults made on purpose: hidden, and run by the case below in a process of their own.
TEST_CASE("allocator fault: use after free", "[.allocator-fault]") {
  auto* volatile block = static_cast<volatile char*>(AllocateBlock(40));
  FreeBlock(const_cast<char*>(block));
  block[3] = 1;
}

TEST_CASE("allocator fault: two threads write", "[.allocator-fault]") {
  auto* block = static_cast<volatile char*>(AllocateBlock(40));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([block] { block[3] = 1; });
  for (std::thread& thread : threads) thread.join();
  FreeBlock(const_cast<char*>(block));
}

// Exit status and output of this program with that case.
std::pair<int, std::string> RunFault(const std::string& name) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  REQUIRE(length > 0);
  self[length] = '\0';
  // The report goes to the output here even where the caller collects reports in files.
  const std::string command = "ASAN_OPTIONS= UBSAN_OPTIONS= TSAN_OPTIONS= '" + std::string(self) +
                              "' 'allocator fault: " + name + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char part[4096];
  while (const size_t got = fread(part, 1, sizeof(part), pipe)) output.append(part, got);
  return {pclose(pipe), output};
}

TEST_CASE("allocator: the sanitizer sees faults in the store's blocks", "[allocator]") {
  const auto [freed_status, freed] = RunFault("use after free");
  CHECK(freed_status != 0);
  CHECK_THAT(freed, Catch::Contains("heap-use-after-free"));
#ifdef __SANITIZE_THREAD__
  const auto [race_status, race] = RunFault("two threads write");
  CHECK(race_status != 0);
  CHECK_THAT(race, Catch::Contains("data race"));
#endif
}

#endif

}  // namespace
}  // namespace hotkv
