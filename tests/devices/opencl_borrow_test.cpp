// Contexts, buffers and queues of the caller's, made without omniconv.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "borrow_testing.h"
#include "devices/opencl/opencl_api.h"
#include "gpu_testing.h"
#include "omniconv/conv2d.h"
#include "omniconv/filter2d.h"
#include "omniconv/opencl.h"

namespace omniconv {
namespace {

namespace cl = devices::opencl;

class OpenClBorrow : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    cl::cl_uint count = 0;
    ASSERT_EQ(api.GetPlatformIDs(0, nullptr, &count), cl::CL_SUCCESS);
    std::vector<cl::cl_platform_id> platforms(count);
    ASSERT_EQ(api.GetPlatformIDs(count, platforms.data(), nullptr), cl::CL_SUCCESS);
    int platform = 0, index = 0;
    ASSERT_EQ(std::sscanf(device->info().id.c_str(), "opencl:%d.%d", &platform, &index), 2);
    cl::cl_device_id ids[16] = {};
    ASSERT_EQ(api.GetDeviceIDs(platforms[static_cast<std::size_t>(platform)], cl::CL_DEVICE_TYPE_ALL, 16, ids, nullptr),
              cl::CL_SUCCESS);
    id = ids[index];
    raw_context = api.CreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
    ASSERT_EQ(code, cl::CL_SUCCESS);
    raw_queue = api.CreateCommandQueue(raw_context, id, 0, &code);
    ASSERT_EQ(code, cl::CL_SUCCESS);
  }
  void TearDown() override {
    if (raw_queue) api.ReleaseCommandQueue(raw_queue);
    if (raw_context) api.ReleaseContext(raw_context);
  }
  cl::cl_mem make(std::size_t bytes) {
    const cl::cl_mem made = api.CreateBuffer(raw_context, cl::CL_MEM_READ_WRITE, bytes, nullptr, &code);
    EXPECT_EQ(code, cl::CL_SUCCESS);
    return made;
  }
  cl::cl_mem make(const std::vector<float>& values) {
    const std::size_t bytes = values.size() * sizeof(float);
    const cl::cl_mem made = make(bytes);
    EXPECT_EQ(api.EnqueueWriteBuffer(raw_queue, made, 1, 0, bytes, values.data(), 0, nullptr, nullptr), cl::CL_SUCCESS);
    return made;
  }
  std::vector<float> read(cl::cl_mem memory, std::size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(api.EnqueueReadBuffer(raw_queue, memory, 1, 0, count * sizeof(float), values.data(), 0, nullptr, nullptr),
              cl::CL_SUCCESS);
    return values;
  }
  // The caller lets go of it at once.
  Buffer give(const Context& context, cl::cl_mem memory) {
    Buffer buffer = opencl::borrow_buffer(context, memory);
    api.ReleaseMemObject(memory);
    return buffer;
  }

  const cl::Api& api = cl::api();
  cl::cl_int code = 0;
  cl::cl_device_id id = nullptr;
  cl::cl_context raw_context = nullptr;
  cl::cl_command_queue raw_queue = nullptr;
};

TEST_F(OpenClBorrow, ObjectsOutliveTheirOwner) {
  const Context context = opencl::borrow_context(raw_context, id);
  EXPECT_EQ(context.device().id, device->info().id);
  Buffer buffer = give(context, make({1, 2, 3, 4}));
  Queue queue = opencl::borrow_queue(context, raw_queue);
  EXPECT_EQ(buffer.bytes(), 16);
  api.ReleaseCommandQueue(raw_queue);
  api.ReleaseContext(raw_context);
  raw_queue = nullptr, raw_context = nullptr;

  const auto program = context.impl()->build(add_text, {});
  const devices::KernelArgument arguments[] = {buffer.impl().get(), 10.0f};
  queue.impl()->launch(program, "add", {{4, 1}, {4, 1}}, arguments);
  float values[4] = {};
  Event event = queue.download(values, buffer, 0, 16);
  event.wait();
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{11, 12, 13, 14}));
  EXPECT_HAS(error_of([&] { event.seconds(); }, ErrorKind::bad_input), "profiling");
}

