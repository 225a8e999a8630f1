#include "engine/base/mailbox.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hotkv {
namespace {

TEST_CASE("messages of each sender arrive once and in order", "[mailbox]") {
  constexpr int kSenders = 4;
  constexpr int kMessages = 20000;
  Mailbox box;
  std::atomic<int> wakes{0};
  std::vector<int> last(kSenders, -1);
  int arrived = 0;
  std::vector<std::thread> senders;
  for (int sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&, sender] {
      for (int i = 0; i < kMessages; ++i) {
        const bool was_empty = box.Push([&, sender, i] {
          if (last[static_cast<size_t>(sender)] != i - 1) throw std::logic_error("out of order");
          last[static_cast<size_t>(sender)] = i;
          ++arrived;
        });
        if (was_empty) wakes.fetch_add(1);
      }
    });
  }
  // The owner runs only when somebody found the box empty: no message may be left without a
  // wake-up.
  while (arrived < kSenders * kMessages) {
    int expected = wakes.load();
    if (expected > 0 && wakes.compare_exchange_strong(expected, expected - 1)) box.RunAll();
  }
  for (std::thread& sender : senders) sender.join();
  CHECK(arrived == kSenders * kMessages);
  CHECK(box.empty());
}

TEST_CASE("messages that are never run are freed", "[mailbox]") {
  auto owned = std::make_shared<int>(1);
  {
    Mailbox box;
    box.Push([owned] {});
    box.Push([owned] {});
    CHECK(owned.use_count() == 3);
  }
  CHECK(owned.use_count() == 1);
}

}  // namespace
}  // namespace hotkv
