// VectorBatch: the searches of one VSIM.MSEARCH. The worker that has it does them one after the other; the engine's helper
// threads take some off its hands. What a helper has begun and not finished when the worker is through is awaited for about
// as long as a search takes, and then done again: no helper can hold the worker up.
//
// Thread rules: Run by the worker; DoPieces by helpers, also after Run has returned (it then finds nothing to take).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/helper_threads.h"
#include "engine/commands/vector_args.h"
#include "engine/commands/vset_common.h"

namespace hotkv {

struct SearchOutcome {
  Status status = Status::Ok();
  std::vector<SearchRow> rows;
  SearchReport report;
};

class VectorBatch : public SharedWork {
 public:
  VectorBatch(VectorSetRef set, std::vector<std::vector<float>> queries, SearchOptions options);

  const SearchOptions& options() const { return options_; }
  // All of them, in the order of the queries.
  static std::vector<SearchOutcome> Run(const std::shared_ptr<VectorBatch>& batch,
                                        HelperThreads* helpers);
  void DoPieces() override;

 private:
  // Written by the helper that took the query.
  struct Helped {
    std::atomic<bool> done{false};  // release after the outcome, acquire by the worker
    SearchOutcome outcome;
  };
  std::optional<size_t> Take();
  SearchOutcome Search(size_t query) const;
  SearchOutcome Await(size_t query, int64_t search_ns);

  // Constant after construction.
  const VectorSetRef set_;
  const std::vector<std::vector<float>> queries_;
  SearchOptions options_;

  std::atomic<size_t> next_{0};  // relaxed: it only hands out numbers
  std::vector<Helped> helped_;
};

}  // namespace hotkv
