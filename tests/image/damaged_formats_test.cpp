// Damaged files of formats that need the image module: one error, and nothing else on the standard error.
#include <OpenImageIO/imageio.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "files.h"
#include "handmade.h"
#include "image/formats/module.h"
#include "image/formats/oiio/libpng_silence.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;

// What reaches descriptor 2, whoever writes it.
class StandardError {
 public:
  explicit StandardError(const std::string& path) : path_(path), real_(::dup(STDERR_FILENO)) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~StandardError() {
    ::dup2(real_, STDERR_FILENO);
    ::close(real_);
  }
  std::string text() const { return read_file(path_); }

 private:
  std::string path_;
  int real_;
};

class DamagedFormats : public ::testing::Test {
 protected:
  // The message, less the path, with which `content` is refused; empty if it is read.
  std::string refusal(const std::string& content, const std::string& name = "image") const {
    const std::string path = folder_.file(name);
    write_file(path, content);
    const StandardError captured(folder_.file("stderr"));
    std::string message;
    try {
      read_rows(path);
    } catch (const Error& error) {
      message = error.what();
      EXPECT_TRUE(message.starts_with(path)) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      message.erase(0, path.size());
    }
    EXPECT_EQ(captured.text(), "") << message;
    return message;
  }
  int refusals_of_damage(const std::string& whole, const std::string& name, std::mt19937& random,
                         std::size_t begin = 0) const;
  // Not whole, which would need memory for as much as a damaged header claims. Files whose name has no extension are
  // read by the module for all formats, whatever they are.
  static void read_rows(const std::string& path) {
    constexpr std::int64_t any_memory = std::numeric_limits<std::int64_t>::max();
    const auto reader =
        std::filesystem::path(path).has_extension() ? open_image(path) : image_module(path).open(path, 0, any_memory);
    const std::int64_t bytes = bytes_per_row(reader->info()), h = std::min<std::int64_t>(reader->info().h, 1000);
    const std::int64_t few = std::clamp<std::int64_t>((1 << 20) / bytes, 1, 9);
    std::vector<std::byte> rows(static_cast<std::size_t>(few * bytes));
    for (std::int64_t y = 0; y < h; y += few) reader->read_rows(y, std::min(few, h - y), rows.data(), bytes);
  }
  std::string content_of(std::string_view name, const Image& image, const WriteOptions& options = {}) const {
    write_image(folder_.file(name), image, image.info.h, options);
    return read_file(folder_.file(name));
  }

  TemporaryFolder folder_;
};

// A decoder that believes a damaged extent sets aside gigabytes, which an address sanitizer marks byte by byte: fewer
// there.
#if defined(__SANITIZE_ADDRESS__)
constexpr int damages = 30;
#else
constexpr int damages = 300;
#endif

// How many copies of `whole` are refused in which one bit is changed: anywhere, and in every second one within 200
// bytes from `begin` on.
int DamagedFormats::refusals_of_damage(const std::string& whole, const std::string& name, std::mt19937& random,
                                       std::size_t begin) const {
  int refused = 0;
  for (int round = 0; round < damages && !HasFailure(); ++round) {
    std::string changed = whole;
    const std::size_t range = round % 2 == 0 ? whole.size() : std::min<std::size_t>(whole.size() - begin, 200);
    changed[(round % 2 == 0 ? 0 : begin) + random() % range] ^= static_cast<char>(1 << random() % 8);
    refused += refusal(changed, name).empty() ? 0 : 1;
    EXPECT_FALSE(HasFailure()) << name << ' ' << round;
  }
  return refused;
}

TEST_F(DamagedFormats, ExtentsOfPng) {
  const auto says = [&](std::uint32_t w, std::uint32_t h) { return refusal(png(w, h, 8, 0, 0, "\0\1"s)); };
  const auto refused = [](const std::string& extents) {
    return ": its header says " + extents + "; a PNG file is read with 1 to 1000000 of each";
  };
  EXPECT_EQ(says(1, 1), "");
  EXPECT_EQ(says(0, 1), refused("1 rows and 0 columns"));
  EXPECT_EQ(says(1, 0), refused("0 rows and 1 columns"));
  EXPECT_EQ(says(2000000000, 2000000000), refused("2000000000 rows and 2000000000 columns"));
  EXPECT_EQ(says(1000001, 1), refused("1 rows and 1000001 columns"));
  EXPECT_TRUE(says(1000000, 1).starts_with(" is damaged or cut short: "));
}

