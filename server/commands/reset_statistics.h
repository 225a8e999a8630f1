// What CONFIG RESETSTAT does, and how settings reach the recorder.
//
// Thread rules: any thread.
#pragma once

namespace hotkv {

class Config;
class CommandRecorder;
class Server;

void ResetStatistics(Server& server);

// Applies the settings about slow log and latency, now and at every later change. Before the
// workers start.
void ConnectRecorder(Config& config, CommandRecorder& recorder);

}  // namespace hotkv
