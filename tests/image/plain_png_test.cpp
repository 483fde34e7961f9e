// The module for plain files, here PNG: what it reads is what the other one reads, what it writes without an input's
// description too; and a copy of a PNG file says what that said, which is more than the other one keeps.
#include <algorithm>

#include "handmade.h"
#include "plain_testing.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;

class PlainPng : public Plain {
 protected:
  static inline const std::string gamma = png_chunk("gAMA", big_endian(45455));
  static inline const std::string primaries =
      png_chunk("cHRM", big_endian(31270) + big_endian(32900) + big_endian(64000) + big_endian(33000) +
                            big_endian(30000) + big_endian(60000) + big_endian(15000) + big_endian(6000));
  static inline const std::string perceptual = png_chunk("sRGB", "\0"s);
  static inline const std::string resolution = png_chunk("pHYs", big_endian(2835) + big_endian(2836) + "\1");
  static inline const std::string background = png_chunk("bKGD", "\0\1\0\2\0\3"s);
  static inline const std::string moment = png_chunk("tIME", "\x07\xEA\x0B\x17\x0E\x02\x20");
  static inline const std::string profile = png_chunk("iCCP", "a name\0\0"s + zlib_stored(color_profile()));

  static std::string text(const std::string& keyword, const std::string& what) {
    return png_chunk("tEXt", keyword + '\0' + what);
  }

  // 2 x 2 pixels of three bytes, with chunks before and behind them.
  static std::string colors(const std::string& before, const std::string& behind = "") {
    std::string file = png(2, 2, 8, 2, 0, "\0\1\2\3\4\5\6\0\7\10\11\12\13\14"s, before);
    return file.insert(file.size() - 12, behind);
  }

  // Every chunk between the header and the end, but for pixels.
  static std::string said_by(const std::string& content) {
    std::string said;
    for (std::size_t at = 33; at + 12 < content.size();) {
      std::size_t length = 12;
      for (std::size_t i = 0; i < 4; ++i)
        length += static_cast<std::size_t>(static_cast<unsigned char>(content[at + i])) << (24 - 8 * i);
      if (content.substr(at + 4, 4) != "IDAT") said += content.substr(at, length);
      at += length;
    }
    return said;
  }

  // What a copy says of the same pixels, after `change` of what is known of them.
  std::string kept(
      const std::string& content, void (*change)(Image&) = [](Image&) {}) const {
    write_file(file("image.png"), content);
    expect_both_alike(file("image.png"));
    Image image = read_image(file("image.png"));
    change(image);
    const auto writer = plain_module()->create(file("copy.png"), image.info, {});
    if (writer == nullptr) return "the other module's";
    writer->write_rows(0, image.info.h, image.pixels.data(), bytes_per_row(image.info));
    writer->finish();
    for (const Module* const module : {plain_module(), full_})
      EXPECT_TRUE(read_rows_of(*module->open(file("copy.png"), 0, any_memory)).pixels == image.pixels);
    return said_by(read_file(file("copy.png")));
  }
  bool reads(const std::string& content) const { return is_plain("a.png", content); }

  // The pixels, or the reason why there are none.
  static std::string outcome(const Module& module, const std::string& path) {
    try {
      const Image image = read_rows_of(*module.open(path, 0, any_memory));
      return {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()};
    } catch (const Error& error) {
      return error.what();
    }
  }
};

TEST_F(PlainPng, TypesAndChannels) {
  for (const DataType type : {DataType::u8, DataType::u16})
    for (const std::int64_t c : {1, 2, 3, 4}) {
      Image image = random_image(37, 19, c, type, 3);
      if (c % 2 == 0) image.info.alpha_channel = static_cast<int>(c) - 1;
      const std::string path = make("image.png", image);
      expect_both_alike(path);
      write_image(file("copy.png"), read_image(path));
      expect_both_alike(file("copy.png"));
      EXPECT_TRUE(read_image(file("copy.png")).pixels == image.pixels) << name(type) << c;
      EXPECT_EQ(read_image(file("copy.png")).info.alpha_channel, image.info.alpha_channel) << name(type) << c;
    }
}

TEST_F(PlainPng, WhatIsWrittenWithoutAnInput) {
  for (const DataType type : {DataType::u8, DataType::u16})
    for (const std::int64_t c : {1, 2, 3, 4})
      for (const char* level : {"", "0", "1", "9"}) {
        const Image image = random_image(70, 20, c, type, 3);
        const std::int64_t bytes = bytes_per_row(image.info);
        const WriteOptions options{.threads = 3, .compression = level};
        const auto writer = plain_module()->create(file("image.png"), image.info, options);
        const auto expected = full_->create(file("expected.png"), image.info, options);
        ASSERT_NE(writer, nullptr);
        EXPECT_EQ(writer->resident_bytes(), expected->resident_bytes());
        for (std::int64_t y = 0; y < 70; y += 31)
          writer->write_rows(y, std::min<std::int64_t>(31, 70 - y), image.pixels.data() + y * bytes, bytes);
        expected->write_rows(0, 70, image.pixels.data(), bytes);
        writer->finish();
        expected->finish();
        EXPECT_TRUE(read_file(file("image.png")) == read_file(file("expected.png"))) << name(type) << c << level;
      }
}

