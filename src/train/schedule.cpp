// Learning rates over the steps of a training.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numbers>
#include <string>

#include "omniconv/error.h"
#include "omniconv/training.h"

namespace omniconv {
namespace {

// What stands before the first `mark`, which is taken too; all of it where there is none.
std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return part;
}

}  // namespace

Schedule parse_schedule(std::string_view text) {
  const std::string whole(text);
  const auto refuse = [&](const std::string& what) {
    throw bad_input(
        fmt::format("schedule '{}': {}: it is constant, step:EPOCHS,FACTOR or cosine[:LEAST], behind "
                    "warm-up:EPOCHS, or without that",
                    whole, what));
  };
  const auto number = [&](std::string_view word, double least, double most) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value >= least && value <= most))
      refuse(fmt::format("'{}' is no number from {} to {}", word, least, most));
    return value;
  };
  constexpr double most_epochs = 1e6;
  Schedule schedule;
  constexpr std::string_view warm_up = "warm-up:";
  if (text.starts_with(warm_up)) {
    text.remove_prefix(warm_up.size());
    schedule.warm_up = number(take(text, ','), 0, most_epochs);
    if (text.empty()) text = "constant";
  }
  const std::string_view word = take(text, ':');
  if (word == "constant") {
    if (!text.empty()) refuse(fmt::format("'{}' behind constant", text));
  } else if (word == "step") {
    schedule.kind = Schedule::Kind::step;
    schedule.every = number(take(text, ','), 1e-6, most_epochs);
    schedule.factor = number(text, 0, 1);
  } else if (word == "cosine") {
    schedule.kind = Schedule::Kind::cosine;
    if (!text.empty()) schedule.least = number(text, 0, 1);
  } else {
    refuse(fmt::format("unknown word '{}'", word));
  }
  return schedule;
}

double rate_at(const Schedule& schedule, double rate, std::int64_t step, std::int64_t steps, std::int64_t epochs) {
  const auto epoch = static_cast<double>(step) / static_cast<double>(steps);
  if (epoch < schedule.warm_up)
    return rate * static_cast<double>(step + 1) / (schedule.warm_up * static_cast<double>(steps));
  const double since = epoch - schedule.warm_up;
  switch (schedule.kind) {
    case Schedule::Kind::constant: return rate;
    case Schedule::Kind::step: return rate * std::pow(schedule.factor, std::floor(since / schedule.every));
    case Schedule::Kind::cosine: {
      const double all = static_cast<double>(epochs) - schedule.warm_up;
      return rate * (schedule.least + (1 - schedule.least) * (1 + std::cos(std::numbers::pi * since / all)) / 2);
    }
  }
  return rate;
}

}  // namespace omniconv