TEST_F(DamagedFormats, HeadersOfPng) {
  const auto refused = [](const std::string& what) {
    return " is damaged: its header says " + what + ", which PNG has not";
  };
  EXPECT_EQ(refusal(png(1, 1, 3, 0, 0, "\0\1"s)),
            refused("3 bits of the colour type 0, compression 0, filter 0 and interlacing 0"));
  EXPECT_EQ(refusal(png(1, 1, 8, 5, 0, "\0\1"s)),
            refused("8 bits of the colour type 5, compression 0, filter 0 and interlacing 0"));
  EXPECT_EQ(refusal(png(1, 1, 16, 3, 0, "\0\1"s)),
            refused("16 bits of the colour type 3, compression 0, filter 0 and interlacing 0"));
  EXPECT_EQ(refusal(png(1, 1, 4, 2, 0, "\0\1"s)),
            refused("4 bits of the colour type 2, compression 0, filter 0 and interlacing 0"));
  EXPECT_EQ(refusal(png(1, 1, 8, 0, 2, "\0\1"s)),
            refused("8 bits of the colour type 0, compression 0, filter 0 and interlacing 2"));
  EXPECT_EQ(refusal("\x89PNG\r\n\x1a\n" + png_chunk("IDAT", "") + png_chunk("IEND", "")),
            " is damaged: it begins with 0 bytes of \"IDAT\", where PNG has 13 of \"IHDR\"");
}

TEST_F(DamagedFormats, EveryByteOfPng) {
  // Long enough for a chunk of several steps of eight bytes.
  const std::string whole = content_of("a.png", random_image(9, 7, 3, DataType::u8, 1));
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_NE(refusal(changed), "") << i;
  }
  const std::size_t pixels = whole.find("IDAT");
  std::string changed = whole;
  changed[pixels + 20] = static_cast<char>(changed[pixels + 20] ^ 1);
  const auto length =
      static_cast<unsigned char>(whole[pixels - 1]) + 256 * static_cast<unsigned char>(whole[pixels - 2]);
  EXPECT_EQ(refusal(changed), " is damaged: the " + std::to_string(length) + " bytes of its chunk \"IDAT\" at byte " +
                                  std::to_string(pixels - 4) + " do not match their checksum");
}

// Its checksums are right, so that libpng itself must find what is wrong.
TEST_F(DamagedFormats, PngThatOnlyLibpngRefuses) {
  const std::string begin = png(2, 2, 8, 0, 0, "").substr(0, 33), end = png_chunk("IEND", "");
  const std::string rows = zlib_stored("\0\1\2\0\3\4"s);
  ASSERT_EQ(refusal(begin + png_chunk("IDAT", rows) + end), "");
  std::string no_zlib = rows;
  no_zlib[0] = '\0';
  for (const std::string& content :
       {begin + end, begin + png_chunk("IDAT", no_zlib) + end, begin + png_chunk("IDAT", zlib_stored("\0\1\2"s)) + end,
        begin + png_chunk("ABCD", "critical and unknown") + png_chunk("IDAT", rows) + end,
        png(2, 2, 8, 3, 0, "\0\0\0\0\0\0"s), png(2, 2, 8, 0, 0, "\x09\1\2\0\3\4"s)}) {
    EXPECT_TRUE(refusal(content).starts_with(" is damaged or cut short: ")) << testing::PrintToString(content);
    EXPECT_EQ(refusal(content, "image.png"), refusal(content)) << testing::PrintToString(content);
  }
  // Of these it only warns.
  EXPECT_EQ(
      refusal(begin + png_chunk("gAMA", "short") + png_chunk("iCCP", "no profile") + png_chunk("IDAT", rows) + end),
      "");
}

TEST_F(DamagedFormats, NothingIsPrinted) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a process that asks for gigabytes, as decoders of damaged extents do";
#endif
  const Image colors = random_image(36, 40, 3, DataType::u8, 1), light = random_image(36, 40, 3, DataType::f32, 1);
  std::mt19937 random(20240607);
  for (const std::string extension : {"png", "jpg", "tif", "bmp", "tga", "webp", "jp2", "exr", "hdr"}) {
    const bool is_light = extension == "exr" || extension == "hdr";
    const WriteOptions options{.compression = extension == "tif" ? "zip" : ""};  // without, pixels cannot be damaged
    const std::string whole = content_of("a." + extension, is_light ? light : colors, options);
    EXPECT_GT(refusals_of_damage(whole, "image", random), 0) << extension;
  }
}

// By their names these come to the module for plain files first.
TEST_F(DamagedFormats, NothingIsPrintedOfPlainFiles) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a process that asks for gigabytes, as decoders of damaged extents do";
#endif
  const Image colors = random_image(36, 40, 3, DataType::u8, 1);
  std::mt19937 random(20240607);
  for (const std::string name : {"image.jpg", "image.tif", "image.png"}) {
    const WriteOptions options{.compression = name == "image.tif" ? "zip" : ""};
    EXPECT_GT(refusals_of_damage(content_of(name, colors, options), name, random), 0) << name;
  }
  for (const std::string compression : {"none", "lzw"}) {
    OIIO::ImageSpec spec(40, 36, 3, OIIO::TypeDesc::UINT8);
    spec.attribute("compression", compression);
    if (compression == "lzw") spec.tile_width = spec.tile_height = 16;
    const auto output = OIIO::ImageOutput::create(folder_.file("image.tif"));
    ASSERT_TRUE(output->open(folder_.file("image.tif"), spec) &&
                output->write_image(spec.format, colors.pixels.data()) && output->close());
    const std::string whole = read_file(folder_.file("image.tif"));
    ASSERT_NE(plain_module()->open(folder_.file("image.tif"), 0, 1 << 20), nullptr);
    refusals_of_damage(whole, "image.tif", random);
    // Its directory, which says all but the pixels, stands at its end.
    const std::size_t directory = whole.size() - 240;
    refusals_of_damage(whole, "image.tif", random, directory);
  }
}