TEST_F(PlainPng, ACopySaysWhatTheFileSaid) {
  EXPECT_EQ(kept(colors("")), "");
  // OpenImageIO would say these in its own words: absolute colours, the nearest of a few gammas, no primaries.
  for (const std::string& chunk : {gamma, primaries, perceptual, resolution, moment, profile, background})
    EXPECT_EQ(kept(colors(chunk)), chunk);
  EXPECT_EQ(kept(colors(perceptual + gamma + primaries)), perceptual + gamma + primaries);
  // One text of each name is what it would keep, and none from behind the pixels.
  const std::string texts = text("Software", "one") + text("Comment", "a") + text("Comment", "b") +
                            text("Author", "\xE4") + text("Title", "") + text("Creation Time", "now");
  const std::string dates = text("date:create", "2026-11-23T13:58:33+00:00") + text("date:modify", "later");
  EXPECT_EQ(kept(colors(texts, dates)), texts + dates);
  EXPECT_EQ(kept(colors(texts, moment)), texts + moment);
  // As ImageMagick writes.
  EXPECT_EQ(kept(colors(gamma + primaries + background + moment, dates)),
            gamma + primaries + moment + dates + background);
}

TEST_F(PlainPng, WhatIsUntrueOfFilteredPixelsIsDropped) {
  EXPECT_EQ(kept(colors(png_chunk("sBIT", "\5\6\5") + gamma)), gamma);
  EXPECT_EQ(kept(colors(png_chunk("oFFs", big_endian(5) + big_endian(6) + "\0"s))), "");
  for (const char* words : {"sRGB", "Gamma2.2", "linear"}) EXPECT_EQ(kept(colors(text("oiio:ColorSpace", words))), "");
  // A colour of another type, or of other channels.
  EXPECT_EQ(kept(colors(gamma + background),
                 [](Image& image) {
                   image.info.type = DataType::u16;
                   image.pixels.resize(24);
                 }),
            gamma);
  EXPECT_EQ(kept(colors(gamma + background),
                 [](Image& image) {
                   image.info.c = 4;
                   image.pixels.resize(16);
                 }),
            gamma + background);
  EXPECT_EQ(kept(colors(gamma), [](Image& image) { image.info.c = 1; }), "the other module's");
}

// OpenImageIO takes such pixels for sRGB, as it does those of a JPEG file; and says so in others' files.
TEST_F(PlainPng, WithNothingToSayToOtherFormats) {
  const auto is_bare = [&](const std::string& content) {
    write_file(file("image.png"), content);
    expect_both_alike(file("image.png"));
    const ImageInfo info = open_image(file("image.png"))->info();
    const bool by_plain = plain_module()->create(file("copy.tif"), info, {}) != nullptr;
    EXPECT_EQ(plain_module()->create(file("copy.jpg"), info, {}) != nullptr, by_plain);
    return by_plain;
  };
  EXPECT_TRUE(is_bare(colors("")));
  EXPECT_TRUE(is_bare(colors(perceptual + gamma + primaries + background)));
  EXPECT_TRUE(is_bare(read_file(make("own.png", random_image(5, 4, 3, DataType::u8, 3)))));
  EXPECT_FALSE(is_bare(colors(gamma)));
  EXPECT_FALSE(is_bare(colors(primaries)));
  EXPECT_FALSE(is_bare(colors(profile)));
  EXPECT_FALSE(is_bare(colors(resolution)));
  EXPECT_FALSE(is_bare(colors(moment)));
  EXPECT_FALSE(is_bare(colors(text("Comment", "a"))));
  EXPECT_FALSE(is_bare(colors(text("oiio:ColorSpace", "linear"))));
}

