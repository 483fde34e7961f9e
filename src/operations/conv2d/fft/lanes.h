// Which lane of a vector is which tile, channel or filter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "operations/conv2d/fft/fft.h"
#include "operations/conv2d/fft/transforms.h"

namespace omniconv::operations {

// Images of x or y.
template <typename Real>
struct FftImages {
  Real* data;
  std::int64_t channels, h, w;
  bool nhwc;

  Real* plane(std::int64_t image, std::int64_t channel) const {
    return nhwc ? data + image * h * w * channels + channel : data + (image * channels + channel) * h * w;
  }
  std::int64_t row_pitch() const { return nhwc ? w * channels : w; }
  std::int64_t pixel_pitch() const { return nhwc ? channels : 1; }
};

// What is read of a tile at `place`: it begins so far before, and has this extent.
struct FftWindow {
  std::int64_t top, left, rows, columns;
};
inline FftWindow source_window(const FftShape& shape) {
  // No more than outputs read, where these are fewer than a tile has room for.
  return {shape.top, shape.left, std::min(shape.tile_h, shape.target_h) + shape.taps_h - 1,
          std::min(shape.tile_w, shape.target_w) + shape.taps_w - 1};
}
inline FftWindow target_window(const FftShape& shape) {
  return {0, 0, shape.tile_h, shape.tile_w};
}

template <typename Real>
FftSource<Real> read_images(const FftImages<const Real>& images, const FftWindow& window, std::int64_t count) {
  return {.count = count,
          .h = images.h,
          .w = images.w,
          .row_pitch = images.row_pitch(),
          .pixel_pitch = images.pixel_pitch(),
          .rows = window.rows,
          .columns = window.columns};
}
template <typename Real>
void read_lane(FftSource<Real>& source, std::size_t lane, const Real* plane, const FftShape::Place& place,
               const FftWindow& window) {
  source.from[lane] = plane;
  source.row[lane] = place.row - window.top;
  source.column[lane] = place.column - window.left;
}

// Tiles [first, first + count) of one channel.
template <typename Real>
FftSource<Real> read_tiles(const FftShape& shape, const FftImages<const Real>& images, const FftWindow& window,
                           std::int64_t channel, std::int64_t first, std::int64_t count) {
  FftSource<Real> source = read_images(images, window, count);
  for (std::int64_t lane = 0; lane < count; ++lane) {
    const FftShape::Place place = shape.place(first + lane);
    read_lane(source, static_cast<std::size_t>(lane), images.plane(place.image, channel), place, window);
  }
  return source;
}

// Channels [first, first + count) of one tile.
template <typename Real>
FftSource<Real> read_channels(const FftShape& shape, const FftImages<const Real>& images, const FftWindow& window,
                              std::int64_t tile, std::int64_t first, std::int64_t count) {
  FftSource<Real> source = read_images(images, window, count);
  source.adjacent = images.nhwc;
  const FftShape::Place place = shape.place(tile);
  for (std::int64_t lane = 0; lane < count; ++lane)
    read_lane(source, static_cast<std::size_t>(lane), images.plane(place.image, first + lane), place, window);
  return source;
}

// What outputs become before they are stored.
template <typename Real>
struct FftFinish {
  const Real* bias = nullptr;
  bool accumulate = false, relu = false;
};

template <typename Real>
FftTarget<Real> write_images(const FftShape& shape, const FftImages<Real>& images, const FftFinish<Real>& finish,
                             std::int64_t count) {
  FftTarget<Real> target;
  target.count = count;
  target.row_pitch = images.row_pitch(), target.pixel_pitch = images.pixel_pitch();
  target.top = shape.turned ? shape.taps_h - 1 : 0, target.left = shape.turned ? shape.taps_w - 1 : 0;
  target.accumulate = finish.accumulate, target.relu = finish.relu;
  return target;
}
template <typename Real>
void write_lane(FftTarget<Real>& target, std::int64_t lane, const FftShape& shape, const FftImages<Real>& images,
                const FftShape::Place& place, std::int64_t channel, const FftFinish<Real>& finish) {
  const auto l = static_cast<std::size_t>(lane);
  target.to[l] =
      images.plane(place.image, channel) + place.row * images.row_pitch() + place.column * images.pixel_pitch();
  target.rows[l] = std::min(shape.tile_h, shape.target_h - place.row);
  target.columns[l] = std::min(shape.tile_w, shape.target_w - place.column);
  if (finish.bias != nullptr) target.bias[l] = finish.bias[channel];
}

template <typename Real>
FftTarget<Real> write_tiles(const FftShape& shape, const FftImages<Real>& images, const FftFinish<Real>& finish,
                            std::int64_t channel, std::int64_t first, std::int64_t count) {
  FftTarget<Real> target = write_images(shape, images, finish, count);
  for (std::int64_t lane = 0; lane < count; ++lane)
    write_lane(target, lane, shape, images, shape.place(first + lane), channel, finish);
  return target;
}

template <typename Real>
FftTarget<Real> write_channels(const FftShape& shape, const FftImages<Real>& images, const FftFinish<Real>& finish,
                               std::int64_t tile, std::int64_t first, std::int64_t count) {
  FftTarget<Real> target = write_images(shape, images, finish, count);
  target.adjacent = images.nhwc;
  for (std::int64_t lane = 0; lane < count; ++lane)
    write_lane(target, lane, shape, images, shape.place(tile), first + lane, finish);
  return target;
}

// Filters of targets [first, first + count) of a group for one of its sources; the problem's k and c are either.
template <typename Real>
FftSource<Real> read_filters(const Conv2dShape& g, const Real* w, bool to_data, std::int64_t group, std::int64_t source,
                             std::int64_t first, std::int64_t count) {
  FftSource<Real> taps{.count = count,
                       .h = g.r,
                       .w = g.s,
                       .row_pitch = g.nhwc ? g.s * g.c_group : g.s,
                       .pixel_pitch = g.nhwc ? g.c_group : 1,
                       .rows = g.r,
                       .columns = g.s,
                       .adjacent = g.nhwc && to_data};
  for (std::int64_t lane = 0; lane < count; ++lane)
    taps.from[static_cast<std::size_t>(lane)] = w + (to_data ? g.w_at(group * g.k_group + source, first + lane, 0, 0)
                                                             : g.w_at(group * g.k_group + first + lane, source, 0, 0));
  return taps;
}

// The gradients of `count` channels of a filter, at places that are to be set. Where taps are turned their sums run
// round the tile's edge.
template <typename Real>
FftTarget<Real> write_taps(const Conv2dShape& g, const FftShape& shape, bool accumulate, std::int64_t count) {
  FftTarget<Real> target;
  target.count = count;
  target.row_pitch = g.nhwc ? g.s * g.c_group : g.s, target.pixel_pitch = g.nhwc ? g.c_group : 1;
  if (shape.turned) target.top = (shape.side - g.r + 1) % shape.side, target.left = (shape.side - g.s + 1) % shape.side;
  target.adjacent = g.nhwc;
  target.accumulate = accumulate;
  target.rows.fill(g.r), target.columns.fill(g.s);
  return target;
}

}  // namespace omniconv::operations
