#include "operations/batch_norm/reference/channel.h"

#include <cmath>

#include "core/convert.h"
#include "operations/batch_norm/batch_norm.h"

namespace omniconv::reference {
namespace {

// Calls with(place) for the places of a channel's elements, in their order.
template <typename With>
void for_each_place(const BatchNormProblem& problem, std::int64_t channel, const With& with) {
  const operations::NormPlanes planes(problem);
  for (std::int64_t plane = 0; plane < planes.planes; ++plane)
    for (std::int64_t k = 0; k < planes.inner; ++k) with((plane * problem.c + channel) * planes.inner + k);
}

template <typename Real>
bool is_positive_as(double x, const ChannelNumbers& numbers) {
  const auto difference = static_cast<Real>(x) - static_cast<Real>(numbers.mean);
  const auto scale = static_cast<Real>(numbers.gamma) * static_cast<Real>(numbers.invstd);
  return difference * scale + static_cast<Real>(numbers.beta) > 0;
}

}  // namespace

ChannelMoments channel_moments(const BatchNormProblem& problem, const std::byte* x, std::int64_t channel) {
  const operations::NormPlanes planes(problem);
  const auto count = static_cast<double>(planes.positions());
  const auto number = [&](std::int64_t place) { return load_element(problem.type, x + place * size_of(problem.type)); };
  const double first = number(channel * planes.inner);
  ChannelMoments moments;
  double sum = 0;
  for_each_place(problem, channel, [&](std::int64_t place) {
    const double difference = number(place) - first;
    sum += difference, moments.distance += std::fabs(difference), moments.square_distance += difference * difference;
  });
  const double mean = sum / count;
  double squares = 0;
  for_each_place(problem, channel, [&](std::int64_t place) {
    const double deviation = number(place) - first - mean;
    squares += deviation * deviation;
  });
  moments.mean = first + mean, moments.variance = squares / count;
  moments.distance /= count, moments.square_distance /= count;
  return moments;
}

bool is_positive(DataType type, double x, const ChannelNumbers& numbers) {
  return type == DataType::f64 ? is_positive_as<double>(x, numbers) : is_positive_as<float>(x, numbers);
}

ChannelSums channel_sums(const BatchNormProblem& problem, const std::byte* x, const std::byte* dy, std::int64_t channel,
                         const ChannelNumbers& numbers) {
  const std::int64_t size = size_of(problem.type);
  ChannelSums sums;
  for_each_place(problem, channel, [&](std::int64_t place) {
    const double of_x = load_element(problem.type, x + place * size);
    const double g = passed_gradient(problem, of_x, load_element(problem.type, dy + place * size), numbers);
    const double product = g * (of_x - numbers.mean);
    sums.g += g, sums.product += product;
    sums.magnitude += std::fabs(g), sums.product_magnitude += std::fabs(product);
  });
  return sums;
}

}  // namespace omniconv::reference
