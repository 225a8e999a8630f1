// Object: a value with an id of its own that is never reused (vector indexes; large collections). A key's entry holds a
// reference; log and snapshot treat an object as a unit beside the stripes, with a cut of its own.
//
// Invariant: content is changed only under the lock of the stripe that links to the object. Readers that hold a
// reference may read without that lock where the type allows it (a vector search does).
// Thread rules: the count is atomic; the rest is the type's business.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hotkv {

enum class ValueType : uint8_t;

class Object {
 public:
  Object(uint64_t id, ValueType type) : id_(id), type_(type) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  uint64_t id() const { return id_; }
  ValueType type() const { return type_; }
  // Order-free hash of the content (not of the id): equal content, equal digest.
  virtual uint64_t Digest() const = 0;
  virtual size_t MemoryBytes() const = 0;
  // Parts of the content that end by themselves: when the next one does, and what removes those whose time has come.
  static constexpr int64_t kNeverMs = INT64_MAX;
  virtual int64_t NextEndMs() const { return kNeverMs; }
  // Removes at most `max` and appends the change of each, for the caller to record; under the lock of the key that links
  // to the object. True when nothing is left and the key should go.
  virtual bool RemoveEnded(size_t /*max*/, std::vector<std::string>* /*changes*/) { return false; }
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // How many hold it. Falls at any time; rises only by somebody who can reach it.
  uint32_t refs() const { return refs_.load(std::memory_order_acquire); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  virtual ~Object() = default;

 private:
  const uint64_t id_;
  const ValueType type_;
  std::atomic<uint32_t> refs_{1};
};

template <typename T>
class ObjectRef {
 public:
  ObjectRef() = default;
  static ObjectRef Adopt(T* object) { return ObjectRef(object); }  // takes over the caller's reference
  static ObjectRef Share(T* object) {
    if (object) object->Ref();
    return ObjectRef(object);
  }
  ObjectRef(const ObjectRef& o) : object_(o.object_) {
    if (object_) object_->Ref();
  }
  ObjectRef(ObjectRef&& o) noexcept : object_(o.object_) { o.object_ = nullptr; }
  ObjectRef& operator=(ObjectRef o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~ObjectRef() {
    if (object_) object_->Unref();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* Release() {
    T* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  explicit ObjectRef(T* object) : object_(object) {}
  T* object_ = nullptr;
};

}  // namespace hotkv