// Pixels that cannot be decoded: only the decoder sees it.
TEST_F(DamagedFormats, CompressedPixels) {
  const Image image = random_image(36, 40, 3, DataType::u8, 1);
  std::string tiff = content_of("a.tif", image, {.compression = "zip"}), jpeg = content_of("a.jpg", image);
  ASSERT_NE(plain_module(), nullptr);
  for (const char* name : {"a.tif", "a.jpg"})
    ASSERT_NE(plain_module()->open(folder_.file(name), 0, 1 << 20), nullptr) << name;
  const std::string half = jpeg.substr(0, jpeg.size() / 2);
  for (std::size_t i = 500; i < 540; ++i) tiff[i] = '\xFF';
  jpeg.replace(jpeg.size() / 2, 2, "\xFF\xD9");  // an end too early
  // By either module.
  for (const std::string end : {"", ".tif", ".jpg"}) {
    const std::string of_tiff = refusal(tiff, "image" + end), of_jpeg = refusal(jpeg, "image" + end),
                      of_half = refusal(half, "image" + end);
    for (const std::string& message : {of_tiff, of_jpeg, of_half})
      EXPECT_TRUE(message.starts_with(" is damaged or cut short: ")) << end << message;
    EXPECT_NE(of_jpeg.find("Corrupt JPEG data: premature end of data segment"), std::string::npos) << end << of_jpeg;
    EXPECT_NE(of_half.find("Premature end of JPEG file"), std::string::npos) << end << of_half;
  }
}

TEST_F(DamagedFormats, FilesThatShrinkWhileTheyAreRead) {
  const Image image = random_image(300, 300, 3, DataType::u8, 1);
  for (const std::string name : {"a.tif", "a.jpg", "a.png"}) {
    const std::string path = folder_.file(name);
    content_of(name, image, {.compression = name == "a.tif" ? "zip" : ""});
    const auto reader = open_image(path);
    std::filesystem::resize_file(path, 70000);
    std::vector<std::byte> rows(image.pixels.size());
    const StandardError captured(folder_.file("stderr"));
    for (int round = 0; round < 2; ++round) {
      const std::string message = error_of([&] { reader->read_rows(0, 300, rows.data(), 900); });
      EXPECT_TRUE(message.starts_with(path + " is damaged or cut short: ")) << message;
    }
    EXPECT_EQ(captured.text(), "");
  }
}

TEST_F(DamagedFormats, AnUnfinishedWriterPrintsNothing) {
  const Image image = random_image(20, 24, 3, DataType::u8, 1);
  const StandardError captured(folder_.file("stderr"));
  for (const std::int64_t rows : {0, 1, 19}) {
    const auto writer = create_image(folder_.file("a.png"), image.info);
    writer->write_rows(0, rows, image.pixels.data(), 72);
  }
  EXPECT_EQ(captured.text(), "");
}

void say(std::string_view text) {
  ASSERT_EQ(::write(STDERR_FILENO, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST_F(DamagedFormats, OthersAreHeard) {
  using oiio::LibpngSilence;
  const StandardError captured(folder_.file("stderr"));
  {
    const LibpngSilence other("tiff");
    say("before\n");
    EXPECT_EQ(captured.text(), "before\n");
  }
  auto first = std::make_unique<LibpngSilence>("png"), second = std::make_unique<LibpngSilence>("png");
  std::fprintf(stderr, "10 %%");
  say("libpng warning: iCCP: no profile\n");
  first.reset();
  say("libpng error: bad adaptive filter value\nwithin\n");
  EXPECT_EQ(captured.text(), "before\n");
  second.reset();
  EXPECT_EQ(captured.text(), "before\n10 %within\n");
  say("after\n");
  EXPECT_EQ(captured.text(), "before\n10 %within\nafter\n");
}

TEST_F(DamagedFormats, WithoutAStandardError) {
  const std::string content = png(2, 2, 8, 3, 0, "\0\0\0\0\0\0"s);
  write_file(folder_.file("image"), content);
  const int real = ::dup(STDERR_FILENO);
  ::close(STDERR_FILENO);
  std::string message;
  try {
    read_image(folder_.file("image"));
  } catch (const Error& error) {
    message = error.what();
  }
  ::dup2(real, STDERR_FILENO);
  ::close(real);
  EXPECT_TRUE(message.starts_with(folder_.file("image") + " is damaged or cut short: ")) << message;
}

}  // namespace
}  // namespace omniconv::image
