// Sequences and recordings on CUDA, by a driver without hardware: which calls they become.
#include <gtest/gtest.h>

#include "../error_testing.h"
#include "devices/device.h"
#include "fake_cuda/fake_cuda.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using devices::KernelArgument;
using Calls = std::vector<std::string>;

class CudaSequences : public testing::Test {
 protected:
  CudaSequences() : context({.device = "cuda:0"}), queue(context.make_queue()), buffer(context.allocate(256)) {
    fake_cuda::take_calls();
    fake_cuda::take_ends();
  }
  // (buffer, float), as the fake's kernels are.
  void append(devices::Sequence& sequence, const Scalar& scalar, const devices::LaunchOptions& options = {}) {
    const KernelArgument arguments[] = {buffer.impl().get(), scalar};
    sequence.launch(program, "add", {{8, 2}, {4, 1}}, arguments, options);
  }
  devices::MemoryRange range(std::int64_t offset, std::int64_t bytes) const { return {*buffer.impl(), offset, bytes}; }

  Context context;
  Queue queue;
  Buffer buffer;
  std::shared_ptr<devices::Program> program = context.impl()->build("", {});
};

TEST_F(CudaSequences, AreOneSubmissionWithOneEvent) {
  for (const bool timing : {true, false}) {
    Queue own = context.make_queue({.timing = timing});
    for (const char* const call : {"cuCtxPushCurrent", "cuEventRecord", "cuEventCreate without timing", "cuEventQuery"})
      fake_cuda::take_count(call);
    Sequence sequence = context.make_sequence();
    for (int i = 0; i < 3; ++i) append(*sequence.impl(), i);
    sequence.impl()->copy(range(0, 16), range(64, 16));
    sequence.impl()->fill(range(32, 8), 7);
    Event event = own.submit(std::move(sequence));
    EXPECT_EQ(
        fake_cuda::take_calls(),
        (Calls{"cuLaunchKernel of memory of 0 on 0", "cuLaunchKernel of memory of 0 on 0",
               "cuLaunchKernel of memory of 0 on 0", "cuMemcpyAsync 16 bytes on 0", "cuMemsetD8Async 8 bytes on 0"}));
    EXPECT_EQ(fake_cuda::take_count("cuEventRecord"), timing ? 2 : 1);
    EXPECT_EQ(fake_cuda::take_count("cuEventCreate without timing"), timing ? 0 : 1);
    EXPECT_EQ(fake_cuda::take_count("cuCtxPushCurrent"), 1);
    event.wait();
    if (timing)
      EXPECT_EQ(event.seconds(), 0.001);
    else
      EXPECT_EQ(error_of([&] { event.seconds(); }),
                "the event has no times: its queue of cuda:0 was made without; make it with "
                "QueueOptions{.timing = true}");
  }
}

// Asking the driver what has ended costs as much as a submission.
TEST_F(CudaSequences, FewQuestionsAreAsked) {
  fake_cuda::take_count("cuEventQuery");
  for (int i = 0; i < 800; ++i) {
    Sequence sequence = context.make_sequence();
    append(*sequence.impl(), 1);
    queue.submit(std::move(sequence));
  }
  EXPECT_LE(fake_cuda::take_count("cuEventQuery"), 100);
}

TEST_F(CudaSequences, LaunchesHaveAttributes) {
  Sequence sequence = context.make_sequence();
  append(*sequence.impl(), 1, {.cluster = {2, 2}});
  append(*sequence.impl(), 1, {.overlaps = true});
  append(*sequence.impl(), 1, {.cluster = {2}, .overlaps = true, .local_memory_bytes = 200 << 10});
  append(*sequence.impl(), 1, {.meets = true});
  queue.submit(std::move(sequence)).wait();
  EXPECT_EQ(
      fake_cuda::take_calls(),
      (Calls{"cuLaunchKernelEx 2 x 2 x 1 groups, clusters of 2 x 2 x 1", "cuLaunchKernelEx 2 x 2 x 1 groups, overlap 1",
             "cuFuncSetAttribute 8 to 204800", "cuLaunchKernelEx 2 x 2 x 1 groups, clusters of 2 x 1 x 1, overlap 1",
             "cuLaunchKernelEx 2 x 2 x 1 groups, cooperative 1"}));
  Sequence refused = context.make_sequence();
  EXPECT_EQ(error_of([&] {
              append(*refused.impl(), 1, {.cluster = {1, 3}});
            }),
            "launch of add: 2 groups in dimension 1 are no multiple of clusters of 3");
}