TEST_F(OpenClBorrow, Refusals) {
  const Context context = opencl::borrow_context(raw_context, id), other(device), cpu({.device = "cpu"});
  const auto refused = [](const auto& call) { return error_of(call, ErrorKind::bad_input); };
  const cl::cl_mem memory = make(16);
  EXPECT_HAS(refused([&] { opencl::borrow_context(nullptr, id); }), "null");
  EXPECT_HAS(refused([&] { opencl::borrow_buffer(context, nullptr); }), "null");
  EXPECT_HAS(refused([&] { opencl::borrow_queue(context, nullptr); }), "null");
  EXPECT_HAS(refused([&] { opencl::borrow_buffer(other, memory); }), "another cl_context");
  EXPECT_HAS(refused([&] { opencl::borrow_queue(other, raw_queue); }), "another cl_context");
  EXPECT_HAS(refused([&] { opencl::borrow_buffer(cpu, memory); }), "the context's device cpu is no OpenCL device");
  EXPECT_HAS(refused([&] { opencl::borrow_queue(cpu, raw_queue); }), "the context's device cpu is no OpenCL device");
  api.ReleaseMemObject(memory);
  const cl::cl_command_queue unordered =
      api.CreateCommandQueue(raw_context, id, cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
  if (code != cl::CL_SUCCESS) return;
  EXPECT_HAS(refused([&] { opencl::borrow_queue(context, unordered); }), "out of order");
  api.ReleaseCommandQueue(unordered);
}

TEST_F(OpenClBorrow, ConvolvesInThem) {
  const IntegerLayer layer;
  const Context context = opencl::borrow_context(raw_context, id);
  Queue queue = opencl::borrow_queue(context, raw_queue);
  for (const char* const solver : {"conv2d/direct", "conv2d/im2col_gemm"}) {
    const Conv2dPlan plan(context, layer.problem, {.allow = {solver}});
    const cl::cl_mem y = make(layer.y.size() * sizeof(float));
    Conv2dRun run{.x = {give(context, make(layer.x))}, .w = {give(context, make(layer.w))}};
    run.y = {opencl::borrow_buffer(context, y)};
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(plan.workspace_bytes(), 1));
    for (const Buffer& workspace : {give(context, make(bytes)), context.allocate(plan.workspace_bytes())}) {
      run.workspace = workspace;
      plan.run(queue, run);
      EXPECT_EQ(read(y, layer.y.size()), layer.y) << solver;  // by the caller's queue, behind the run
    }
    api.ReleaseMemObject(y);
  }
}

TEST_F(OpenClBorrow, MultipliesInThem) {
  const IntegerProduct product;
  const Context context = opencl::borrow_context(raw_context, id);
  Queue queue = opencl::borrow_queue(context, raw_queue);
  const GemmPlan plan(context, product.problem);
  const cl::cl_mem c = make(product.c.size() * sizeof(float));
  plan.run(queue, {.a = {give(context, make(product.a))},
                   .b = {give(context, make(product.b))},
                   .c = {opencl::borrow_buffer(context, c)},
                   .workspace = context.allocate(plan.workspace_bytes())});
  EXPECT_EQ(read(c, product.c.size()), product.c);
  api.ReleaseMemObject(c);
}

