// TagColumn: what one field of every element is worth, as the id of a value in a dictionary, and for
// each value the slots that may have it. The id of a slot is the truth; lists may hold slots that have
// moved on, or one twice, but never lack one. So readers need no lock, and a change is a few stores.
//
// Thread rules: Set by one thread at a time; reads by any thread with a ReaderPin.
#pragma once

#include <cstdint>
#include <string>

#include "index/fields/value_dictionary.h"
#include "index/filter/json_fields.h"
#include "index/slab.h"

namespace hotkv {

class TagColumn {
 public:
  TagColumn();

  // kMissing: the slot has no value (any more).
  void Set(uint32_t slot, const JsonValue& value);
  uint32_t IdOf(uint32_t slot) const {
    if (slot >= ids_.capacity()) return kNoValue;
    return ids_.At<uint32_t>(slot).load(std::memory_order_acquire);
  }
  const ValueDictionary& values() const { return values_; }
  // Slots that may have a value too long for the dictionary.
  const PostingList& in_json() const { return in_json_; }
  // The arrays among the values, by id; and the elements of arrays, each with the ids of those that
  // hold it.
  const PostingList& arrays() const { return arrays_; }
  const ValueDictionary& items() const { return items_; }
  // Elements that have the field.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Much of the dictionary is of values that no element has: time to make the column anew.
  bool Worn() const;
  size_t bytes() const;

 private:
  uint32_t IdFor(const JsonValue& value);
  void NoteArray(uint32_t id, std::string_view array);

  SlabArray ids_;  // uint32_t a slot; release after the list has the slot
  ValueDictionary values_;
  ValueDictionary items_;  // of arrays; their postings are ids of values_
  PostingList arrays_;     // ids of values_
  PostingList in_json_;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint32_t> used_values_{0};  // with a count above 0
};

}  // namespace hotkv
