// Sets that are brought to the device part by part: the bits of those that lie there, whatever the parts.
#include "train/chunks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "core/philox.h"
#include "devices_testing.h"
#include "omniconv/training.h"

namespace omniconv::chunks_tests {
namespace {

Dataset noise(std::int64_t train, std::int64_t test) {
  Dataset set{.name = "noise", .channels = 2, .height = 6, .width = 6, .classes = {"a", "b", "c"}};
  PhiloxStream stream(3, PhiloxUse::order, 9);
  std::uint64_t word = 0;
  for (Examples* const part : {&set.train, &set.test}) {
    part->count = part == &set.train ? train : test;
    for (std::int64_t i = 0; i < part->count * set.image_bytes(); ++i)
      part->pixels.push_back(static_cast<std::uint8_t>(stream.word(word++) >> 24));
    for (std::int64_t i = 0; i < part->count; ++i) part->labels.push_back(static_cast<std::uint8_t>(i % 3));
  }
  return set;
}

const char* const text = "input 2 6 6\nconv 4 3x3 pad 1\nrelu\nmaxpool 2x2\ndropout 0.25\ndense 3\n";

// All that a training leaves behind.
struct Outcome {
  std::vector<NamedTensor> tensors;
  std::vector<double> losses;
  Evaluation test;
};

void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size()) << what;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    ASSERT_EQ(a.tensors[i].values.size(), b.tensors[i].values.size()) << what;
    EXPECT_EQ(std::memcmp(a.tensors[i].values.data(), b.tensors[i].values.data(), 4 * a.tensors[i].values.size()), 0)
        << what << a.tensors[i].name;
  }
  EXPECT_EQ(a.losses, b.losses) << what;
  EXPECT_EQ(a.test.confusion, b.test.confusion) << what;
  EXPECT_EQ(a.test.loss, b.test.loss) << what;
}

constexpr std::int64_t batch = 5;

class Trial {
 public:
  Trial(const std::string& device, Precision precision)
      : context_({.device = device, .threads = 2}), dataset_(noise(58, 23)), precision_(precision) {}

  // Where it is stopped in the middle of an epoch, another network goes on with what was kept.
  Outcome with(std::int64_t chunk, std::int64_t stop_after = 0) const {
    TrainingOptions options{.epochs = 3, .validation = 7, .augmentation = {.flip = true, .shift = 1}};
    options.chunk = chunk;
    Network network = fresh();
    network.initialise(2);
    Outcome outcome;
    std::vector<NamedTensor> kept;
    TrainingProgress progress;
    TrainingHooks hooks;
    hooks.epoch = [&](const EpochReport& report) {
      outcome.losses.insert(outcome.losses.end(), {report.loss, report.validation_loss, report.validation_accuracy});
      return true;
    };
    if (stop_after > 0) {
      options.checkpoint_every = 1;
      hooks.checkpoint = [&](const TrainingProgress& at, std::vector<NamedTensor>&& tensors) {
        if (at.updates == stop_after) progress = at, kept = std::move(tensors);
      };
      hooks.progress = [&](std::int64_t, std::int64_t) { return kept.empty(); };
      train(network, dataset_, options, hooks);
      EXPECT_EQ(progress.updates, stop_after);
      EXPECT_GT(progress.step, 0);
      outcome.losses.resize(3 * progress.epochs.size());
      network = fresh();
      network.set_tensors(kept);
      network.set_updates(progress.updates);
      hooks.progress = {}, hooks.checkpoint = {};
    }
    train(network, dataset_, options, hooks, progress);
    network.read_tensors(outcome.tensors).wait();
    outcome.test = evaluate(network, dataset_, dataset_.test, chunk);
    return outcome;
  }

 private:
  Network fresh() const {
    return {context_, parse_model(text, "small"), {.batch = batch, .deterministic = true, .precision = precision_}};
  }

  Context context_;
  Dataset dataset_;
  Precision precision_;
};

// Ten steps an epoch, of 51 images of which one is left out; 23 of the test are four batches and a part.
TEST(Chunks, AnyGivesTheBitsOfTheWhole) {
  for (const std::string& device : devices_here())
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      if (precision == Precision::bf16 && device != "cpu") continue;  // its kernels take long to compile
      const Trial run(device, precision);
      const Outcome whole = run.with(0);
      EXPECT_EQ(whole.losses.size(), 9u);
      EXPECT_EQ(whole.test.images, 23);
      // One batch; several that divide the epoch and that do not; no whole batches; all but a batch; all.
      for (const std::int64_t chunk : {5, 10, 15, 25, 33, 39, 55, 57, 58, 1000})
        expect_same(run.with(chunk), whole, device + ", chunks of " + std::to_string(chunk) + ": ");
    }
}

