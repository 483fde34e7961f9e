// `conv`: values worked out here, and every refusal.
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "array_command.h"

namespace omniconv {
namespace {

using nlohmann::json;

class Conv : public ArrayCommand {
 protected:
  // y[n, k, p, q] of n2c4h5w4k6r3s2 pt1 pr1 uh2 g2, nchw, of its definition; one call of `term` for each product, with
  // the elements of x, w and y.
  static inline const std::string geometry = "n2c4h5w4k6r3s2pt1pr1uh2g2";
  static inline const Shape x_shape = {2, 4, 5, 4}, w_shape = {6, 2, 3, 2}, y_shape = {2, 6, 2, 4};
  static void each_term(const std::function<void(std::size_t x, std::size_t w, std::size_t y)>& term) {
    for (int n = 0; n < 2; ++n)
      for (int k = 0; k < 6; ++k)
        for (int p = 0; p < 2; ++p)
          for (int q = 0; q < 4; ++q)
            for (int c = 0; c < 2; ++c)
              for (int r = 0; r < 3; ++r)
                for (int s = 0; s < 2; ++s) {
                  const int h = 2 * p + r - 1, w = q + s;
                  if (h < 0 || h >= 5 || w >= 4) continue;
                  term(static_cast<std::size_t>(((n * 4 + k / 3 * 2 + c) * 5 + h) * 4 + w),
                       static_cast<std::size_t>(((k * 2 + c) * 3 + r) * 2 + s),
                       static_cast<std::size_t>(((n * 6 + k) * 2 + p) * 4 + q));
                }
  }
  void write_inputs(DataType type = DataType::f32) const {
    write("x.npy", array(type, x_shape, integers(x_shape, 1)));
    write("w.npy", array(type, w_shape, integers(w_shape, 2)));
    write("dy.npy", array(type, y_shape, integers(y_shape, 3)));
  }
  void runs(const std::string& arguments) const {
    const Outcome outcome = run("conv " + arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.error;
  }
};

TEST_F(Conv, EveryPassIsItsDefinition) {
  write_inputs();
  const std::vector<double> x = integers(x_shape, 1), w = integers(w_shape, 2), dy = integers(y_shape, 3);
  std::vector<double> y(static_cast<std::size_t>(elements(y_shape))), dx(x.size()), dw(w.size());
  each_term([&](std::size_t i, std::size_t j, std::size_t o) {
    y[o] += x[i] * w[j];
    dx[i] += dy[o] * w[j];
    dw[j] += dy[o] * x[i];
  });
  for (const std::string& device : devices_here()) {
    runs("'" + geometry + "' --x x.npy --w w.npy -o y.npy --device " + device);
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, y_shape), y);
    runs("'bwd_data " + geometry + "' --w w.npy --dy dy.npy -o dx.npy --device " + device);
    EXPECT_EQ(values_of(read_here("dx.npy"), DataType::f32, x_shape), dx);
    runs("'bwd_filter " + geometry + "' --x x.npy --dy dy.npy -o dw.npy --device " + device);
    EXPECT_EQ(values_of(read_here("dw.npy"), DataType::f32, w_shape), dw);
  }
  std::vector<double> added = x;
  for (std::size_t i = 0; i < x.size(); ++i) added[i] += dx[i];
  for (const std::string old : {"--y0", "--dx"}) {  // what the output held, by either name
    runs("'bwd_data acc " + geometry + "' --w w.npy --dy dy.npy " + old + " x.npy -o sum.npy");
    EXPECT_EQ(values_of(read_here("sum.npy"), DataType::f32, x_shape), added);
  }
  refuses("conv 'bwd_data acc " + geometry + "' --w w.npy --dy dy.npy --dx x.npy --y0 x.npy -o sum.npy",
          {"--dx and --y0 are the same array"});
}

TEST_F(Conv, BiasOldOutputAndReluInThatOrder) {
  write_inputs();
  const Shape bias_shape = {6};
  const std::vector<double> x = integers(x_shape, 1), w = integers(w_shape, 2), bias = integers(bias_shape, 4),
                            old = integers(y_shape, 5);
  write("bias.npy", array(DataType::f32, bias_shape, bias));
  write("y.npy", array(DataType::f32, y_shape, old));
  std::vector<double> y = old;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i / 8 % 6];
  each_term([&](std::size_t i, std::size_t j, std::size_t o) { y[o] += x[i] * w[j]; });
  for (double& value : y) value = std::max(value, 0.0);
  // The output replaces what it was made from.
  runs("'bias relu acc " + geometry + "' --x x.npy --w w.npy --bias-array bias.npy --y0 y.npy -o y.npy");
  EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, y_shape), y);
}

