// Folders of images as a data set: what is found and read, what is kept apart, and what is said of hostile folders.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "folder_testing.h"
#include "omniconv/dataset.h"
#include "train/picture.h"

namespace omniconv::folders_tests {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

class Folders : public FolderTest {
 protected:
  // Of 2 x 3 pixels, all alike.
  void grey(const std::string& name, int value) const {
    put(name, "P5\n3 2\n255\n" + std::string(6, static_cast<char>(value)));
  }
  void two_classes(const std::string& inside, int of_each) const {
    for (int i = 0; i < of_each; ++i)
      grey(fmt::format("{}cat/{:03}.pgm", inside, i), i), grey(fmt::format("{}dog/{:03}.pgm", inside, i), 100 + i);
  }
  DatasetPlace place(std::int64_t channels = 1) const {
    const std::vector<DatasetPlace> places = find_datasets(folder.string());
    EXPECT_EQ(places.size(), 1u);
    DatasetPlace found = places.at(0);
    EXPECT_EQ(found.format, DatasetPlace::Format::folders);
    found.channels = channels, found.height = 2, found.width = 3;
    return found;
  }
  void expect_refusal(const std::string& part) const {
    const std::string text = error_of([&] { read_dataset(place()); }, ErrorKind::bad_input);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  // The first pixel of each image, by which these are told apart.
  static Bytes firsts(const Examples& examples) {
    Bytes all;
    for (std::size_t i = 0; i < examples.pixels.size(); i += 6) all.push_back(examples.pixels[i]);
    return all;
  }
};

TEST_F(Folders, ClassesAndImagesAreInTheOrderOfTheirNames) {
  grey("train/b/2.pgm", 7), grey("train/b/10.pgm", 6), grey("train/B/x.pgm", 5),
      grey("train/\xC3\xA9t\xC3\xA9/a.pgm", 9);
  grey("test/b/1.pgm", 20), grey("test/B/1.pgm", 21), grey("test/\xC3\xA9t\xC3\xA9/1.pgm", 22);
  put("train/b/.hidden", "no image"), put("train/.git/config", "no class"), put("train/README", "no class either");
  const Dataset set = read_dataset(place());
  EXPECT_EQ(set.name, folder.filename().string());
  EXPECT_EQ(set.classes, (std::vector<std::string>{"B", "b", "\xC3\xA9t\xC3\xA9"}));
  EXPECT_EQ(set.train.count, 4);
  EXPECT_EQ(firsts(set.train), (Bytes{5, 6, 7, 9}));
  EXPECT_EQ(set.train.labels, (Bytes{0, 1, 1, 2}));
  EXPECT_EQ(firsts(set.test), (Bytes{21, 20, 22}));
  EXPECT_EQ(set.test.labels, (Bytes{0, 1, 2}));
  EXPECT_EQ(set.kept_apart, "");
  EXPECT_EQ(set.origin, folder.string());
}

TEST_F(Folders, ATenthIsKeptApartWhereNoneAreForTheTest) {
  two_classes("", 40);
  const Dataset set = read_dataset(place());
  EXPECT_EQ(set.kept_apart.size(), 16u);
  EXPECT_EQ(set.train.count, 72);
  EXPECT_EQ(set.test.count, 8);
  const Bytes train = firsts(set.train), test = firsts(set.test);
  std::set<std::uint8_t> all(train.begin(), train.end());
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 80u);  // every image once
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
  for (std::size_t i = 0; i < test.size(); ++i) EXPECT_EQ(set.test.labels[i], test[i] >= 100);
  EXPECT_NE(test, (Bytes{132, 133, 134, 135, 136, 137, 138, 139}));  // drawn ones, not the last
  // The same for the test, whatever is taken of the others; both parts when they are in a folder `train`, too.
  EXPECT_EQ(firsts(read_dataset(place(), 0).test), test);
  const Dataset some = read_dataset(place(), 10);
  EXPECT_EQ(some.train.count, 10);
  EXPECT_EQ(firsts(some.test), test);
  EXPECT_GT(std::count(some.train.labels.begin(), some.train.labels.end(), 1), 0);  // of both classes
  EXPECT_LT(std::count(some.train.labels.begin(), some.train.labels.end(), 1), 10);
  EXPECT_EQ(read_dataset(place(), -1, 79).train.count, 1);
  EXPECT_EQ(read_dataset(place(), 0, 80).test.count, 80);
  const std::string text = error_of([&] { read_dataset(place(), -1, 80); }, ErrorKind::bad_input);
  EXPECT_NE(text.find("80 images for the test, of 80 that are there: at most 79"), std::string::npos) << text;
}

// By their names in the folder, wherever that lies.
TEST_F(Folders, WhatIsKeptApartIsKnownAgain) {
  two_classes("set/", 40);
  const auto kept = [&](const char* name, std::int64_t count) {
    DatasetPlace own = place();
    own.folder = (folder / name).string();
    return read_dataset(own, -1, count).kept_apart;
  };
  const std::string hash = kept("set", 10);
  EXPECT_EQ(kept("set", 10), hash);
  EXPECT_NE(kept("set", 11), hash);
  fs::rename(folder / "set", folder / "moved");
  EXPECT_EQ(kept("moved", 10), hash);
  grey("moved/dog/zz.pgm", 9);
  EXPECT_NE(kept("moved", 10), hash);
}

TEST_F(Folders, SomeOfEachPartAreDrawn) {
  two_classes("train/", 40), two_classes("test/", 40);
  const Dataset set = read_dataset(place(), 20, 10);
  EXPECT_EQ(set.train.count, 20);
  EXPECT_EQ(set.test.count, 10);
  for (const Examples* const part : {&set.train, &set.test}) {
    const auto dogs = std::count(part->labels.begin(), part->labels.end(), 1);
    EXPECT_GT(dogs, 0);
    EXPECT_LT(dogs, part->count);
  }
  EXPECT_EQ(read_dataset(place(), 1000, 1000).train.count, 80);
  fs::remove_all(folder / "test");
  EXPECT_NE(read_dataset(place()).kept_apart, "");
}

TEST_F(Folders, AreFoundBehindOtherSets) {
  two_classes("pets/train/", 1), two_classes("alone/", 1);
  put("notes/a.txt", "no set"), put("mnist/train-images-idx3-ubyte", "damaged");
  const std::vector<DatasetPlace> places = find_datasets(folder.string());
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].name, "mnist");
  EXPECT_EQ(places[1].name, "alone");
  EXPECT_EQ(places[2].name, "pets");
  EXPECT_EQ(places[2].folder, (folder / "pets").string());
  EXPECT_EQ(find_datasets((folder / "pets").string()).at(0).name, "pets");
  EXPECT_TRUE(find_datasets((folder / "notes").string()).empty());
}

