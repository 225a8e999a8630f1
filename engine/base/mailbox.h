// Mailbox: messages from any thread to one worker, in the order in which each sender sent them.
// Lock-free: a push is one compare-and-swap on the head of a list; the owner takes the whole list
// at once and turns it round.
//
// Thread rules: Push from any thread; TakeAll by the owner only. Push returns true when the box was
// empty: then, and only then, the sender wakes the owner.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

namespace hotkv {

class Mailbox {
 public:
  using Message = std::function<void()>;

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() { Delete(head_.load(std::memory_order_acquire)); }

  bool Push(Message message) {
    Node* node = new Node{std::move(message), nullptr};
    Node* before = head_.load(std::memory_order_relaxed);
    do {
      node->next = before;
      // release: the owner's acquire in RunAll sees the message.
    } while (!head_.compare_exchange_weak(before, node, std::memory_order_release,
                                          std::memory_order_relaxed));
    return before == nullptr;  // the node itself may be gone by now
  }

  bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

  // Runs every message that was there when it began.
  void RunAll() {
    Node* list = head_.exchange(nullptr, std::memory_order_acquire);
    Node* oldest = nullptr;
    while (list != nullptr) oldest = std::exchange(list, std::exchange(list->next, oldest));
    while (oldest != nullptr) {
      Node* const node = oldest;
      oldest = node->next;
      node->message();
      delete node;
    }
  }

 private:
  struct Node {
    Message message;
    Node* next;
  };
  static void Delete(Node* list) {
    while (list != nullptr) delete std::exchange(list, list->next);
  }

  std::atomic<Node*> head_{nullptr};
};

}  // namespace hotkv
