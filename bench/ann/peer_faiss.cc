// faiss, HNSW over float32 ("flat") or over 8-bit scalars ("sq8"), inner product, one thread.
#include <faiss/IndexHNSW.h>
#include <faiss/index_io.h>
#include <omp.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "bench/ann/peer.h"

namespace hotkv {
namespace {

class Faiss : public Peer {
 public:
  explicit Faiss(const PeerSetup& setup) : setup_(setup) { omp_set_num_threads(1); }

  std::string Version() const override {
    return std::to_string(FAISS_VERSION_MAJOR) + "." + std::to_string(FAISS_VERSION_MINOR) + "." +
           std::to_string(FAISS_VERSION_PATCH) + " (" HOTKV_FAISS_BUILD " build)";
  }

  void Build(const float* rows) override {
    const int dim = static_cast<int>(setup_.dim);
    const int m = static_cast<int>(setup_.m);
    if (setup_.variant == "sq8") {
      index_ = std::make_unique<faiss::IndexHNSWSQ>(dim, faiss::ScalarQuantizer::QT_8bit, m,
                                                    faiss::METRIC_INNER_PRODUCT);
    } else {
      index_ = std::make_unique<faiss::IndexHNSWFlat>(dim, m, faiss::METRIC_INNER_PRODUCT);
    }
    index_->hnsw.efConstruction = static_cast<int>(setup_.ef_construction);
    const auto count = static_cast<int64_t>(setup_.rows);
    index_->train(count, rows);
    index_->add(count, rows);
  }
  void Save(const std::string& path) override { faiss::write_index(index_.get(), path.c_str()); }

  void Load(const std::string& path) override {
    std::unique_ptr<faiss::Index> read(faiss::read_index(path.c_str()));
    auto* index = dynamic_cast<faiss::IndexHNSW*>(read.get());
    if (index == nullptr) throw std::runtime_error("not an HNSW index: " + path);
    static_cast<void>(read.release());
    index_.reset(index);
  }
  void SetEf(size_t ef) override { index_->hnsw.efSearch = static_cast<int>(ef); }

  void Search(const float* query, size_t k, int32_t* ids) override {
    distances_.resize(k);
    found_.resize(k);
    index_->search(1, query, static_cast<int64_t>(k), distances_.data(), found_.data());
    std::transform(found_.begin(), found_.end(), ids, [](int64_t id) { return static_cast<int32_t>(id); });
  }

 private:
  PeerSetup setup_;
  std::unique_ptr<faiss::IndexHNSW> index_;
  std::vector<float> distances_;
  std::vector<int64_t> found_;
};

}  // namespace

std::unique_ptr<Peer> MakePeer(const PeerSetup& setup) {
  if (setup.variant != "flat" && setup.variant != "sq8") throw std::invalid_argument("faiss: flat or sq8");
  return std::make_unique<Faiss>(setup);
}

}  // namespace hotkv