TEST_F(CudaSequences, TensorMapsAreEncoded) {
  devices::TensorMap map;
  map.buffer = buffer.impl().get();
  map.offset_bytes = 32;
  map.element = devices::TensorMap::Element::bf16;
  map.rank = 2;
  map.extents = {16, 7};
  map.strides_bytes = {32};
  map.box = {8, 4};
  map.swizzle = devices::TensorMap::Swizzle::bytes_32;
  map.promotion = devices::TensorMap::Promotion::bytes_128;
  devices::TensorMap windows = map;
  windows.rank = 4;
  windows.extents = {8, 2, 3, 2};
  windows.strides_bytes = {16, 32, 96};
  windows.is_im2col = true;
  windows.lower_corner = {-1, -2};
  windows.upper_corner = {1, 2};
  windows.channels = 8;
  windows.pixels = 64;
  windows.element_strides = {1, 2, 3, 1, 1};
  Sequence sequence = context.make_sequence();
  const KernelArgument arguments[] = {buffer.impl().get(), &map, &windows};
  sequence.impl()->launch(program, "load", {{4}, {4}}, arguments);
  queue.submit(std::move(sequence)).wait();
  EXPECT_EQ(fake_cuda::take_calls(),
            (Calls{"cuTensorMapEncodeTiled element 9 rank 2 of 0: 16 x 7, stride 32, box 8 x 4, swizzle 1 promotion 2 "
                   "fill 0",
                   "cuTensorMapEncodeIm2col element 9 rank 4 corners -1 -2 to 1 2, 8 channels, 64 pixels, steps 2 3",
                   "cuLaunchKernel of memory of 0 on 0"}));

  const auto refused = [&](devices::TensorMap wrong) {
    return error_of([&] {
      const KernelArgument one[] = {&wrong};
      Sequence none = context.make_sequence();
      none.impl()->launch(program, "load", {{4}, {4}}, one);
    });
  };
  devices::TensorMap wrong = map;
  wrong.extents[1] = 8;
  EXPECT_EQ(refused(wrong), "a tensor map: 256 bytes at offset 32 do not fit in the buffer's 256 bytes");
  wrong = map;
  wrong.strides_bytes[0] = 24;
  EXPECT_EQ(refused(wrong), "a tensor map: its stride of 24 bytes must be a multiple of 16");
  wrong = map;
  wrong.box[0] = 24;
  EXPECT_EQ(refused(wrong), "a tensor map: lines of 48 bytes of its box pass the 32 that its swizzle takes");
  wrong = map;
  wrong.rank = 6;
  EXPECT_EQ(refused(wrong), "a tensor map: its rank of 6 must be from 1 to 5");
  wrong = windows;
  wrong.lower_corner[0] = -129;
  EXPECT_EQ(refused(wrong), "a tensor map: its lower corner of -129 must be from -128 to 127");
}

TEST_F(CudaSequences, RecordingsAreGraphsAndChangedScalarsAloneAreSet) {
  Scalar first = Scalar::changing(1), second = Scalar::changing(2);
  Sequence sequence = context.make_sequence();
  append(*sequence.impl(), first);
  sequence.impl()->copy(range(0, 16), range(64, 16));
  append(*sequence.impl(), 10);
  append(*sequence.impl(), second);
  sequence.impl()->fill(range(32, 8), 7);
  const Recording recording = context.record(std::move(sequence));
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuGraphInstantiate of kernel copy kernel kernel fill"});

  fake_cuda::take_count("cuEventRecord");
  recording.replay(queue).wait();
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuGraphLaunch on 0: 1 0 10 2 0"});
  EXPECT_EQ(fake_cuda::take_count("cuEventRecord"), 2);
  second.set(3);
  recording.replay(queue).wait();
  EXPECT_EQ(fake_cuda::take_calls(),
            (Calls{"cuGraphExecKernelNodeSetParams of node 3: 2 groups of 4, 3", "cuGraphLaunch on 0: 1 0 10 3 0"}));
  recording.replay(queue);
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuGraphLaunch on 0: 1 0 10 3 0"});
  first.set(4);
  second.set(5);
  Queue other = context.make_queue({.timing = false});
  recording.replay(other).wait();
  EXPECT_EQ(fake_cuda::take_calls(),
            (Calls{"cuGraphExecKernelNodeSetParams of node 0: 2 groups of 4, 4",
                   "cuGraphExecKernelNodeSetParams of node 3: 2 groups of 4, 5", "cuGraphLaunch on 0: 4 0 10 5 0"}));
}

TEST_F(CudaSequences, RecordingsAreOfOneDevice) {
  Sequence sequence = context.make_sequence();
  append(*sequence.impl(), 1);
  const Recording recording = context.record(std::move(sequence));
  const Context other({.device = "cuda:1"}), cpu({.device = "cpu"}), again({.device = "cuda:0"});
  Queue others = other.make_queue(), cpus = cpu.make_queue(), own = again.make_queue();
  EXPECT_EQ(error_of([&] { recording.replay(others); }),
            "a recording of device cuda:0 was replayed on a queue of device cuda:1: record it there too");
  EXPECT_EQ(error_of([&] { recording.replay(cpus); }),
            "a recording of device cuda:0 was replayed on a queue of device cpu: record it there too");
  EXPECT_NO_THROW(recording.replay(own).wait());  // contexts of one device share the driver's

  Sequence of_this = context.make_sequence(), of_that = other.make_sequence();
  append(*of_this.impl(), 1);
  append(*of_that.impl(), 1);
  EXPECT_EQ(error_of([&] { other.record(std::move(of_this)); }),
            "record: the sequence was made for device cuda:0, and the context is of device cuda:1");
  EXPECT_EQ(error_of([&] { other.record(std::move(of_that)); }),
            "launch of add: its program was not built for the queue's device cuda:1");
}

