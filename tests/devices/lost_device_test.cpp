// A device that fails in the middle of the work: what is said, and that no file is left of it.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "../error_testing.h"
#include "image/kernel_text.h"
#include "image/pipeline.h"
#include "omniconv/error.h"
#include "recording_device.h"

namespace omniconv {
namespace {

namespace fs = std::filesystem;
using devices::RecordingDevice;

constexpr const char* lost = "; the device is lost to this process: start it again";

// Works, as far as it can be told, until so many downloads are done; then it is lost.
class FailingDevice final : public RecordingDevice {
 public:
  explicit FailingDevice(int downloads) : RecordingDevice(devices::DeviceKind::opencl), left_(downloads) {}
  std::shared_ptr<devices::Queue> make_queue(const QueueOptions&) override {
    return std::make_shared<FailingQueue>(left_);
  }
  int left() const { return left_; }

 private:
  class FailingQueue final : public NoQueue {
   public:
    explicit FailingQueue(std::atomic<int>& left) : left_(left) {}
    Event download(void* to, std::shared_ptr<devices::Buffer>, std::int64_t, std::int64_t bytes) override {
      std::memset(to, 7, static_cast<std::size_t>(bytes));
      --left_;
      return done();
    }
    void wait(std::uint64_t) override {
      if (left_ < 0) throw environment_error(std::string("device recording: a download failed") + lost);
    }

   private:
    std::atomic<int>& left_;
  };
  std::atomic<int> left_;
};

TEST(LostDevice, LeavesNoOutput) {
  std::string pattern = (fs::temp_directory_path() / "omniconv-lost-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  const std::string content = "P5 16 40 255\n" + std::string(640, 'x');
  std::ofstream(folder / "in.pgm", std::ios::binary) << content;
  image::FilterJob job;
  job.input = folder / "in.pgm";
  job.output = folder / "out.pgm";
  job.kernel = image::parse_kernel("sharpen");
  job.strip_rows = 8;
  const auto progress = [](std::int64_t, std::int64_t, std::int64_t) { return true; };

  const auto whole = std::make_shared<FailingDevice>(5);
  EXPECT_EQ(image::filter_file(Context(whole), job, progress).strips, 5);
  EXPECT_EQ(whole->left(), 0);
  EXPECT_TRUE(fs::remove(folder / "out.pgm"));

  for (const int way : {0, 1, 2, 3}) {
    if (way == 2) job.output = job.input;
    for (const int downloads : {0, 2, 4}) {
      const auto failing = std::make_shared<FailingDevice>(downloads);
      failing->page_locks = way % 2 == 1;  // else copies out are submitted late
      const std::string message =
          error_of([&] { image::filter_file(Context(failing), job, progress); }, ErrorKind::environment);
      EXPECT_NE(message.find(lost), std::string::npos) << message;
      EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
      std::ifstream in(folder / "in.pgm", std::ios::binary);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), content);
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace omniconv
