// The epochs of a training: in a report, as lines, and in a log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omniconv/training.h"
#include "progress.h"
#include "report.h"
#include "train/event_file.h"

namespace omniconv::cli {

// Steps as the bar shows them, until the command is interrupted.
TrainingHooks hooks_of(ProgressBar& bar);

// Data and all: the median of the epochs; 0 where there are none.
double seconds_of_step(const std::vector<EpochReport>& epochs, std::int64_t batch);
Json epoch_json(const EpochReport& report);
void print_epoch(const EpochReport& report, std::int64_t epochs);
// Throws bad_input where write_log() could not write: before the work begins.
void require_log(const std::string& path);
// A line for each epoch, as a file that is whole at any time; none without a path.
void write_log(const std::string& path, const std::vector<EpochReport>& epochs);
// What TensorBoard shows of an epoch, and of the test.
void add_events(training::EventFile& to, const EpochReport& report);
void add_events(training::EventFile& to, const Network& network, const Evaluation& result);

}  // namespace omniconv::cli