TEST_F(PlainPng, FilesThatAreNot) {
  EXPECT_TRUE(reads(colors("")));
  EXPECT_FALSE(reads(palette_png()));
  EXPECT_FALSE(reads(bit_png()));
  EXPECT_FALSE(reads(interlaced_png()));
  EXPECT_EQ(plain_module()->open(file("a.png"), 2, any_memory), nullptr);
  std::string tags = color_profile();
  tags[64] = 9;  // no rendering intent
  for (const std::string& chunk :
       {png_chunk("PLTE", "\1\2\3"),
        png_chunk("tRNS", "\0\1\0\2\0\3"s),
        png_chunk("eXIf", "II*\0\x08\0\0\0\0\0"s),
        png_chunk("acTL", big_endian(1) + big_endian(0)),
        png_chunk("zTXt", "Comment\0\0"s + zlib_stored("a")),
        png_chunk("iTXt", "Comment\0\0\0\0\0a"s),
        png_chunk("hIST", "\0\1"s),
        png_chunk("prVt", "private"),
        png_chunk("ABCD", "critical and unknown"),
        png_chunk("gAMA", "short"),
        png_chunk("gAMA", big_endian(0)),
        gamma + gamma,
        moment + moment,
        perceptual + profile,
        png_chunk("iCCP", "no profile"),
        png_chunk("iCCP", "a name\0\0"s + zlib_stored(tags)),
        png_chunk("tIME", "\x07\xEA\x0D\x17\x0E\x02\x20"),
        png_chunk("bKGD", "\0\1"s),
        png_chunk("tEXt", "Comment"),
        text("", "a"),
        text("Comment", "a\0b"s),
        text("Orientation", "6"),
        text("oiio:AverageColor", "1,2,3"),
        text("Raw profile type exif", "exif"),
        text("Comment", std::string((1 << 20) - 7, 'a')),
        text("Comment", std::string((1 << 20) - 40, 'a')) + text("Author", std::string(40, 'a'))})
    EXPECT_FALSE(reads(colors(chunk))) << testing::PrintToString(chunk.substr(0, 80));
  EXPECT_TRUE(reads(colors(text("Comment", std::string((1 << 20) - 8, 'a')))));
  // Behind the pixels libpng does not look.
  EXPECT_TRUE(reads(colors("", moment + text("Comment", "a"))));
  for (const std::string& chunk : {gamma, resolution, background, moment + moment, png_chunk("tIME", "\1\2\3"),
                                   text("Other", "a"), png_chunk("eXIf", "II*\0"s)})
    EXPECT_FALSE(reads(colors("", chunk))) << testing::PrintToString(chunk.substr(0, 80));
}

TEST_F(PlainPng, WhatIsNotWritten) {
  const auto creates = [&](auto change) {
    ImageInfo info = random_image(2, 2, 4, DataType::u8, 1).info;
    change(info);
    return plain_module()->create(file("a.PNG"), info, {}) != nullptr;
  };
  EXPECT_TRUE(creates([](ImageInfo& info) { info.alpha_channel = 3; }));
  EXPECT_TRUE(creates([](ImageInfo& info) { info.w = 1000000; }));
  EXPECT_FALSE(creates([](ImageInfo& info) { info.w = 1000001; }));
  EXPECT_FALSE(creates([](ImageInfo& info) { info.h = 1000001; }));
  EXPECT_FALSE(creates([](ImageInfo& info) { info.h = 0; }));
  EXPECT_FALSE(creates([](ImageInfo& info) { info.c = 5; }));
  EXPECT_FALSE(creates([](ImageInfo& info) { info.alpha_channel = 0; }));
  EXPECT_FALSE(creates([](ImageInfo& info) { info.orientation = 3; }));
  for (const DataType type : {DataType::s16, DataType::s32, DataType::f16, DataType::f32, DataType::f64})
    EXPECT_FALSE(creates([type](ImageInfo& info) { info.type = type; })) << name(type);
}

// The other then says what is wrong, as it always did.
TEST_F(PlainPng, DamageThatCanBeSeenIsLeftToTheOther) {
  const std::string whole = colors(gamma + text("Comment", "a"), moment);
  ASSERT_TRUE(reads(whole));
  for (std::size_t length = 1; length < whole.size(); ++length) EXPECT_FALSE(reads(whole.substr(0, length))) << length;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(reads(changed)) << i;
  }
  EXPECT_EQ(error_of([&] {
              write_file(file("a.png"), whole.substr(0, whole.size() - 1));
              open_image(file("a.png"));
            }),
            file("a.png") + " is damaged or cut short: it has no end");
}

// What only a decoder sees: their checksums are right.
TEST_F(PlainPng, BothSayTheSameOfDamagedPixels) {
  write_image(file("whole.png"), random_image(12, 10, 3, DataType::u8, 1));
  const std::string whole = read_file(file("whole.png"));
  const std::size_t begin = whole.find("IDAT") + 4;
  const std::size_t length = whole.find("IDAT", begin) - 8 - begin;
  const std::string data = whole.substr(begin, length), end = whole.substr(begin + length + 4);
  std::mt19937 random(20261123);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string changed = data;
    changed[round % 2 == 0 ? random() % length : random() % 20] ^= static_cast<char>(1 << random() % 8);
    if (round % 5 == 0) changed.resize(random() % length);
    write_file(file("a.png"), whole.substr(0, begin - 8) + png_chunk("IDAT", changed) + end);
    const std::string found = outcome(*plain_module(), file("a.png"));
    EXPECT_EQ(found, outcome(*full_, file("a.png"))) << round;
    refused += found.starts_with(file("a.png") + " is damaged or cut short: PNG read error: ") ? 1 : 0;
  }
  EXPECT_GT(refused, 100);
}

TEST_F(PlainPng, RowsInAnyOrder) {
  for (const DataType type : {DataType::u8, DataType::u16}) {
    const std::string path = make("image.png", random_image(50, 40, 3, type, 4));
    expect_rows_in_any_order(path, 0);  // its reader holds nothing
  }
}

}  // namespace
}  // namespace omniconv::image
