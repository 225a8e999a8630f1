// FieldIndex: the columns of an index's declared fields, and of a few more that filters ask for (so a
// filter on any field becomes fast soon after its first use). Readers see a table of complete columns, or
// none; a field that was declared later, or an index that was opened, gets its columns in the
// background, and until then filters read JSON. So answers are right at every moment.
//
// Thread rules: writers under VectorIndex's names_mutex_ (so one at a time); table() by any thread
// with a ReaderPin; specs() and bytes() under names_mutex_, shared at least.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "index/fields/field_spec.h"
#include "index/fields/numeric_column.h"
#include "index/fields/tag_column.h"
#include "index/filter/json_fields.h"

namespace hotkv {

inline constexpr uint32_t kAutomaticFieldsMax = 8;

// One of the two is set. Shared: by the table that readers see and the one that follows it.
struct FieldColumn {
  FieldSpec spec;
  std::shared_ptr<TagColumn> tag;
  std::shared_ptr<NumericColumn> numeric;
  uint64_t count() const { return tag ? tag->count() : numeric->count(); }
};

struct FieldTable {
  FieldTable() = default;
  explicit FieldTable(std::vector<FieldColumn> all);
  const FieldColumn* Find(std::string_view name) const;
  // Gives the slot what its attributes say.
  void Set(uint32_t slot, std::string_view attr) const;

  std::vector<FieldColumn> columns;
  JsonFields reader;  // of the columns' fields, in their order
};

class FieldIndex {
 public:
  FieldIndex();
  ~FieldIndex();

  // Exchanges the declared fields. Columns that stay go on serving; new ones are built by
  // BuildColumns, unless the index has no elements yet.
  enum class Elements : uint8_t { kNone, kSome };
  void Define(std::vector<FieldSpec> specs, Elements elements);
  const std::vector<FieldSpec>& specs() const { return specs_; }

  // The slot's element has these attributes from now on. Before the element becomes visible.
  void Set(uint32_t slot, std::string_view attr);
  // The slot has no visible element any more.
  void Clear(uint32_t slot);

  // Whether there are columns to build; then, in order: the slots from NextToBuild on are given to
  // SetInBuilding (live ones) until the end, and FinishBuilding.
  bool building() const { return !building_.columns.empty(); }
  uint32_t next_to_build() const { return next_to_build_; }
  void SetInBuilding(uint32_t slot, std::string_view attr);
  void BuiltUpTo(uint32_t slot) { next_to_build_ = slot; }
  void FinishBuilding();
  // A column whose run is to be made anew, null when there is none. One that is being built grows
  // too fast to be kept in order all the time: that comes at its end, kBuilt.
  enum class Building : uint8_t { kGrowing, kBuilt };
  std::shared_ptr<NumericColumn> MergeDue(Building building) const;
  // Begins to build what is worth it: columns that filters asked for, and anew those that hold much
  // that is not used.
  void BeginBuilding();

  // Asks for a column of a field that is not declared; ignored when there are enough of them. By any
  // thread; never waits.
  void Want(std::string_view name, FieldKind kind);
  bool takes_wishes() const { return wishes_left_.load(std::memory_order_relaxed) != 0; }
  const std::vector<FieldSpec>& automatic() const { return automatic_; }

  const FieldTable* table() const { return table_.load(std::memory_order_acquire); }
  size_t bytes() const;

 private:
  static FieldColumn MakeColumn(const FieldSpec& spec);
  std::vector<FieldSpec> AllSpecs() const;
  void Publish(std::vector<FieldColumn> columns);

  std::vector<FieldSpec> specs_;
  std::vector<FieldSpec> automatic_;  // not declared; have columns, or get them
  FieldTable building_;
  uint32_t next_to_build_ = 0;
  std::mutex wanted_mutex_;
  std::vector<FieldSpec> wanted_;  // guarded by wanted_mutex_
  std::atomic<uint32_t> wishes_left_{kAutomaticFieldsMax};
  std::atomic<FieldTable*> table_;  // never null; release after its columns are complete
};

}  // namespace hotkv
