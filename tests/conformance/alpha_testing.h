// What the tests of premultiplied alpha share, for any device.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "conformance.h"
#include "core/convert.h"
#include "omniconv/error.h"
#include "operations/filter2d/weights.h"

namespace omniconv {

inline Filter2dProblem filter_problem(const std::string& text) {
  return get<Filter2dProblem>(parse_problem(text));
}

// The output of a whole image, through the device's own memory.
inline std::vector<std::byte> run_bytes(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                        const std::vector<std::byte>& image) {
  const Filter2dPlan plan(context, problem, filter);
  Queue queue = context.make_queue();
  std::vector<std::byte> result(
      static_cast<std::size_t>(P(problem) * Q(problem) * problem.c * size_of(problem.output)));
  const Buffer input = context.allocate(static_cast<std::int64_t>(image.size()));
  const Buffer output = context.allocate(static_cast<std::int64_t>(result.size()));
  const Buffer workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  queue.upload(input, 0, image.data(), input.bytes());
  plan.run(queue, {.input = input, .output = output, .workspace = workspace});
  queue.download(result.data(), output, 0, output.bytes()).wait();
  return result;
}

// u8 in, T out.
template <typename T>
std::vector<T> run_on(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                      const std::vector<std::uint8_t>& pixels) {
  std::vector<std::byte> image(pixels.size());
  std::memcpy(image.data(), pixels.data(), pixels.size());
  const std::vector<std::byte> bytes = run_bytes(context, problem, filter, image);
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

// An image of full opacity in channel `alpha`: its colours must come out as under the plain problem, its opacity full.
inline void expect_opaque_as_plain(const Context& context, const std::string& plain_text, int alpha) {
  const Filter2dProblem plain = filter_problem(plain_text);
  Filter2dProblem problem = plain;
  problem.alpha_channel = alpha;
  const Filter filter = filter_for(plain);
  std::vector<std::byte> image(static_cast<std::size_t>(plain.h * plain.w * plain.c * size_of(plain.input)));
  fill_random({plain, analyse(plain, filter)}, 5, image);
  for (std::int64_t i = 0; i < plain.h * plain.w; ++i)
    store_element(plain.input, highest_value(plain.input), image.data() + (i * plain.c + alpha) * size_of(plain.input));
  std::vector<std::byte> expected = run_bytes(context, plain, filter, image);
  const double full = is_integer(plain.output) ? highest_value(plain.output) : 1;
  for (std::int64_t i = 0; i < P(plain) * Q(plain); ++i)
    store_element(plain.output, full, expected.data() + (i * plain.c + alpha) * size_of(plain.output));
  EXPECT_EQ(run_bytes(context, problem, filter, image), expected) << to_text(problem) << " on " << context.device().id;
}

}  // namespace omniconv