TEST(Chunks, TrainingGoesOnToTheSameBits) {
  for (const std::string& device : devices_here()) {
    const Trial run(device, Precision::f32);
    const Outcome whole = run.with(0);
    // In the middle of a chunk, at its end, and in the last of an epoch.
    for (const std::int64_t stop_after : {4, 13, 17}) {
      expect_same(run.with(15, stop_after), whole, device + ", stopped after " + std::to_string(stop_after) + ": ");
    }
  }
}

TEST(Chunks, NumbersThatAreNotFiniteAreFound) {
  const Dataset set = noise(58, 5);
  for (const std::string& device : devices_here()) {
    std::optional<std::string> whole;
    for (const std::int64_t chunk : {0, 10, 25}) {
      Network network(Context({.device = device, .threads = 1}), parse_model(text, "small"),
                      {.batch = batch, .deterministic = true});
      network.initialise(1);
      TrainingOptions options{.epochs = 9};
      options.rates.rate = 1e25, options.chunk = chunk;
      const std::string error = error_of([&] { train(network, set, options, {}); }, ErrorKind::environment);
      EXPECT_NE(error.find("a number is not finite, first in layer "), std::string::npos) << error;
      EXPECT_EQ(error, whole.value_or(error)) << device << chunk;  // the same step and layer
      whole = error;
    }
  }
}

TEST(Chunks, HooksThatThrowLeaveNothingBehind) {
  const Dataset set = noise(58, 5);
  Network network(Context({.device = "cpu", .threads = 1}), parse_model(text, "small"), {.batch = batch});
  network.initialise(1);
  TrainingOptions options;
  options.chunk = 10;
  for (int i = 0; i < 20; ++i)
    EXPECT_THROW(train(network, set, options,
                       {.progress = [](std::int64_t, std::int64_t) -> bool { throw std::runtime_error("a hook"); }}),
                 std::runtime_error);
}

TEST(Chunks, OneThatHoldsNoBatchIsRefused) {
  const Dataset set = noise(58, 23);
  Network network(Context({.device = "cpu", .threads = 1}), parse_model(text, "small"), {.batch = batch});
  network.initialise(1);
  TrainingOptions options;
  for (const std::int64_t chunk : {4, -1}) {
    options.chunk = chunk;
    const std::string part =
        "a chunk of " + std::to_string(chunk) + " images, in batches of 5: it must hold a batch at least";
    for (const std::string& error : {error_of([&] { train(network, set, options, {}); }),
                                     error_of([&] { evaluate(network, set, set.test, chunk); })})
      EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  EXPECT_EQ(chunk_images(network, set.train), 0);
  EXPECT_EQ(chunk_images(network, set.train, 57), 55);
  EXPECT_EQ(chunk_images(network, set.train, 58), 0);
}

// Two chunks, and two for validation, fit into half of what is left.
TEST(Chunks, AreChosenWhereASetDoesNotFit) {
  using training::chunk_for;
  EXPECT_EQ(chunk_for(900, 95, 10, 100000), 0);  // 90 %
  EXPECT_EQ(chunk_for(901, 95, 10, 100000), 120);
  EXPECT_EQ(chunk_for(901, 95, 64, 100000), 64);
  EXPECT_EQ(chunk_for(901, 95, 200, 100000), 200);  // a batch, whatever is left
  EXPECT_EQ(chunk_for(901, 95, 10, 0), 10);
  // 256 MiB are enough.
  EXPECT_EQ(chunk_for(std::int64_t{1} << 24, 27, 4, std::int64_t{1} << 28), 1 << 20);
  EXPECT_EQ(chunk_for(std::int64_t{1} << 33, 27, 4, std::int64_t{1} << 36), 1 << 23);
  // Positions in an order of more images are no numbers of f32.
  EXPECT_EQ(chunk_for(1 << 24, 1, 64, std::int64_t{1} << 40), 0);
  EXPECT_EQ(chunk_for((1 << 24) + 1, 1, 64, std::int64_t{1} << 40), 1 << 24);
  EXPECT_NE(error_of([] { chunk_for(1 << 20, std::int64_t{1} << 60, 1, 5); }).find("passes 2^63"), std::string::npos);
}

}  // namespace
}  // namespace omniconv::chunks_tests
