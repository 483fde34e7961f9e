// Files with opacity through the pipeline: strips, borders, and what --alpha says.
#include "alpha_testing.h"
#include "image/opacity_dropped.h"

namespace omniconv::image {
namespace {

class OpacityInFiles : public testing::Test {
 protected:
  // The output's pixels, and the report.
  FilterReport run(const Image& image, FilterJob job, std::vector<std::byte>& pixels) {
    job.input = folder_.file("in.pam");
    job.output = folder_.file("out.pam");
    write_image(job.input, image);
    const FilterReport report = filter_file(cpu_, job, {});
    pixels = read_image(job.output).pixels;
    return report;
  }

  TemporaryFolder folder_;
  const Context cpu_{{.device = "cpu", .threads = 2}};
};

TEST_F(OpacityInFiles, StripsAndBordersGiveTheDefinition) {
  std::vector<std::byte> pixels;
  for (const std::int64_t c : {2, 4}) {
    const Image image = image_with_opacity(23, 17, c, 1);
    for (const char* kernel : {"gaussian:5,1.1", "box:4", "sharpen", "4x3: 1,2,3,4, 5,6,7,8, 9,1,2,3"})
      for (const char* border : {"constant:9", "replicate", "reflect", "reflect101", "wrap", "valid"})
        for (const std::int64_t rows : {1, 7, 0}) {
          FilterJob job;
          job.kernel = parse_kernel(kernel);
          job.border = parse_border(border);
          job.strip_rows = rows;
          const FilterReport report = run(image, job, pixels);
          EXPECT_EQ(report.problem.alpha_channel, c - 1);
          EXPECT_TRUE(pixels == defined(image, report, c - 1)) << kernel << ' ' << border << " strips of " << rows;
        }
  }
}

// What the solver does with weights that sum to zero, the pipeline does with a copy of its own.
TEST_F(OpacityInFiles, EdgeFiltersKeepOpacity) {
  std::vector<std::byte> pixels, copied;
  const Image image = image_with_opacity(23, 17, 4, 2);
  for (const char* kernel : {"sobel-x", "laplacian", "log:5,1"})
    for (const char* border : {"replicate", "wrap", "valid"})
      for (const std::int64_t rows : {1, 0}) {
        FilterJob job;
        job.kernel = parse_kernel(kernel);
        job.border = parse_border(border);
        job.strip_rows = rows;
        job.bias = 100;
        const FilterReport report = run(image, job, pixels);
        EXPECT_EQ(report.problem.alpha_channel, -1);
        EXPECT_TRUE(pixels == defined(image, report, 3)) << kernel << ' ' << border;
        job.alpha = Alpha::ignore;
        run(image, job, copied);
        EXPECT_TRUE(pixels == copied) << kernel << ' ' << border;
      }
}

TEST_F(OpacityInFiles, FilterTreatsAllChannelsAlike) {
  std::vector<std::byte> pixels;
  const Image image = image_with_opacity(9, 8, 4, 3);
  FilterJob job;
  job.kernel = parse_kernel("gaussian:3");
  job.alpha = Alpha::filter;
  const FilterReport report = run(image, job, pixels);
  EXPECT_EQ(report.problem.alpha_channel, -1);
  EXPECT_TRUE(pixels == defined(image, report, -1));
}

// Full opacity is the file's own maximum.
TEST_F(OpacityInFiles, TheMaximumOfAFileIsFullOpacity) {
  Image image;
  image.info.h = 1, image.info.w = 3, image.info.c = 2;
  image.info.type = DataType::u16;
  image.info.alpha_channel = 1;
  image.info.max_value = 1000;
  const std::vector<std::uint16_t> stored = {100, 1000, 900, 0, 300, 1000};
  image.pixels.resize(12);
  std::memcpy(image.pixels.data(), stored.data(), 12);
  FilterJob job;
  job.input = folder_.file("in.pam");
  job.output = folder_.file("out.pam");
  job.kernel = parse_kernel("3x1: 0.25,0.5,0.25");
  write_image(job.input, image);
  filter_file(cpu_, job, {});
  EXPECT_EQ(values<std::uint16_t>(read_image(job.output)), (std::vector<std::uint16_t>{100, 750, 200, 500, 300, 750}));
}

TEST_F(OpacityInFiles, IsFullAtTheMaximumOfTheFile) {
  const auto opaque = [&](const std::string& maximum, const std::string& pixels) {
    write_file(folder_.file("a.pam"),
               "P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL " + maximum + "\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n" + pixels);
    return is_opaque(*open_image(folder_.file("a.pam")));
  };
  EXPECT_TRUE(opaque("100", "\1\x64\2\x64"));
  EXPECT_FALSE(opaque("100", "\1\x64\2\x63"));
  EXPECT_TRUE(opaque("255", "\1\xFF\2\xFF"));
  EXPECT_FALSE(opaque("255", "\1\x64\2\x64"));
}

}  // namespace
}  // namespace omniconv::image
