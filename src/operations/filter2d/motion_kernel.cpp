#include "operations/filter2d/motion_kernel.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace omniconv {
namespace {

struct Point {
  double along = 0, across = 0;
};

// What is left of a convex polygon where coordinate * sign <= limit.
std::vector<Point> cut(const std::vector<Point>& polygon, double Point::*coordinate, double sign, double limit) {
  std::vector<Point> result;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point& from = polygon[i];
    const Point& to = polygon[(i + 1) % polygon.size()];
    const double before = limit - sign * from.*coordinate, after = limit - sign * to.*coordinate;
    if (before >= 0) result.push_back(from);
    if ((before < 0) != (after < 0)) {
      const double t = before / (before - after);
      result.push_back({from.along + t * (to.along - from.along), from.across + t * (to.across - from.across)});
    }
  }
  return result;
}

double area(const std::vector<Point>& polygon) {
  double twice = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    twice += a.along * b.across - b.along * a.across;
  }
  return std::abs(twice) / 2;
}

// How much of the pixel (x, y) lies in the rectangle |along| <= length / 2, |across| <= 1 / 2 around the origin.
double coverage(double x, double y, double cosine, double sine, double length) {
  constexpr double half_diagonal = 0.7072;
  const auto turned = [&](double px, double py) { return Point{px * cosine - py * sine, px * sine + py * cosine}; };
  const Point centre = turned(x, y);
  if (std::abs(centre.along) > length / 2 + half_diagonal || std::abs(centre.across) > 0.5 + half_diagonal) return 0;
  std::vector<Point> polygon = {turned(x - 0.5, y - 0.5), turned(x + 0.5, y - 0.5), turned(x + 0.5, y + 0.5),
                                turned(x - 0.5, y + 0.5)};
  for (const double sign : {-1.0, 1.0}) {
    polygon = cut(polygon, &Point::along, sign, length / 2);
    polygon = cut(polygon, &Point::across, sign, 0.5);
  }
  return area(polygon);
}

}  // namespace

Kernel motion_kernel(double length, double degrees) {
  const double turn = std::fmod(degrees, 180);  // exact; the line is its own half-turn
  const bool vertical = std::abs(turn) == 90;
  const double cosine = vertical ? 0 : std::cos(turn * 3.14159265358979323846 / 180);
  const double sine = vertical ? 1 : std::sin(turn * 3.14159265358979323846 / 180);
  const auto radius = [&](double own, double other) {  // 1e-9: a sliver that is only rounding makes no column
    return static_cast<std::int64_t>(std::ceil((length * std::abs(own) + std::abs(other)) / 2 - 0.5 - 1e-9));
  };
  const std::int64_t rows = 2 * radius(sine, cosine) + 1, columns = 2 * radius(cosine, sine) + 1;
  Kernel kernel{.r = rows, .s = columns, .weights = std::vector<double>(static_cast<std::size_t>(rows * columns))};
  const std::size_t count = kernel.weights.size();
  for (std::size_t i = 0; i <= count / 2; ++i) {
    const double y = static_cast<double>(static_cast<std::int64_t>(i) / columns) - static_cast<double>(rows - 1) / 2;
    const double x = static_cast<double>(static_cast<std::int64_t>(i) % columns) - static_cast<double>(columns - 1) / 2;
    kernel.weights[i] = kernel.weights[count - 1 - i] = coverage(x, y, cosine, sine, length);
  }
  normalize(kernel);
  return kernel;
}

}  // namespace omniconv