TEST_F(Conv, TypesAreThoseOfTheFiles) {
  const std::vector<double> x = integers(x_shape, 1), w = integers(w_shape, 2);
  std::vector<double> y(static_cast<std::size_t>(elements(y_shape)));
  each_term([&](std::size_t i, std::size_t j, std::size_t o) { y[o] += x[i] * w[j]; });
  for (const auto& [type, file] :
       {std::pair(DataType::f64, DataType::f64), std::pair(DataType::f16, DataType::f16),
        std::pair(DataType::bf16, DataType::f32), std::pair(DataType::tf32, DataType::f32)}) {
    write_inputs(file);
    runs("'" + std::string(name(type)) + " " + geometry + "' --x x.npy --w w.npy -o y.npy --device cpu");
    EXPECT_EQ(values_of(read_here("y.npy"), file, y_shape), y) << name(type);  // below 2^8: exact in all
  }
}

// Ties go to even; what only the last bits of f32 hold is gone before anything is computed.
TEST_F(Conv, Bf16AndTf32AreRoundedOnTheWayIn) {
  const Shape x_shape_of_three = {1, 1, 1, 3}, one = {1, 1, 1, 1};
  const auto rounded = [&](const std::string& type, int bits) {
    const double half = std::ldexp(1, -bits - 1);
    write("x.npy", array(DataType::f32, x_shape_of_three, {1 + half, 1 + 3 * half, -1 - 1.5 * half}));
    write("w.npy", array(DataType::f32, one, {1}));
    runs("'" + type + " n1c1h1w3k1r1s1' --x x.npy --w w.npy -o y.npy --device cpu");
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, x_shape_of_three),
              (std::vector<double>{1, 1 + 4 * half, -1 - 2 * half}))
        << type;
  };
  rounded("bf16", 7);
  rounded("tf32", 10);
  // What is added is no factor: sums of tf32 are those of f32.
  const double fine = 1 + 0x1p-20;
  write("x.npy", array(DataType::f32, one, {0}));
  write("bias.npy", array(DataType::f32, {1}, {fine}));
  write("y.npy", array(DataType::f32, one, {fine}));
  runs("'tf32 bias acc n1c1h1w1k1r1s1' --x x.npy --w w.npy --bias bias.npy --y y.npy -o z.npy --device cpu");
  EXPECT_EQ(values_of(read_here("z.npy"), DataType::f32, one), (std::vector<double>{2 * fine}));
}

TEST_F(Conv, ChannelsLast) {
  // 2 pixels of 3 channels, to 2 channels by 1 x 1: w[k, r, s, c].
  write("x.npy", array(DataType::f32, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  write("w.npy", array(DataType::f32, {2, 1, 1, 3}, {1, 0, 0, 1, 1, 1}));
  runs("'nhwc n1c3h1w2k2r1s1' --x x.npy --w w.npy -o y.npy");
  EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, {1, 1, 2, 2}), (std::vector<double>{1, 6, 4, 15}));
}

TEST_F(Conv, PipesInAndOut) {
  write_inputs();
  runs("'" + geometry + "' --x x.npy --w w.npy -o y.npy --device cpu");
  const Outcome piped = shell("cat x.npy | $OMNICONV conv '" + geometry + "' --x - --w <(cat w.npy) -o - --device cpu");
  EXPECT_EQ(piped.status, 0) << piped.error;
  EXPECT_EQ(piped.out, read_here("y.npy"));
  EXPECT_NE(piped.error.find("solver conv2d/"), std::string::npos) << piped.error;  // not in the array
  EXPECT_EQ(shell("$OMNICONV conv '" + geometry + "' --x x.npy --w w.npy -o - -q --device cpu").error, "");
  EXPECT_EQ(shell("$OMNICONV conv '" + geometry + "' --x x.npy --w w.npy -o - > /dev/full").status, 3);
}