TEST_F(CudaSequences, RecordingsKeepAliveWhatTheyUse) {
  Sequence sequence = context.make_sequence();
  append(*sequence.impl(), 1);
  Recording recording = context.record(std::move(sequence));
  buffer = Buffer();
  program.reset();
  Event event = recording.replay(queue);
  recording = Recording();
  EXPECT_EQ(fake_cuda::take_ends(), Calls{"cuStreamDestroy of 0"});  // of the capture
  event.wait();
  EXPECT_EQ(fake_cuda::take_ends(), (Calls{"cuGraphExecDestroy", "cuMemFree"}));
}

TEST_F(CudaSequences, NativeCallsAreRecordedWhereTheyAreConstant) {
  int calls = 0;
  void* given = nullptr;
  const auto record = [&](bool is_constant) {
    Sequence sequence = context.make_sequence();
    append(*sequence.impl(), 1);
    sequence.impl()->call_native(devices::NativeCall([&](void* stream) {
                                   ++calls;
                                   given = stream;
                                 }),
                                 is_constant);
    return context.record(std::move(sequence));
  };
  const Recording constant = record(true);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(given, nullptr);
  for (int i = 0; i < 3; ++i) constant.replay(queue).wait();
  EXPECT_EQ(calls, 1);
  const Recording anew = record(false);
  EXPECT_EQ(calls, 1);
  fake_cuda::take_calls();
  for (int i = 0; i < 3; ++i) anew.replay(queue).wait();
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(fake_cuda::take_calls(), Calls(3, "cuLaunchKernel of memory of 0 on 0"));
}

// What cannot be captured is run step by step.
TEST_F(CudaSequences, RecordingsThatFailAreLists) {
  Scalar scalar = Scalar::changing(1);
  Sequence sequence = context.make_sequence();
  append(*sequence.impl(), scalar);
  fake_cuda::fail_next("cuGraphInstantiate", 801);
  const Recording recording = context.record(std::move(sequence));
  recording.replay(queue).wait();
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuLaunchKernel of memory of 0 on 0"});

  Sequence native = context.make_sequence();
  int calls = 0;
  native.impl()->call_native(devices::NativeCall([&](void*) {
                               if (++calls == 1) throw environment_error("the library synchronises");
                             }),
                             true);
  const Recording called = context.record(std::move(native));
  called.replay(queue).wait();
  EXPECT_EQ(calls, 2);
}

TEST_F(CudaSequences, AnErrorInTheMidstIsTheQueuesAndWhatWasBegunIsHeld) {
  Sequence sequence = context.make_sequence();
  append(*sequence.impl(), 1);
  sequence.impl()->call_native(devices::NativeCall([](void*) { throw environment_error("no handle"); }));
  append(*sequence.impl(), 1);
  Event event = queue.submit(std::move(sequence));
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuLaunchKernel of memory of 0 on 0"});
  buffer = Buffer();
  EXPECT_EQ(fake_cuda::take_ends(), Calls());
  EXPECT_EQ(error_of([&] { event.wait(); }, ErrorKind::environment), "device cuda:0: no handle");
  EXPECT_EQ(fake_cuda::take_ends(), Calls{"cuMemFree"});
}

TEST_F(CudaSequences, WhatIsEmptyIsRefused) {
  Sequence sequence = context.make_sequence();
  const Sequence moved = std::move(sequence);
  const std::string gone = "the sequence was moved from, or never made; make one with Context::make_sequence";
  EXPECT_EQ(error_of([&] { context.record(std::move(sequence)); }), "record: " + gone);
  EXPECT_EQ(error_of([&] { queue.submit(std::move(sequence)); }), "submit: " + gone);
  EXPECT_EQ(error_of([&] { context.record(context.make_sequence()); }),
            "an empty sequence was recorded on device cuda:0: append a step to it");
  EXPECT_EQ(error_of([&] { queue.submit(context.make_sequence()); }),
            "an empty sequence was submitted to a queue of cuda:0: append a step to it");
  EXPECT_EQ(error_of([&] { Recording().replay(queue); }),
            "replay: the recording was moved from, or never made; make one with Context::record");
  Sequence full = context.make_sequence();
  append(*full.impl(), 1);
  Queue none;
  EXPECT_EQ(error_of([&] { none.submit(std::move(full)); }),
            "submit: the queue is empty; make one with Context::make_queue");
}

}  // namespace
}  // namespace omniconv
