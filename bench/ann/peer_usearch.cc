// usearch with its own kernels where its folder has them, float32 ("f32") or 8-bit ("i8"), one thread.
#include <algorithm>
#include <stdexcept>
#include <usearch/index_dense.hpp>
#include <vector>

#include "bench/ann/peer.h"

namespace hotkv {
namespace {

namespace us = unum::usearch;

class Usearch : public Peer {
 public:
  explicit Usearch(const PeerSetup& setup) : setup_(setup) {
    us::index_dense_config_t config(setup.m, setup.ef_construction, 64);
    // The cosine; of vectors of length 1 and in float32 the inner product is the same and cheaper.
    const bool small = setup.variant == "i8";
    const us::metric_punned_t metric(setup.dim, small ? us::metric_kind_t::cos_k : us::metric_kind_t::ip_k,
                                     small ? us::scalar_kind_t::i8_k : us::scalar_kind_t::f32_k);
    kernels_ = metric.isa_name();
    auto made = Index::make(metric, config);
    if (!made) throw std::runtime_error(made.error.release());
    index_ = std::move(made.index);
  }

  std::string Version() const override {
    return std::to_string(USEARCH_VERSION_MAJOR) + "." + std::to_string(USEARCH_VERSION_MINOR) + "." +
           std::to_string(USEARCH_VERSION_PATCH) + ", kernels " + kernels_;
  }

  void Build(const float* rows) override {
    if (!index_.try_reserve(us::index_limits_t(setup_.rows, 1))) throw std::bad_alloc();
    for (size_t i = 0; i < setup_.rows; ++i) {
      auto added = index_.add(i, rows + i * setup_.dim, 0);
      if (!added) throw std::runtime_error(added.error.release());
    }
  }
  void Save(const std::string& path) override { Check(index_.save(path.c_str())); }
  void Load(const std::string& path) override { Check(index_.load(path.c_str())); }
  void SetEf(size_t ef) override { index_.change_expansion_search(ef); }

  void Search(const float* query, size_t k, int32_t* ids) override {
    auto found = index_.search(query, k, 0);
    if (!found) throw std::runtime_error(found.error.release());
    keys_.resize(k);
    const size_t count = found.dump_to(keys_.data(), k);
    for (size_t i = 0; i < k; ++i) ids[i] = i < count ? static_cast<int32_t>(keys_[i]) : -1;
  }

 private:
  using Index = us::index_dense_t;

  template <typename Outcome>
  static void Check(Outcome outcome) {
    if (!outcome) throw std::runtime_error(outcome.error.release());
  }

  PeerSetup setup_;
  std::string kernels_;
  Index index_;
  std::vector<Index::vector_key_t> keys_;
};

}  // namespace

std::unique_ptr<Peer> MakePeer(const PeerSetup& setup) {
  if (setup.variant != "f32" && setup.variant != "i8") throw std::invalid_argument("usearch: f32 or i8");
  return std::make_unique<Usearch>(setup);
}

}  // namespace hotkv