TEST_F(Conv, ItsReport) {
  write_inputs();
  const Outcome outcome = run("conv '" + geometry +
                              "' --x x.npy --w w.npy -o y.npy --device cpu --solver conv2d/double/cpu.1 --json c.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  for (const char* part : {"solver conv2d/double/cpu.1", " ms, ", "TFLOP/s", "error bound 1 * ("})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("c.json"));
  EXPECT_EQ(report["schema"], "omniconv-run/1");
  EXPECT_EQ(report["solver"], "conv2d/double/cpu.1");
  EXPECT_EQ(report["shapes"]["y"], json::array({2, 6, 2, 4}));
  for (const char* key : {"context_ms", "plan_ms", "read_ms", "kernel_ms", "write_ms"})
    EXPECT_GT(report[key].get<double>(), 0) << key;
}

TEST_F(Conv, ArraysThatAPassNeedsOrDoesNotRead) {
  write_inputs();
  const auto conv = [&](const std::string& words, const std::string& files, const std::vector<std::string>& parts) {
    refuses("conv '" + words + " " + geometry + "' " + files + " -o out.npy", parts);
  };
  conv("", "--w w.npy", {"reads --x (n, c, h, w)", "name its .npy file"});
  conv("", "--x x.npy", {"reads --w (k, c/g, r, s)"});
  conv("", "--x x.npy --w w.npy --dy dy.npy", {"has no array --dy", "it has --x, --w, --y", "leave it out"});
  conv("bwd_data", "--w w.npy", {"reads --dy (n, k, P, Q)"});
  conv("bwd_data", "--w w.npy --dy dy.npy --x x.npy", {"has no array --x", "it has --dx, --w, --dy"});
  conv("bwd_filter", "--x x.npy --dy dy.npy --w w.npy", {"has no array --w"});
  conv("bias", "--x x.npy --w w.npy", {"reads --bias (k)"});
  conv("", "--x x.npy --w w.npy --bias-array w.npy", {"has no array --bias"});
  conv("acc", "--x x.npy --w w.npy", {"reads --y (n, k, P, Q)"});
  conv("", "--x x.npy --w w.npy --y0 dy.npy", {"has no array --y0", "--x, --w, --y"});
  conv("", "--x - --w -", {"--x and --w are both -"});
  conv("bwd_data relu", "--w w.npy --dy dy.npy", {"relu is of the forward pass", "leave it out"});
}

TEST_F(Conv, ArraysThatAreOthers) {
  write_inputs();
  write("z.npy", array(DataType::f64, x_shape, integers(x_shape, 1)));
  const std::string good = read_here("x.npy");
  const auto with_x = [&](const std::string& content, const std::vector<std::string>& parts) {
    write("bad.npy", content);
    refuses("conv '" + geometry + "' --x bad.npy --w w.npy -o out.npy", parts);
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string content = good;
    return content.replace(content.find(from), from.size(), to);
  };
  with_x(read_here("w.npy"), {"bad.npy", "(6, 2, 3, 2)", "x (n, c, h, w)", "(2, 4, 5, 4)"});
  with_x(array(DataType::f32, {160}, integers({160}, 1)), {"(160,)", "(2, 4, 5, 4)"});
  with_x(array(DataType::f32, {}, {1}), {"()", "(2, 4, 5, 4)"});
  with_x(read_here("z.npy"), {"bad.npy", "f64", "<f4 (float32)", ".astype('<f4')"});
  with_x(changed("<f4", ">f4"), {"big-endian", "<f4"});
  with_x(changed("<f4", "<i4"), {"s32", "<f4"});
  with_x(changed("<f4", "<c8"), {"'<c8'"});
  with_x(changed("False", "True "), {"Fortran order"});
  refuses("conv '" + geometry + "' --x missing.npy --w w.npy -o out.npy", {"missing.npy", "No such file"});
  refuses("conv '" + geometry + "' --x . --w w.npy -o out.npy", {"cannot read .", "directory"});
  write("bias.npy", array(DataType::f32, {5}, integers({5}, 1)));
  refuses("conv 'bias " + geometry + "' --x x.npy --w w.npy --bias-array bias.npy -o out.npy",
          {"(5,)", "bias (k)", "(6,)"});
  for (const std::string& content : {good.substr(0, 300), good + "x"}) {
    write("piped", content);
    const Outcome outcome = shell("cat piped | $OMNICONV conv '" + geometry + "' --x - --w w.npy -o out.npy");
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.error.find("the standard input "), std::string::npos) << outcome.error;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.npy"));
  }
}

// Each kind of damage, with what was expected in its place.
TEST_F(Conv, DamagedArrays) {
  write_inputs();
  const std::string good = read_here("x.npy"),
                    text = good.substr(10, 118);  // 10 bytes, 118 of the dictionary, 640 of f32
  ASSERT_EQ(good.size(), 768u);
  const auto with_x = [&](const std::string& content, const std::string& error) {
    write("bad.npy", content);
    refuses("conv '" + geometry + "' --x bad.npy --w w.npy -o out.npy", {"error: bad.npy" + error});
  };
  // What stands behind `from` makes room for what is longer.
  const auto changed = [&](const std::string& from, std::string to) {
    std::string content = good;
    if (to.size() < from.size()) to.append(from.size() - to.size(), ' ');
    return content.replace(content.find(from), to.size(), to);
  };
  const auto with_dictionary = [&](const std::string& dictionary) {
    return good.substr(0, 10) + dictionary + std::string(118 - dictionary.size(), ' ') + good.substr(128);
  };

  const std::string magic = " is no .npy array: it does not begin with the bytes 93 4E 55 4D 50 59";
  with_x("", " is empty; an array in .npy form is expected");
  with_x("P5 8 8 255\n", magic);
  with_x("\x92" + good.substr(1), magic);
  with_x(good.substr(0, 5), magic);
  for (const std::size_t size : {std::size_t{6}, std::size_t{9}})
    with_x(good.substr(0, size), " is cut short within its .npy header");
  const std::string versions = "; read are 1.0, 2.0 and 3.0";
  with_x(std::string(good).replace(6, 2, "\4\0", 2), ": .npy version 4.0" + versions);
  with_x(std::string(good).replace(6, 2, "\0\0", 2), ": .npy version 0.0" + versions);
  with_x(std::string(good).replace(6, 2, "\1\1", 2), ": .npy version 1.1" + versions);

  // The header's length, and where it ends.
  with_x(good.substr(0, 127), " is cut short within its .npy header: 127 bytes of 128");
  with_x(std::string(good).replace(8, 2, "\xff\xff", 2), " is cut short within its .npy header: 768 bytes of 65545");
  with_x(std::string("\x93NUMPY\2\0\0\0\2\0", 12) + text + good.substr(128),
         ": its .npy header claims 131072 bytes; an array of numbers needs at most 65536");
  with_x(std::string(good).replace(8, 1, "\x10", 1),
         ": its .npy header is damaged at character 17: expected a quoted string");
  with_x(std::string(good).replace(8, 2, "\0\0", 2), ": its .npy header is damaged at character 1: expected '{'");

  // Its three entries.
  const std::string damaged = ": its .npy header is damaged at character ";
  const std::string once = "expected each of the keys 'descr', 'fortran_order' and 'shape' once, not ";
  with_x(changed("'shape'", "'shapf'"), damaged + "50: " + once + "'shapf'");
  with_x(changed("'fortran_order': False", "'descr': '<f4'"), damaged + "26: " + once + "'descr'");
  with_x(with_dictionary("{'descr': '<f4', 'fortran_order': False}"),
         damaged + "119: expected the keys 'descr', 'fortran_order' and 'shape'");
  with_x(changed("'<f4'", "4.0"), damaged + "11: expected a quoted string");
  with_x(changed("}", "} ]"), damaged + "67: expected nothing but white space after '}'");
  with_x(changed("'<f4'", "'<c8'"), ": its elements are '<c8'; read are |u1, <u2, <i2, <i4, <f2, <f4 and <f8");
  with_x(changed("'<f4'", "'|O' "), ": its elements are '|O'; read are |u1, <u2");
  with_x(with_dictionary("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 4, 5, 4), }"),
         ": an array of records; read are |u1, <u2");
  with_x(changed("False", "Maybe"), damaged + "35: expected True or False");
  with_x(changed("False", "True "), ": an array in Fortran order; save it in C order");
  with_x(changed("(2, 4, 5, 4)", "(2, 4, -5,4)"),
         damaged + "58: expected an extent of the shape, a whole number that is not negative");
  with_x(changed("(2, 4, 5, 4)", "(2, 4, 5.0,)"), damaged + "59: expected ')'");
  with_x(changed("(2, 4, 5, 4)", "(160)"), damaged + "55: expected ',' after the one extent of the shape");
  with_x(with_dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }"),
         damaged + "70: expected an extent of the shape below 2^63");
  const std::string extents = ", and x (n, c, h, w) must be (2, 4, 5, 4)";
  with_x(with_dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }"),
         ": its shape is (9223372036854775807, 9)" + extents);
  with_x(changed("(2, 4, 5, 4)", "(2, 4, 5, 5)"), ": its shape is (2, 4, 5, 5)" + extents);

  // Its data.
  const std::string size = ": the shape (2, 4, 5, 4) of f32 needs a file of 768 bytes, this one has ";
  with_x(good.substr(0, 128), " is cut short" + size + "128");
  with_x(good.substr(0, 767), " is cut short" + size + "767");
  with_x(good + "x", " goes on after its array" + size + "769");
}

