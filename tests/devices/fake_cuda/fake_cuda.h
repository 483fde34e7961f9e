// A CUDA driver without hardware, with two devices: memory is the host's, and work is done as it is submitted. It keeps
// the calls that copy between devices, and fails where it is told to.
#pragma once

#include <string>
#include <vector>

namespace fake_cuda {

// Since the last time, in order: "cuMemcpyPeerAsync 16 bytes 0 > 1 on 1" (from, to, and the stream's device).
std::vector<std::string> take_calls();
// Whether the devices reach each other's memory.
void set_peers(bool reach);
// The next call of this name returns this code, and does nothing.
void fail_next(const std::string& call, int code);

}  // namespace fake_cuda
