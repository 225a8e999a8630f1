// hnswlib as its users run it: float32, inner product.
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <stdexcept>

#include "bench/ann/peer.h"

namespace hotkv {
namespace {

class Hnswlib : public Peer {
 public:
  explicit Hnswlib(const PeerSetup& setup) : setup_(setup), space_(setup.dim) {}

  std::string Version() const override { return HOTKV_HNSWLIB_VERSION; }

  void Build(const float* rows) override {
    index_ = std::make_unique<Index>(&space_, setup_.rows, setup_.m, setup_.ef_construction);
    for (size_t i = 0; i < setup_.rows; ++i) index_->addPoint(rows + i * setup_.dim, i);
  }
  void Save(const std::string& path) override { index_->saveIndex(path); }
  void Load(const std::string& path) override { index_ = std::make_unique<Index>(&space_, path); }
  void SetEf(size_t ef) override { index_->setEf(ef); }

  void Search(const float* query, size_t k, int32_t* ids) override {
    auto found = index_->searchKnn(query, k);
    std::fill(ids, ids + k, -1);
    for (size_t i = found.size(); i-- > 0; found.pop()) ids[i] = static_cast<int32_t>(found.top().second);
  }

 private:
  using Index = hnswlib::HierarchicalNSW<float>;

  PeerSetup setup_;
  hnswlib::InnerProductSpace space_;
  std::unique_ptr<Index> index_;
};

}  // namespace

std::unique_ptr<Peer> MakePeer(const PeerSetup& setup) {
  if (!setup.variant.empty()) throw std::invalid_argument("hnswlib has no " + setup.variant);
  return std::make_unique<Hnswlib>(setup);
}

}  // namespace hotkv