TEST_F(Folders, ImagesAreMadeAsLargeAsTheyAreAskedFor) {
  // Twice as large both ways: each new pixel has weights 1/8, 3/8, 3/8, 1/8 of a line's, cut off at the border.
  put("a.pgm", "P5\n4 2\n255\n" + std::string("\x08\x10\x18\x20\x08\x10\x18\x20", 8));
  const std::string path = (folder / "a.pgm").string();
  // (3 * 8 + 3 * 16 + 24) / 7 and (16 + 3 * 24 + 3 * 32) / 7
  EXPECT_EQ(training::read_picture(path, {1, 1, 2}), (Bytes{14, 26}));
  EXPECT_EQ(training::read_picture(path, {3, 1, 2}), (Bytes{14, 26, 14, 26, 14, 26}));
  EXPECT_EQ(training::read_picture(path, {1, 2, 4}), (Bytes{8, 16, 24, 32, 8, 16, 24, 32}));
  // Half as large: between the two beside it, or the border's alone.
  EXPECT_EQ(training::read_picture(path, {1, 2, 8}),
            (Bytes{8, 10, 14, 18, 22, 26, 30, 32, 8, 10, 14, 18, 22, 26, 30, 32}));
  put("b.ppm", "P6\n1 1\n255\n" + std::string("\xC8\x64\x0A", 3));
  EXPECT_EQ(training::read_picture((folder / "b.ppm").string(), {1, 1, 1}), (Bytes{120}));  // 59.8 + 58.7 + 1.14
  put("c.pgm", "P5\n1 1\n1000\n" + std::string("\x01\xF4", 2));
  EXPECT_EQ(training::read_picture((folder / "c.pgm").string(), {1, 1, 1}), (Bytes{128}));  // half of 255, to even
}

