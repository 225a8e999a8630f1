// The log of a stored directory as a whole: every range that the catalog names, block by block, with the server's own
// judgement of where it ends.
//
// Thread rules: one thread.
#pragma once

#include <string>
#include <vector>

#include "persistence/log/log_reader.h"
#include "tools/hotkv_tool/offline_directory.h"
#include "tools/hotkv_tool/tool_report.h"

namespace hotkv {

// The range that the server would go on with, as it would scan it, but from its first segment on.
LogScanOptions OptionsForRange(StoredDirectory* directory, const LogRange& range);

// Text of a torn tail, which is no problem: the server cuts it by itself.
std::string TornText(const LogTornTail& torn);

// Corruption is noted as a problem, a torn tail as a note; the Status is the visitor's.
Status ScanAllRanges(StoredDirectory* directory, const LogBlockVisitor& visitor, Problems* problems,
                     std::vector<std::string>* notes);

}  // namespace hotkv
