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

Json epoch_json(const EpochReport& report);
void print_epoch(const EpochReport& report, std::int64_t epochs);
// A line for each epoch, as a file that is whole at any time; none without a path.
void write_log(const std::string& path, const std::vector<EpochReport>& epochs);
// What TensorBoard shows of an epoch, and of the test.
void add_events(training::EventFile& to, const EpochReport& report);
void add_events(training::EventFile& to, const Network& network, const Evaluation& result);

}  // namespace omniconv::cli