TEST_F(Folders, HostileFoldersAreRefused) {
  two_classes("", 2);
  put("cat/001.pgm", "P5\n3 2\n255\nabc");
  expect_refusal("cat/001.pgm");
  put("cat/001.pgm", "a text");
  expect_refusal("cat/001.pgm");
  fs::remove(folder / "cat/001.pgm"), fs::create_directories(folder / "cat/kittens");
  expect_refusal("cat/kittens: a folder in the folder of a class, which holds images alone");
  fs::remove(folder / "cat/kittens"), fs::create_symlink("none", folder / "cat/link.pgm");
  expect_refusal("cat/link.pgm: a link to nothing that is there, and the folder of a class holds images alone");
  fs::remove(folder / "cat/link.pgm"), fs::create_symlink("loop.pgm", folder / "cat/loop.pgm");
  expect_refusal("cat/loop.pgm: it cannot be read: Too many levels of symbolic links");
  fs::remove(folder / "cat/loop.pgm"), fs::create_symlink(folder, folder / "cat/round");
  expect_refusal("cat/round: a folder in the folder of a class");
  fs::remove(folder / "cat/round");
  ASSERT_EQ(mkfifo((folder / "cat/pipe.pgm").c_str(), 0600), 0);
  expect_refusal("cat/pipe.pgm: no file, and the folder of a class holds images alone");
  fs::remove(folder / "cat/pipe.pgm"), fs::create_directories(folder / "eel");
  expect_refusal("eel: the folder of a class has no image");
  fs::remove(folder / "eel");
  two_classes("test/", 1), fs::create_directories(folder / "train/cat"), grey("train/dog/1.pgm", 1);
  expect_refusal("train/cat: the folder of a class has no image");
  fs::remove(folder / "train/cat");
  expect_refusal("train: it has 1 folder, one for each class: must be 2 to 256");
  grey("train/cow/1.pgm", 1);
  expect_refusal("test: its 2 folders are other classes than the 2 of ");
}

TEST_F(Folders, NamesAndNumbersThatAreRefused) {
  for (int i = 0; i < 257; ++i) grey(fmt::format("{}/1.pgm", i), 1);
  expect_refusal("it has 257 folders, one for each class: must be 2 to 256");
  fs::remove_all(folder / "256");
  EXPECT_EQ(read_dataset(place()).classes.size(), 256u);
  for (int i = 2; i < 256; ++i) fs::remove_all(folder / std::to_string(i));
  grey("a\nb/1.pgm", 1);
  expect_refusal("must be UTF-8 without quotes and control characters");
  fs::rename(folder / "a\nb", folder / "a\xFF");
  expect_refusal("must be UTF-8 without quotes and control characters");
  fs::remove_all(folder / "a\xFF");
  DatasetPlace found = place();
  found.height = found.width = 1 << 17;
  std::string text = error_of([&] { read_dataset(found); }, ErrorKind::bad_input);
  EXPECT_NE(text.find("its 2 images of 1 x 131072 x 131072 pass the 8589934592 bytes"), std::string::npos) << text;
  found.height = found.width = std::int64_t{1} << 40;
  text = error_of([&] { read_dataset(found); }, ErrorKind::bad_input);
  EXPECT_NE(text.find("passes 2^63"), std::string::npos) << text;
  found.width = 0;
  text = error_of([&] { read_dataset(found); }, ErrorKind::bad_input);
  EXPECT_NE(text.find("name channels, rows and columns of at least 1"), std::string::npos) << text;
}

TEST_F(Folders, ManyFilesTellHowFarTheyAreAndCanBeStopped) {
  two_classes("train/", 60), two_classes("test/", 5);
  std::int64_t last = 0, all = 0;
  read_dataset(place(), -1, -1, [&](std::int64_t done, std::int64_t of) {
    EXPECT_GT(done, 0);
    return last = std::max(last, done), all = of, true;
  });
  EXPECT_EQ(all, 130);
  EXPECT_GT(last, 120);  // of the test they are read after all others
  error_of([&] { read_dataset(place(), -1, -1, [](std::int64_t, std::int64_t) { return false; }); },
           ErrorKind::interrupted);
  // Of several that are broken the first is named.
  for (const char* const name : {"train/cat/007.pgm", "train/cat/050.pgm", "train/dog/000.pgm"})
    put(name, "P5\n3 2\n255\ncut");
  for (int i = 0; i < 20; ++i) expect_refusal("train/cat/007.pgm");
}

}  // namespace
}  // namespace omniconv::folders_tests
