// What the tiles of tiled.kernel are worth on a GPU, and how well the choice among them knows it: every tile with every
// number of parts that could serve a problem, timed, beside the time that the cost predicts. Data are small integers,
// so that every result must equal, byte by byte, that of `plain`; exit status 1 where one does not.
//
//   gpu_gemm [--device cuda[:0]|opencl[:0.0]] [--seconds S] [--tile M,N,K,QUADS_M,QUADS_N,RESIDENT]... [PROBLEM...]
//
// With --tile these tiles are timed beside those shipped.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <random>
#include <sstream>

#include "comparing.h"
#include "core/convert.h"
#include "gpu_study.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/tiled/tiles.h"

namespace {

using namespace omniconv;
using operations::GemmChoice;
using operations::GemmTile;

struct Variant {
  GemmChoice choice;
  std::optional<Plan> plan;  // none where it does not compile
  double milliseconds = 0;
  bool equal = false;
};

std::string name_of(const GemmChoice& choice) {
  const GemmTile& t = choice.tile;
  return fmt::format("{}x{}x{} quads {}x{} resident {} parts {}", t.m, t.n, t.k, t.quads_m, t.quads_n, t.resident,
                     choice.parts);
}

bool same(const GemmChoice& a, const GemmChoice& b) {
  return name_of(a) == name_of(b);
}

class Study {
 public:
  Study(const Context& context, const std::string& text)
      : context_(context),
        queue_(context.make_queue()),
        task_(operations::task_for(get<GemmProblem>(parse_problem(text)))) {
    const GemmProblem& p = task_.problem;
    // Sets of matrices which together pass the second cache.
    const std::int64_t elements = p.batch * (p.m * p.k + p.k * p.n + p.m * p.n);
    const std::int64_t sets = std::clamp<std::int64_t>((256 << 20) / (elements * size_of(p.type)), 2, 16);
    for (std::int64_t i = 0; i < sets; ++i)
      sets_.push_back({filled(p.batch * p.m * p.k), filled(p.batch * p.k * p.n), empty(p.batch * p.m * p.n)});
    result_bytes_ = static_cast<std::size_t>(p.batch * p.m * p.n * size_of(task_.output));
  }

  double multiply_adds() const {
    const GemmProblem& p = task_.problem;
    return static_cast<double>(p.batch * p.m * p.n) * static_cast<double>(p.k);
  }

  GemmChoice shipped() const { return operations::choose_tiles(task_, *context_.impl(), -1); }

  // All that could serve, compiled side by side.
  std::vector<Variant> variants(const std::vector<GemmTile>& tiles) {
    std::vector<Variant> all;
    for (const GemmTile& tile : operations::tiles_taken_by(*context_.impl(), tiles))
      for (const std::int64_t parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        const auto choice = operations::choice_of(tile, parts, task_, *context_.impl());
        if (!choice) continue;
        if (parts > 1 && choice->cost > 1.4 * shipped().cost) continue;
        if (std::any_of(all.begin(), all.end(), [&](const Variant& v) { return same(v.choice, *choice); })) continue;
        all.push_back({.choice = *choice, .plan = {}});
      }
    std::vector<std::future<void>> compiling;
    for (Variant& variant : all)
      compiling.push_back(std::async(std::launch::async, [this, &variant] {
        try {
          variant.plan = bench::plan_around(context_, task_.problem, operations::AnyTask(task_),
                                            name_of(variant.choice), variant.choice.workspace_bytes,
                                            operations::plan_of_tiles(task_, *context_.impl(), variant.choice));
        } catch (const std::exception& error) {
          fmt::print("{}: {}\n", name_of(variant.choice), error.what());
        }
      }));
    for (std::future<void>& each : compiling) each.get();
    std::erase_if(all, [](const Variant& v) { return !v.plan; });
    return all;
  }

  // The result that all others must equal.
  void reference() { expected_ = result_of(Plan(context_, task_.problem, {.allow = {"gemm/plain"}})); }
  void time(Variant& variant) {
    variant.equal = result_of(*variant.plan) == expected_;
    const Buffer workspace = workspace_of(*variant.plan);
    std::vector<double> all;
    for (std::size_t i = 0; i < 12; ++i) {
      Event event = run(*variant.plan, sets_[i % sets_.size()], workspace);
      event.wait();
      if (i > 1) all.push_back(1e3 * event.seconds());
    }
    std::sort(all.begin(), all.end());
    variant.milliseconds = all[all.size() / 2];
  }

