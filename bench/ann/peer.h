// One engine that runs in the process of its own program (ann_peer_NAME): bench/ann/run builds the index with it, asks for
// neighbours and for queries a second. Each peer_NAME.cc defines MakePeer(); peer_main.cc is common to all.
//
// Vectors have length 1, so engines may use the inner product for the cosine. Ids are row numbers.
// Thread rules: one thread builds and searches. Errors: exceptions of the engine, reported by main().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hotkv {

struct PeerSetup {
  std::string variant;  // of the engine, as "sq8"; empty: its plain form
  size_t dim = 0;
  size_t rows = 0;
  size_t m = 16;
  size_t ef_construction = 200;
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string Version() const = 0;
  virtual void Build(const float* rows) = 0;
  virtual void Save(const std::string& path) = 0;
  virtual void Load(const std::string& path) = 0;
  virtual void SetEf(size_t ef) = 0;
  // The k nearest rows' ids into `ids`, -1 where there are fewer.
  virtual void Search(const float* query, size_t k, int32_t* ids) = 0;
};

// Throws std::invalid_argument for a variant that the engine does not have.
std::unique_ptr<Peer> MakePeer(const PeerSetup& setup);

}  // namespace hotkv
