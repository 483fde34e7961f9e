// A CUDA driver without hardware, with two devices: memory is the host's, and work is done as it is submitted. It keeps
// the calls that copy, launch and record, and fails where it is told to. A graph is run by nobody.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fake_cuda {

// Since the last time, in order: "cuMemcpyPeerAsync 16 bytes 0 > 1 on 1" (from, to, and the stream's device).
std::vector<std::string> take_calls();
// Since the last time, in order: "cuMemFree", "cuStreamDestroy of 0".
std::vector<std::string> take_ends();
// The caller's memory becomes a device's, of the primary context or of another one; or page-locked memory of the host.
void add_memory(void* memory, std::size_t bytes, int device, bool of_primary = true);
void add_locked_memory(void* memory, std::size_t bytes);
// A stream of the caller's, whose name in calls is "0#7" (of another context "0#9"); the default stream is "default".
void* make_stream(int device, bool of_primary = true);
// How often it was called since the last time: cuCtxPushCurrent, cuEventRecord, cuEventQuery,
// "cuEventCreate without timing".
int take_count(const std::string& call);
// The architectures that were compiled for since the last time, of quick code with " quickly" behind.
std::vector<std::string> take_compilations();
// Compilations fail that do not meet so many at a time.
void compile_together(int count);
// Those of texts in which the word stands wait, none where it is empty; those of optimised code wait, or fail.
void hold_texts(const std::string& word);
void hold_optimised(bool hold);
void fail_optimised(bool fail);
// How many have begun and not ended, and the most texts that were parsed at a time.
int compilations_under_way();
int most_parsed();
// Whether the devices reach each other's memory.
void set_peers(bool reach);
// The next call of this name returns this code, and does nothing.
void fail_next(const std::string& call, int code);

}  // namespace fake_cuda
