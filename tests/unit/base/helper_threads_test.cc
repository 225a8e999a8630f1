// Work that is offered to helper threads: every piece is done once, by whoever gets to it, and nobody is held up.
#include <catch2/catch.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/base/helper_threads.h"

namespace hotkv {
namespace {

class Counting : public SharedWork {
 public:
  explicit Counting(size_t pieces) : done(pieces) {}
  void DoPieces() override {
    for (size_t i = next.fetch_add(1); i < done.size(); i = next.fetch_add(1)) {
      done[i].fetch_add(1);
      left.fetch_sub(1);
    }
  }
  std::atomic<size_t> next{0};
  std::vector<std::atomic<int>> done;
  std::atomic<size_t> left{done.size()};
};

// Stays in a helper until it is let go.
class Stuck : public SharedWork {
 public:
  void DoPieces() override {
    ++inside;
    while (!go) std::this_thread::yield();
  }
  std::atomic<int> inside{0};
  std::atomic<bool> go{false};
};

TEST_CASE("helper threads: every piece is done once") {
  for (const unsigned threads : {0u, 1u, 3u}) {
    HelperThreads helpers(threads);
    for (int round = 0; round < 50; ++round) {
      const auto work = std::make_shared<Counting>(200);
      helpers.Offer(work, 5);
      work->DoPieces();
      while (work->left != 0) std::this_thread::yield();
      for (const auto& times : work->done) CHECK(times == 1);
    }
  }
}

TEST_CASE("helper threads do what is offered, and let it go") {
  HelperThreads helpers(2);
  const auto work = std::make_shared<Counting>(1000);
  helpers.Offer(work, 2);
  while (work->left != 0) std::this_thread::yield();  // nobody else does it
  while (work.use_count() != 1) std::this_thread::yield();
}

TEST_CASE("helper threads that are stuck hold up neither an offer nor its work") {
  const auto stuck = std::make_shared<Stuck>();
  HelperThreads helpers(2);
  helpers.Offer(stuck, 2);
  while (stuck->inside != 2) std::this_thread::yield();
  const auto work = std::make_shared<Counting>(10);
  helpers.Offer(work, 2);
  work->DoPieces();
  CHECK(work->left == 0);
  CHECK(work.use_count() == 3);  // still in the queue
  stuck->go = true;
  while (work.use_count() != 1) std::this_thread::yield();
}

TEST_CASE("helper threads that end drop what is left") {
  const auto work = std::make_shared<Counting>(10);
  const auto stuck = std::make_shared<Stuck>();
  std::thread later;
  {
    HelperThreads helpers(1);
    helpers.Offer(stuck, 1);
    while (stuck->inside != 1) std::this_thread::yield();
    helpers.Offer(work, 1);
    later = std::thread([&] {
      // Once the queue has been dropped.
      while (work.use_count() != 1) std::this_thread::yield();
      stuck->go = true;
    });
  }
  later.join();
  CHECK(work.use_count() == 1);
  CHECK(work->left == 10);
}

}  // namespace
}  // namespace hotkv