TEST_F(OpenClBorrow, MemoryIsReadAndWrittenAsItWasMadeFor) {
  const Context context = opencl::borrow_context(raw_context, id);
  Queue queue = opencl::borrow_queue(context, raw_queue);
  const auto made = [&](cl::cl_bitfield flags) {
    return give(context, api.CreateBuffer(raw_context, flags, 4096, nullptr, &code));
  };
  const Buffer read_only = made(cl::CL_MEM_READ_ONLY), write_only = made(cl::CL_MEM_WRITE_ONLY),
               both = made(cl::CL_MEM_READ_WRITE);
  const GemmPlan product(context, get<GemmProblem>(parse_problem("gemm f32 nn m8n8k8")));
  const auto refused = [&](const Buffer& a, const Buffer& b, const Buffer& c) {
    return error_of([&] { product.run(queue, {.a = {a}, .b = {b}, .c = {c}}); }, ErrorKind::bad_input);
  };
  const std::string mend = ": make it CL_MEM_READ_WRITE";
  EXPECT_EQ(refused(read_only, both, read_only), "c is written, and its cl_mem was made CL_MEM_READ_ONLY" + mend);
  EXPECT_EQ(refused(both, write_only, both), "b is read, and its cl_mem was made CL_MEM_WRITE_ONLY" + mend);
  product.run(queue, {.a = {read_only}, .b = {made(cl::CL_MEM_READ_ONLY)}, .c = {write_only}}).wait();
  const Conv2dPlan sum(context, get<Conv2dProblem>(parse_problem("acc n1c4h4w4k4r1s1")));
  const auto sums_into = [&](const Buffer& y) {
    sum.run(queue, {.x = {read_only}, .w = {read_only}, .y = {y}, .workspace = context.allocate(sum.workspace_bytes())})
        .wait();
  };
  EXPECT_EQ(error_of([&] { sums_into(write_only); }, ErrorKind::bad_input),
            "y is read, and its cl_mem was made CL_MEM_WRITE_ONLY" + mend);
  sums_into(both);
  const Conv2dPlan gradient(context, get<Conv2dProblem>(parse_problem("bwd_filter n2c4h4w4k4r1s1")));
  gradient
      .run(
          queue,
          {.x = {read_only}, .w = {write_only}, .y = {both}, .workspace = context.allocate(gradient.workspace_bytes())})
      .wait();

  const Filter2dPlan filter(context, get<Filter2dProblem>(parse_problem("filter2d u8 h8w8c1r1s1")), {.weights = {1}});
  const auto filters = [&](const Buffer& input, const Buffer& output) {
    filter.run(queue, {.input = input, .output = output, .workspace = context.allocate(filter.workspace_bytes())})
        .wait();
  };
  EXPECT_HAS(error_of([&] { filters(both, read_only); }, ErrorKind::bad_input), "the output is written");
  EXPECT_HAS(error_of([&] { filters(write_only, both); }, ErrorKind::bad_input), "the input is read");
  filters(read_only, write_only);
}

// Two buffers of one cl_mem, and sub-buffers of it.
TEST_F(OpenClBorrow, OverlapsAreFound) {
  using CreateSubBuffer = cl::cl_mem (*)(cl::cl_mem, cl::cl_bitfield, cl::cl_uint, const std::size_t*, cl::cl_int*);
  void* const loader = dlopen("libOpenCL.so.1", RTLD_NOW);
  const auto create = reinterpret_cast<CreateSubBuffer>(dlsym(loader, "clCreateSubBuffer"));
  ASSERT_NE(create, nullptr);
  const Context context = opencl::borrow_context(raw_context, id);
  Queue queue = opencl::borrow_queue(context, raw_queue);
  const cl::cl_mem whole = make(16384);
  const auto part = [&](std::size_t origin, std::size_t bytes) {
    const std::size_t region[] = {origin, bytes};
    const cl::cl_mem made =
        create(whole, cl::CL_MEM_READ_WRITE, 0x1220 /* CL_BUFFER_CREATE_TYPE_REGION */, region, &code);
    EXPECT_EQ(code, cl::CL_SUCCESS);
    return give(context, made);
  };
  const Buffer all = opencl::borrow_buffer(context, whole), again = opencl::borrow_buffer(context, whole),
               low = part(0, 8192), high = part(4096, 8192), top = part(8192, 8192);
  api.ReleaseMemObject(whole);
  const auto refused = [&](const Buffer& to, const Buffer& from) {
    const std::string error = error_of([&] { queue.copy(to, 0, from, 0, 8192); }, ErrorKind::bad_input);
    EXPECT_HAS(error, "overlap");
  };
  refused(all, again);
  refused(all, high);
  refused(low, high);
  refused(high, top);
  EXPECT_NO_THROW(queue.copy(low, 0, top, 0, 8192).wait());
}

}  // namespace
}  // namespace omniconv
