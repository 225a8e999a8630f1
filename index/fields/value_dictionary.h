// ValueDictionary: numbers (ids) for the distinct values of a tag field, each with the list of what
// holds it. Ids begin at kFirstValueId and are never given to another value.
//
// Thread rules: changes by one thread at a time; reads by any thread with a ReaderPin. What a reader
// gets stays as long as the dictionary.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "index/fields/posting_list.h"
#include "index/filter/json_fields.h"
#include "index/slab.h"

namespace hotkv {

inline constexpr uint32_t kNoValue = 0;      // the field is missing, or of no use to a filter
inline constexpr uint32_t kInJsonValue = 1;  // too long for the dictionary: read the JSON
inline constexpr uint32_t kFirstValueId = 2;

struct DictionaryValue {
  JsonKind kind = JsonKind::kNull;  // kNull, kNumber, kString or kArray; booleans are numbers
  double number = 0;
  std::string text;
  std::atomic<uint32_t> count{0};  // relaxed: elements that have the value now
  PostingList postings;            // slots that have or had it, perhaps twice

  JsonValue AsJson() const { return {kind, number, text}; }
};

class ValueDictionary {
 public:
  ValueDictionary();
  ~ValueDictionary();
  ValueDictionary(const ValueDictionary&) = delete;
  ValueDictionary& operator=(const ValueDictionary&) = delete;

  // The id of a value, or kNoValue.
  uint32_t Find(const JsonValue& value) const;
  // Makes it if need be.
  uint32_t Intern(const JsonValue& value);
  // Ids from kFirstValueId up to this are in use.
  uint32_t end() const { return end_.load(std::memory_order_acquire); }
  DictionaryValue& At(uint32_t id) const {
    return *values_.At<DictionaryValue*>(id).load(std::memory_order_acquire);
  }
  // Values made that are strings.
  uint32_t strings() const { return strings_.load(std::memory_order_relaxed); }
  size_t bytes() const;

 private:
  struct Table {
    uint32_t mask = 0;
    std::unique_ptr<std::atomic<uint32_t>[]> ids;  // 0: free
  };
  static uint64_t HashOf(const JsonValue& value);
  static bool Same(const DictionaryValue& a, const JsonValue& b);
  void Place(Table* table, uint64_t hash, uint32_t id);
  void Grow();

  SlabArray values_;
  std::atomic<uint32_t> end_{kFirstValueId};  // release after the value is there
  std::atomic<Table*> table_{nullptr};
  std::atomic<uint32_t> strings_{0};
  std::atomic<size_t> bytes_{0};
};

}  // namespace hotkv
