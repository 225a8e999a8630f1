// What the checks at start think of file systems; tests/process/manners.py provokes the others.
#include <catch2/catch.hpp>

#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>

#include "server/process.h"

namespace hotkv {
namespace {

TEST_CASE("file systems on which durability or speed is in doubt are named, others are not") {
  // The numbers of statfs(2)'s manual page.
  const std::pair<uint64_t, std::string_view> kinds[] = {
      {0x6969, "NFS"},       {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"},   {0x517b, "SMB"},
      {0x65735546, "FUSE"},  {0x01021997, "9P"},   {0x794c7630, "overlay"}, {0x01021994, "tmpfs"},
      {0x858458f6, "ramfs"}, {0xef53, ""},         {0x58465342, ""},      {0x9123683e, ""},
      {0x2fc12fc1, ""},      {0xf2f52010, ""},     {0, ""}};
  for (const auto& [magic, name] : kinds) {
    CAPTURE(magic);
    CHECK(DoubtfulFileSystem(magic) == name);
  }
  // f_type is signed: numbers of 32 bits arrive with their sign.
  CHECK(DoubtfulFileSystem(static_cast<uint64_t>(int64_t{static_cast<int32_t>(0xff534d42)})) == "CIFS");
}

TEST_CASE("what statfs tells of a file system in memory") {
  struct statfs info {};
  if (!std::filesystem::is_directory("/dev/shm") || ::statfs("/dev/shm", &info) != 0) return;
  CHECK(DoubtfulFileSystem(static_cast<uint64_t>(info.f_type)) == "tmpfs");
}

}  // namespace
}  // namespace hotkv
