#include "index/reader_pin.h"

namespace hotkv {

namespace {

struct ThreadReader {
  ThreadReader() : slot(IndexReclaim().Register()) {}
  ~ThreadReader() { IndexReclaim().Unregister(slot); }
  const unsigned slot;
  unsigned depth = 0;
};

ThreadReader& Mine() {
  thread_local ThreadReader reader;
  return reader;
}

}  // namespace

ReclaimDomain& IndexReclaim() {
  // Never destroyed: threads may still unregister while the process ends.
  static ReclaimDomain& domain = *new ReclaimDomain;
  return domain;
}

ReaderPin::ReaderPin() {
  ThreadReader& reader = Mine();
  if (reader.depth++ == 0) IndexReclaim().Pin(reader.slot);
}

ReaderPin::~ReaderPin() {
  ThreadReader& reader = Mine();
  if (--reader.depth == 0) IndexReclaim().Unpin(reader.slot);
}

}  // namespace hotkv
