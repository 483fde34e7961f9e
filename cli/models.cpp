#include "models.h"

#include <fmt/format.h>

#include <vector>

#include "common.h"
#include "core/checked.h"
#include "labelled.h"
#include "omniconv/model.h"

namespace omniconv::cli {
namespace {

std::int64_t output_bytes(const ModelShape& shape, const BatchSize& size) {
  return checked_multiply(checked_multiply(shape.elements(), size.element_bytes, "a layer's output"), size.batch,
                          "a layer's output for a batch");
}

void print_model(const Model& model, const BatchSize& size) {
  fmt::print("{}: {} parameters\n", model.name, model.parameters());
  std::vector<std::vector<std::string>> table = {
      {"layer", "output", "neurons", "parameters", fmt::format("memory, batch of {}", size.batch)}};
  const auto row = [&](const std::string& layer, const ModelShape& out, const std::string& parameters) {
    table.push_back(
        {layer, print(out), std::to_string(out.elements()), parameters, print_bytes(output_bytes(out, size))});
  };
  row("input", model.input, "");
  for (const ModelLayer& layer : model.layers)
    row(layer.text(), layer.out, layer.has_parameters() ? std::to_string(layer.parameters()) : "");
  print_table(table);
}

}  // namespace

int list_models(const std::string& model, const BatchSize& size, bool prints, Json& json) {
  json["models"] = Json::array();
  const std::vector<std::string> names = model.empty() ? built_in_models() : std::vector<std::string>{model};
  for (const std::string& name : names) {
    const Model loaded = load_model(name);
    Json layers = Json::array();
    for (const ModelLayer& layer : loaded.layers)
      layers.push_back({{"layer", layer.text()},
                        {"output", {layer.out.channels, layer.out.height, layer.out.width}},
                        {"neurons", layer.out.elements()},
                        {"parameters", layer.parameters()},
                        {"memory_bytes", output_bytes(layer.out, size)}});
    json["models"].push_back({{"model", name},
                              {"parameters", loaded.parameters()},
                              {"batch", size.batch},
                              {"text", to_text(loaded)},
                              {"layers", layers}});
    if (!prints) continue;
    if (name != names.front()) fmt::print("\n");
    print_model(loaded, size);
  }
  return 0;
}

}  // namespace omniconv::cli