 private:
  struct Set {
    Buffer a, b, c;
  };
  Buffer empty(std::int64_t elements) const { return context_.allocate(elements * size_of(task_.problem.type)); }
  Buffer filled(std::int64_t elements) {
    const DataType type = task_.problem.type;
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements * size_of(type)));
    std::vector<std::byte> known(static_cast<std::size_t>(7 * size_of(type)));
    for (int value = -3; value <= 3; ++value)
      store_element(type, static_cast<double>(value), &known[static_cast<std::size_t>((value + 3) * size_of(type))]);
    const auto size = static_cast<std::size_t>(size_of(type));
    for (std::size_t i = 0; i < bytes.size(); i += size) std::copy_n(&known[random_() % 7 * size], size, &bytes[i]);
    Buffer buffer = empty(elements);
    queue_.upload(buffer, 0, bytes.data(), static_cast<std::int64_t>(bytes.size())).wait();
    return buffer;
  }
  Buffer workspace_of(const Plan& plan) const { return context_.allocate(plan.workspace_bytes()); }
  Event run(const Plan& plan, const Set& set, const Buffer& workspace) {
    return plan.run(queue_, {{"a", {set.a}}, {"b", {set.b}}, {"c", {set.c}}}, workspace);
  }
  std::vector<std::byte> result_of(const Plan& plan) {
    std::vector<std::byte> found(result_bytes_, std::byte{0xFF});
    queue_.upload(sets_[0].c, 0, found.data(), static_cast<std::int64_t>(found.size())).wait();
    run(plan, sets_[0], workspace_of(plan)).wait();
    queue_.download(found.data(), sets_[0].c, 0, static_cast<std::int64_t>(found.size())).wait();
    return found;
  }

  Context context_;
  Queue queue_;
  operations::GemmTask task_;
  std::mt19937 random_{11};
  std::vector<Set> sets_;
  std::size_t result_bytes_ = 0;
  std::vector<std::byte> expected_;
};

// Whether all results were equal.
bool study(const Context& context, const std::string& text, const devices::Device::Peaks& peaks,
           const std::vector<GemmTile>& more) {
  Study of(context, text);
  of.reference();
  std::vector<GemmTile> tiles(operations::gemm_tiles().begin(), operations::gemm_tiles().end());
  tiles.insert(tiles.end(), more.begin(), more.end());
  std::vector<Variant> all = of.variants(tiles);
  const GemmChoice chosen = of.shipped();
  for (Variant& variant : all) of.time(variant);
  std::sort(all.begin(), all.end(), [](const Variant& a, const Variant& b) { return a.milliseconds < b.milliseconds; });
  fmt::print("\n== {} on {}\n", text, context.device().id);
  int line = 0;
  for (const Variant& variant : all) {
    const bool is_chosen = same(variant.choice, chosen);
    if (++line > 10 && !is_chosen && variant.equal && variant.choice.parts > 1) continue;
    fmt::print("{:8.4f} ms {:6.2f} TFLOP/s {:3.0f} %  expected {:8.4f} ms  {}{}{}\n", variant.milliseconds,
               2e-9 * of.multiply_adds() / variant.milliseconds,
               2e-7 * of.multiply_adds() / (variant.milliseconds * peaks.tflops),
               2e-9 * variant.choice.cost / peaks.tflops, name_of(variant.choice), is_chosen ? "  <- chosen" : "",
               variant.equal ? "" : "  WRONG");
  }
  std::fflush(stdout);
  return std::all_of(all.begin(), all.end(), [](const Variant& v) { return v.equal; });
}

GemmTile parse_tile(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::int64_t> values;
  for (std::string word; std::getline(in, word, ',');) values.push_back(std::atoll(word.c_str()));
  if (values.size() != 6) throw bad_input("--tile " + text + ": six numbers, as in 128,128,16,2,2,2");
  return {values[0], values[1], values[2], values[3], values[4], values[5], {0.9, 0.9, 0.9}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::string device_id = "cuda";
  double seconds = 100;
  std::vector<GemmTile> more;
  std::vector<std::string> problems =
      bench::parse_arguments(argc, argv,
                             {{"--device", [&](const std::string& value) { device_id = value; }},
                              {"--seconds", [&](const std::string& value) { seconds = std::atof(value.c_str()); }},
                              {"--tile", [&](const std::string& value) { more.push_back(parse_tile(value)); }}});
  const Context context = bench::open_gpu(device_id);
  const devices::Device::Peaks peaks = context.impl()->measure_peaks(2);
  fmt::print("{} {}: {:.1f} TFLOP/s, {:.0f} GB/s\n", context.device().id, context.device().name, peaks.tflops,
             peaks.gbps);
  if (problems.empty())
    problems = {"gemm f32 nn m4096n4096k4096",     "gemm f32 nt m4096n4096k4096",      "gemm f32 tn m4096n4096k4096",
                "gemm f32 nn m64n4096k4096",       "gemm f32 nn m4096n64k4096",        "gemm f32 nn m128n4096k4096",
                "gemm f32 nn m4096n128k4096",      "gemm f32 nn m256n3136k2304batch4", "gemm f32 nn m1024n1024k1024",
                "gemm f32 nn m256n49k2304batch64", "gemm f16 nn m4096n4096k4096"};
  const auto began = std::chrono::steady_clock::now();
  bool equal = true;
  for (const std::string& problem : problems) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds) {
      fmt::print("out of time before {}\n", problem);
      continue;
    }
    equal = study(context, problem, peaks, more) && equal;
  }
  return equal ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "gpu_gemm: error: {}\n", error.what());
  return 2;
}
