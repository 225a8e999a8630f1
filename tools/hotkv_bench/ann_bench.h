// `hotkv-bench ann`: loads a set of vectors through the socket, then measures recall and queries a second for each ef
// and number of clients. Recall is measured apart from speed, on one connection, against exact neighbours.
//
// Thread rules: called by main() only.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "tools/hotkv_bench/ann_commands.h"
#include "tools/hotkv_bench/load_loop.h"

namespace hotkv {

struct AnnOptions {
  LoadOptions load;  // clients: while loading
  AnnIndex index;
  std::string data;               // STEM of STEM.base.fbin, STEM.query.fbin, STEM.gt.ibin
  std::string queries = "query";  // or ex.query, whose truth is STEM.ex.gt.ibin
  std::vector<unsigned> efs = {40, 80, 150, 300};
  std::vector<unsigned> clients = {1, 8, 50};
  unsigned k = 10;
  unsigned batch = 64;   // vectors in one step of loading
  bool reuse = false;    // the index is there already
  bool keep = false;     // do not delete the index at the end
  bool no_recall = false;  // measure speed only; the base rows are not read then if the index is reused
  double recall_min = 0;  // fail when the best ef does not reach it
  bool json = false;
};

Status RunAnnBench(AnnOptions options);

}  // namespace hotkv