// run: extents that the arrays say are left out of the text, and the arrays of any operation.
TEST_F(Conv, ExtentsAreThoseOfTheArrays) {
  write_inputs();
  const std::vector<double> x = integers(x_shape, 1), w = integers(w_shape, 2);
  std::vector<double> y(static_cast<std::size_t>(elements(y_shape)));
  each_term([&](std::size_t i, std::size_t j, std::size_t o) { y[o] += x[i] * w[j]; });
  const std::string files = " --x x.npy --w w.npy -o y.npy --device cpu";
  for (const std::string text : {"pt1pr1uh2g2", "n2pt1pr1uh2g2", "c4k6pt1pr1uh2g2"}) {
    EXPECT_EQ(run("run '" + text + "'" + files).status, 0) << text;
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, y_shape), y) << text;
  }
  refuses("run pt1pr1uh2" + files, {"c is 4 by --x and 2 by --w", "do not belong together"});
  refuses("run n3pt1pr1uh2g2" + files, {"x.npy", "(3, 4, 5, 4)"});
  refuses("run 'bwd_data pt1pr1uh2g2' --w w.npy --dy dy.npy -o y.npy", {"leaves out h (rows), w (columns)"});
  refuses("run 'bwd_data n2h5w4pt1pr1uh2g2' --w w.npy -o y.npy", {"reads --dy"});
  refuses("run pt1 -o y.npy", {"column 4", "expected n (batch size)"});
  refuses("run n0pt1pr1uh2g2" + files, {"column 1", "'n0'", "at least 1"});
  refuses("run pt1pr1uh2g9223372036854775807" + files, {"an extent that an array says"});
  write("flat.npy", array(DataType::f32, {160}, integers({160}, 1)));
  refuses("run pt1pr1uh2g2 --x flat.npy --w w.npy -o y.npy", {"--x", "1 axes", "has 4 (n, c, h, w)"});
}

