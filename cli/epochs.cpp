#include "epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "image/atomic_file.h"

namespace omniconv::cli {

TrainingHooks hooks_of(ProgressBar& bar) {
  TrainingHooks hooks;
  hooks.progress = [&bar](std::int64_t done, std::int64_t all) {
    bar.update(done, all, "steps");
    return !interrupted();
  };
  return hooks;
}

void require_log(const std::string& path) {
  if (!path.empty()) const image::AtomicFile file(path);  // never put in its place
}

void write_log(const std::string& path, const std::vector<EpochReport>& epochs) {
  if (path.empty()) return;
  std::string text = "epoch,steps,loss,rate,seconds,images_per_second,validation_loss,validation_accuracy\n";
  for (const EpochReport& epoch : epochs) {
    text += fmt::format("{},{},{},{},{},{},", epoch.epoch, epoch.steps, epoch.loss, epoch.rate, epoch.seconds,
                        epoch.images_a_second);
    text +=
        epoch.validation_images > 0 ? fmt::format("{},{}\n", epoch.validation_loss, epoch.validation_accuracy) : ",\n";
  }
  image::AtomicFile file(path);
  file.write_at(0, text.data(), std::ssize(text));
  file.commit();
}

double seconds_of_step(const std::vector<EpochReport>& epochs, std::int64_t batch) {
  std::vector<double> seconds;
  for (const EpochReport& epoch : epochs)
    if (epoch.images_a_second > 0) seconds.push_back(static_cast<double>(batch) / epoch.images_a_second);
  if (seconds.empty()) return 0;
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

Json epoch_json(const EpochReport& report) {
  Json json = {{"epoch", report.epoch},
               {"loss", report.loss},
               {"rate", report.rate},
               {"seconds", report.seconds},
               {"images_per_second", report.images_a_second}};
  if (report.validation_images > 0)
    json["validation"] = {{"images", report.validation_images},
                          {"loss", report.validation_loss},
                          {"accuracy", report.validation_accuracy}};
  return json;
}

void print_epoch(const EpochReport& report, std::int64_t epochs) {
  std::string line = fmt::format("epoch {} of {}: loss {:.4f}", report.epoch, epochs, report.loss);
  if (report.validation_images > 0) line += fmt::format(", validation {:.2f} %", 100 * report.validation_accuracy);
  line += fmt::format(", {:.2f} s, {:.0f} images/s", report.seconds, report.images_a_second);
  const double left = report.seconds * static_cast<double>(epochs - report.epoch);
  if (left >= 60) line += fmt::format(", {:.0f} min left", left / 60);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void add_events(training::EventFile& to, const EpochReport& report) {
  std::vector<training::NamedNumber> numbers = {
      {"loss/training", report.loss}, {"rate", report.rate}, {"images_per_second", report.images_a_second}};
  if (report.validation_images > 0)
    numbers.insert(numbers.end(),
                   {{"loss/validation", report.validation_loss}, {"accuracy/validation", report.validation_accuracy}});
  to.add(report.epoch * report.steps, numbers);
}
void add_events(training::EventFile& to, const Network& network, const Evaluation& result) {
  const training::NamedNumber numbers[] = {{"loss/test", result.loss}, {"accuracy/test", result.accuracy()}};
  to.add(network.updates(), numbers);
}

}  // namespace omniconv::cli
