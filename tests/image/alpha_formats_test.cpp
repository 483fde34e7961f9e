// Opacity in the formats of the image module: apart (PNG), multiplied in (TIFF), and in pictures that lie on their
// side.
#include "alpha_testing.h"

namespace omniconv::image {
namespace {

FilterJob blur(const TemporaryFolder& folder, const std::string& in, const std::string& out) {
  FilterJob job;
  job.input = folder.file(in);
  job.output = folder.file(out);
  job.kernel = parse_kernel("3x4: 1,2,3, 4,5,6, 7,8,9, 1,2,1");
  job.scale = 1.0 / 49;
  return job;
}

TEST(OpacityInFormats, PngIsPremultipliedWhileItIsFiltered) {
  const TemporaryFolder folder;
  const Context cpu({.device = "cpu", .threads = 2});
  const Image image = image_with_opacity(31, 22, 4, 4);
  const FilterJob job = blur(folder, "in.png", "out.png");
  write_image(job.input, image);
  const FilterReport report = filter_file(cpu, job, {});
  EXPECT_EQ(report.problem.alpha_channel, 3);
  EXPECT_TRUE(read_image(job.output).pixels == defined(image, report, 3));
}

TEST(OpacityInFormats, ColorsThatAreMultipliedAlreadyAreFilteredAsTheyAre) {
  const TemporaryFolder folder;
  const Context cpu({.device = "cpu", .threads = 2});
  Image image = image_with_opacity(31, 22, 4, 5);
  image.info.associated_alpha = true;
  const FilterJob job = blur(folder, "in.tif", "out.tif");
  write_image(job.input, image);
  const FilterReport report = filter_file(cpu, job, {});
  EXPECT_EQ(report.problem.alpha_channel, -1);
  EXPECT_TRUE(read_image(job.output).pixels == defined(image, report, -1));
}

TEST(OpacityInFormats, PicturesOnTheirSide) {
  const TemporaryFolder folder;
  const Context cpu({.device = "cpu", .threads = 2});
  for (const int orientation : {3, 6, 8}) {
    Image image = image_with_opacity(31, 22, 4, 6);
    image.info.orientation = orientation;
    FilterJob job = blur(folder, "in.tif", "out.tif");
    job.strip_rows = 5;
    write_image(job.input, image);
    const FilterReport report = filter_file(cpu, job, {});
    EXPECT_EQ(report.problem.alpha_channel, 3);
    EXPECT_EQ(report.problem.r, orientation == 3 ? 4 : 3);
    EXPECT_TRUE(read_image(job.output).pixels == defined(image, report, 3)) << orientation;
  }
}

}  // namespace
}  // namespace omniconv::image