TEST_F(Conv, RunMultipliesMatricesAndFilters) {
  write("a.npy", array(DataType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}));
  write("b.npy", array(DataType::f32, {2, 3}, {1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(run("run 'gemm f32 nt' --a a.npy --b b.npy -o c.npy --device cpu").status, 0);
  EXPECT_EQ(values_of(read_here("c.npy"), DataType::f32, {2, 2}), (std::vector<double>{4, 2, 10, 5}));
  EXPECT_EQ(run("run 'gemm f32 nt' --a a.npy --b b.npy -o c.npy --device cpu --scalar alpha=-0.5").status, 0);
  EXPECT_EQ(values_of(read_here("c.npy"), DataType::f32, {2, 2}), (std::vector<double>{-2, -1, -5, -2.5}));
  const std::string product = "run 'gemm f32 nt' --a a.npy --b b.npy -o d.npy --device cpu ";
  refuses(product + "--scalar alpha", {"--scalar 'alpha'", "NAME=NUMBER"});
  refuses(product + "--scalar alpha=1x", {"NAME=NUMBER"});
  refuses(product + "--scalar alpha=nan", {"NAME=NUMBER"});
  refuses(product + "--scalar beta=1", {"--scalar 'beta'", "alpha"});
  refuses(product + "--scalar alpha=1 --scalar alpha=2", {"given twice"});
  refuses(product + "--tuning a=1", {"--tuning 'a=1'", "--solver"});
  refuses(product + "--solver gemm/packed/cpu.1 --tuning a=1", {"has nothing to tune"});
  refuses(product + "--solver gemm/packed/cpu.1 --tuning a", {"NAME=INTEGER"});
  refuses("run 'gemm f32 nn' --a a.npy --b b.npy -o c.npy", {"k is 3 by --a and 2 by --b"});
  write("x.npy", array(DataType::f32, {1, 3, 1}, {0, 3, 6}));
  EXPECT_EQ(run("run 'filter2d f32 r1s3 kernel:equal' --x x.npy -o f.npy --device cpu").status, 0);
  EXPECT_EQ(values_of(read_here("f.npy"), DataType::f32, {1, 3, 1}), (std::vector<double>{1, 3, 5}));
}

// Whatever name a file is called by.
TEST_F(Conv, ReportsReplaceNoArray) {
  ASSERT_EQ(shell("echo array > x.npy; ln -s x.npy linked.json; ln -s . here").status, 0);
  const std::string arrays = "run n1c1h2w2k1r1s1 --x x.npy --w w.npy -o y.npy --json ";
  for (const char* report : {"./x.npy", "linked.json", "here/x.npy"})
    refuses(arrays + report, {"is that of --x: name another file"});
  for (const char* report : {"y.npy", "here/y.npy"}) refuses(arrays + report, {"is that of -o: name another file"});
}

TEST_F(Conv, Usage) {
  write_inputs();
  const std::string conv = "conv '" + geometry + "' --x x.npy --w w.npy ";
  refuses("conv", {"PROBLEM"});
  refuses("conv 'gemm f32 nn m2n2k2' --x x.npy -o y.npy", {"reads --a (m, k)"});
  refuses("run 'gemm f32 nn' --x x.npy -o y.npy", {"gemm f32 nn has no array --x: it has --a, --b, --c"});
  refuses("conv n1c1h1w1k1r3s3 --x x.npy --w w.npy -o y.npy", {"column"});
  refuses("conv n1c3h4w4k4r1s1g2 --x x.npy --w w.npy -o y.npy", {"groups is 2", "c, which is 3"});
  refuses(conv, {"output file", "-o"});
  refuses(conv + "-o missing/y.npy", {"missing", "folder"});
  refuses(conv + "-o .", {"folder"});
  for (const char* command : {"run", "conv"})
    refuses(command + (" '" + geometry + "' --x x.npy --w w.npy -o y.txt"), {"y.txt", ".npy"});
  refuses(conv + "-o ''", {"--output", "empty"});
  refuses(conv + "-o - --json -", {"--json -", "-o -"});
  refuses(conv + "-o y.npy --json y.npy", {"--json y.npy", "another file"});
  refuses(conv + "-o y.npy --json ./x.npy", {"--json ./x.npy", "--x"});
  refuses(conv + "-o y.npy --solver conv2d/doble/cpu.1", {"unknown solver", "conv2d/double/cpu.1"});
  refuses(conv + "-o y.npy --solver gemm/double/cpu.1", {"is of gemm"});
  refuses(conv + "-o y.npy --solver all", {"unknown solver 'all'"});
  refuses(conv + "-o y.npy --deny conv2d", {"is denied"});
  refuses(conv + "-o y.npy --scalar alpha=1", {"--scalar 'alpha'", "has none"});
  refuses(conv + "-o y.npy --device cpu --max-error 0", {"max_error is 0"});
}

}  // namespace
}  // namespace omniconv
