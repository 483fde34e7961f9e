// A network from its text to its test: trained on the sample of Fashion-MNIST that comes along, kept in a folder, and
// read back from there.
//
//   train_network [DEVICE]      (auto, cpu, cuda, opencl, ...)
#include <omniconv/checkpoint.h>
#include <omniconv/error.h>
#include <omniconv/training.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "skipped.h"

namespace {

using namespace omniconv;

constexpr const char* text = R"(
input 1 28 28
conv 8 5x5 stride 2
relu
conv 16 3x3 stride 2
relu
dense 10
)";

// A folder of its own, which goes with it.
struct Scratch {
  std::string path = (std::filesystem::temp_directory_path() / "omniconv-train-XXXXXX").string();

  Scratch() {
    if (mkdtemp(path.data()) == nullptr) throw environment_error("no temporary folder can be made");
  }
  ~Scratch() { std::filesystem::remove_all(path); }
};

void print(const char* what, const Evaluation& result) {
  std::printf("%s: %lld of %lld images of the test right\n", what, static_cast<long long>(result.right),
              static_cast<long long>(result.images));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = bundled_datasets();
  if (folder.empty()) {
    std::printf("train_network: skipped, for want of the data that come along\n");
    return skipped;
  }
  const Dataset dataset = read_dataset(find_datasets(folder).at(0));
  const Context context({.device = argc > 1 ? argv[1] : "cpu"});

  // Two passes over the 4,000 images, in batches of 50.
  Network network(context, parse_model(text, "example"), {.batch = 50});
  network.initialise(1);
  TrainingHooks hooks;
  hooks.epoch = [](const EpochReport& epoch) {
    std::printf("epoch %lld: loss %.4f, %.0f images/s\n", static_cast<long long>(epoch.epoch), epoch.loss,
                epoch.images_a_second);
    return true;  // false stops it
  };
  Checkpoint checkpoint{.model = network.model(),
                        .dataset = dataset.name,
                        .classes = dataset.classes,
                        .standard = standard_of(dataset),
                        .options = {},
                        .solvers = {}};
  hooks.checkpoint = [&](const TrainingProgress& progress, std::vector<NamedTensor>&& tensors) {
    checkpoint.progress = progress, checkpoint.tensors = std::move(tensors);
  };
  train(network, dataset, {.epochs = 2, .rates = {.rate = 0.02}}, hooks);
  const Evaluation trained = evaluate(network, dataset, dataset.test);
  print("trained", trained);

  // Kept, and read back: the same network, for outputs alone.
  const Scratch scratch;
  std::printf("checkpoint: %s\n", save_checkpoint(scratch.path, checkpoint).c_str());
  Network loaded = network_of(context, load_checkpoint(scratch.path), {.batch = 50, .trains = false});
  const Evaluation again = evaluate(loaded, dataset, dataset.test);
  print("loaded", again);

  // One of ten by chance.
  return again.confusion == trained.confusion && 2 * again.right > again.images ? 0 : 1;
} catch (const omniconv::Error& error) {
  std::fprintf(stderr, "train_network: %s\n", error.what());
  return 2;
}
