// The set "shapes": figures of ten kinds, made by integers alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/philox.h"
#include "omniconv/dataset.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr std::int64_t side = 32, channels = 3, most_images = 1 << 20;
constexpr int pixel = 8;    // what a pixel's side measures: points lie on a grid of eighths
constexpr int unit = 64;    // the length of a figure's axes, but for its slant
constexpr int noise = 24;   // at most so much is added to a colour, or taken away
constexpr int samples = 2;  // points of a pixel along each side

enum class Figure : std::uint8_t {
  disk,
  ring,
  square,
  frame,
  triangle,
  cross,
  saltire,
  horizontal_bars,
  vertical_bars,
  checks
};
constexpr std::array names = {"disk",  "ring",    "square",          "frame",         "triangle",
                              "cross", "saltire", "horizontal bars", "vertical bars", "checks"};

// Whether the figure of radius r about the origin covers the point (p, q), p to the right and q down.
bool covers(Figure figure, int p, int q, int r) {
  const int across = std::abs(p), down = std::abs(q), most = std::max(across, down), least = std::min(across, down);
  const std::int64_t square = std::int64_t{p} * p + std::int64_t{q} * q, rim = std::int64_t{r} * r;
  // Which of so many stripes the point lies in, of those that -r to r is divided into.
  const auto stripe = [r](int along, int stripes) { return (along + r) * stripes / (2 * r + 1); };
  switch (figure) {
    case Figure::disk: return square <= rim;
    case Figure::ring: return square <= rim && 64 * square >= 25 * rim;
    case Figure::square: return 8 * most <= 7 * r;
    case Figure::frame: return 8 * most <= 7 * r && 2 * most >= r;
    case Figure::triangle: return 4 * q <= 3 * r && 2 * across <= q + r;
    case Figure::cross: return most <= r && 3 * least <= r;
    case Figure::saltire: return 8 * most <= 7 * r && 3 * (most - least) <= r;
    case Figure::horizontal_bars: return most <= r && stripe(q, 5) % 2 == 0;
    case Figure::vertical_bars: return most <= r && stripe(p, 5) % 2 == 0;
    case Figure::checks: return most <= r && (stripe(p, 4) + stripe(q, 4)) % 2 == 0;
  }
  return false;
}

// An image's numbers, one after the other.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint32_t image, std::uint32_t part) : stream_(seed, PhiloxUse::shapes, image, part) {}
  std::uint32_t word() { return stream_.word(next_++); }
  // From `least` to `most`.
  int between(int least, int most) {
    return least + static_cast<int>(std::uint64_t{word()} * static_cast<std::uint64_t>(most - least + 1) >> 32);
  }

 private:
  PhiloxStream stream_;
  std::uint64_t next_ = 0;
};

// How many of a pixel's points a figure covers, whose axes are (unit, slant) and (-slant, unit).
struct Placed {
  Figure figure;
  int radius, slant, across, down;  // radius and centre in eighths of a pixel

  int points(int row, int column) const {
    int covered = 0;
    for (int i = 0; i < samples; ++i)
      for (int j = 0; j < samples; ++j) {
        const int y = row * pixel + (2 * i + 1) * pixel / (2 * samples) - down,
                  x = column * pixel + (2 * j + 1) * pixel / (2 * samples) - across;
        covered += covers(figure, x * unit + y * slant, y * unit - x * slant, radius * unit) ? 1 : 0;
      }
    return covered;
  }
};

void draw_image(Draw draw, Figure figure, std::uint8_t* to) {
  Placed placed{.figure = figure,
                .radius = draw.between(7 * pixel, 11 * pixel),
                .slant = draw.between(-unit / 4, unit / 4),
                .across = 0,
                .down = 0};
  const int middle = static_cast<int>(side) * pixel / 2, room = 15 * pixel - placed.radius;
  placed.across = middle + draw.between(-room, room), placed.down = middle + draw.between(-room, room);
  // Any background; the figure's colour lies 96 to 160 from it in each channel, above or below.
  std::array<int, channels> behind{}, colour{};
  for (std::size_t c = 0; c < channels; ++c) {
    behind[c] = draw.between(0, 255);
    colour[c] = (behind[c] + draw.between(96, 160)) % 256;
  }
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column) {
      constexpr int all = samples * samples;
      const int covered = placed.points(row, column);
      const std::uint32_t word = draw.word();
      for (std::size_t c = 0; c < channels; ++c) {
        const auto bits = static_cast<int>(word >> 10 * c & 1023);
        const int clean = (behind[c] * (all - covered) + colour[c] * covered) / all;
        const int noisy = clean + (bits * (2 * noise + 1) >> 10) - noise;
        to[(static_cast<std::int64_t>(c) * side + row) * side + column] =
            static_cast<std::uint8_t>(std::clamp(noisy, 0, 255));
      }
    }
}

Examples make_examples(std::int64_t count, const char* of, std::uint64_t seed, std::uint32_t part) {
  if (count < 0 || count > most_images)
    throw bad_input(fmt::format("shapes: {} images for {}: must be 0 to {}", count, of, most_images));
  Examples examples{.count = count};
  examples.pixels.resize(static_cast<std::size_t>(count * channels * side * side));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(i % static_cast<std::int64_t>(names.size()));
    examples.labels.push_back(label);
    draw_image(Draw(seed, static_cast<std::uint32_t>(i), part), static_cast<Figure>(label),
               examples.pixels.data() + i * channels * side * side);
  }
  return examples;
}

}  // namespace

Dataset make_shapes(std::int64_t train_images, std::int64_t test_images, std::uint64_t seed) {
  return {.name = "shapes",
          .channels = channels,
          .height = side,
          .width = side,
          .classes = {names.begin(), names.end()},
          .train = make_examples(train_images, "training", seed, 0),
          .test = make_examples(test_images, "the test", seed, 1),
          .origin = fmt::format("made of seed {}", seed)};
}

}  // namespace omniconv
