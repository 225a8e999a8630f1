// GraphFile: the arrays of a Graph inside a mapped graph.GEN: where they lie, a graph that uses
// them in place, and the copy of a graph that is being changed.
//
// Thread rules: CopyInto may run beside inserts, deletes and walks of `from` but not beside its
// repair, which the caller holds off (RepairHold). The rest is for graphs that nobody else uses
// yet.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "index/file/generation.h"
#include "index/graph/graph.h"

namespace hotkv {

class GraphFile {
 public:
  // Keeps repair passes from taking a step.
  class RepairHold {
   public:
    explicit RepairHold(Graph* graph) : lock_(graph->repair_mutex_) {}

   private:
    std::lock_guard<std::mutex> lock_;
  };

  // Sets offset and bytes of the graph's sections, from *end on, which becomes the file's length so
  // far. Sections begin at pages and take whole slabs.
  static void LayOut(const Graph& shape, uint32_t slots, uint32_t upper_rows, GraphHeader* header,
                     uint64_t* end);
  // Makes an unused graph use the sections of `base` in place.
  static void Adopt(char* base, const GraphHeader& header, const std::vector<uint32_t>& dead,
                    Graph* graph);

  // How each slot goes into a copy: its meta byte there. Prepared elements count as dead: if they
  // were committed in time, the log revives them.
  static std::vector<uint8_t> Classify(const Graph& from);
  static uint32_t UpperRowsFor(const std::vector<uint8_t>& metas);
  // Copies the links among the slots that `metas` keeps into `to`, an adopted graph of zeroed
  // sections; counts in-degrees, chooses the entry, links again what no link reaches.
  static void CopyInto(const Graph& from, const std::vector<uint8_t>& metas, Graph* to);
  static uint64_t EntryOf(const Graph& graph) {
    return graph.entry_.load(std::memory_order_acquire);
  }

 private:
  static void CopyRow(const Graph& from, const std::vector<uint8_t>& metas, uint32_t slot,
                      uint32_t level, Graph* to);
};

}  // namespace hotkv
