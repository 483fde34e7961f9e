// export and import: from a checkpoint to a file and back, PyTorch's files, and what is refused.
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"

namespace omniconv::onnx_command_tests {
namespace {

using nlohmann::json;

class OnnxCommand : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    const Outcome outcome = run("import none.onnx -o none");
    if (outcome.error.find("built without ONNX") != std::string::npos) GTEST_SKIP() << outcome.error;
  }
  static std::string shipped(const std::string& name) {
    return OMNICONV_SOURCE_DIR "/tests/train/onnx/" + name + ".onnx";
  }
};

TEST_F(OnnxCommand, ImportsAndExports) {
  const Outcome outcome = run("import " + shipped("plain") + " -o one --classes a,b,c,d --mean 0.5 --deviation 0.25");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out.find("plain: 210 parameters, 4 classes, in one/step-00000000.json\n\ninput 1 8 8\nconv 4 3x3"),
            0u)
      << outcome.out;
  const Outcome back = run("export one --onnx net.onnx");
  EXPECT_EQ(back.status, 0) << back.error;
  EXPECT_EQ(back.out, "plain: 210 parameters, trained for 0 steps, in net.onnx\n");
  const Outcome again = run("import net.onnx -o two --json -");
  EXPECT_EQ(again.status, 0) << again.error;
  const json report = json::parse(again.out);
  EXPECT_EQ(report["schema"], "omniconv-import/1");
  EXPECT_EQ(report["classes"], (json{"a", "b", "c", "d"}));
  EXPECT_EQ(report["mean"], json{0.5});
  EXPECT_EQ(report["deviation"], json{0.25});
  EXPECT_EQ(report["checkpoint"], "two/step-00000000.json");
  EXPECT_EQ(read_here("one/step-00000000.safetensors"), read_here("two/step-00000000.safetensors"));
  EXPECT_EQ(run("export two --onnx again.onnx --quiet").out, "");
  EXPECT_EQ(read_here("net.onnx"), read_here("again.onnx"));
  // Its logits and shares, of any image.
  const Outcome found = run("predict two $PHOTO --device cpu --json found.json");
  EXPECT_EQ(found.status, 0) << found.error;
  const json image = json::parse(read_here("found.json"))["images"][0];
  EXPECT_EQ(image["logits"].size(), 5u);
  EXPECT_EQ(image["found"].size(), 4u);
}

TEST_F(OnnxCommand, BadInput) {
  refuses("import", {"ONNX is required"});
  refuses("import net.onnx", {"--output is required"});
  refuses("export one", {"--onnx is required"});
  refuses("import none.onnx -o one", {"cannot read none.onnx"});
  refuses("export none --onnx net.onnx", {"none: a checkpoint is named by"});
  refuses("import " + shipped("plain") + " -o one --classes a,b,c,d,e,f", {"--classes has 6 names, and the network 5"});
  refuses("import " + shipped("residual") + " -o one --mean 0.5",
          {"--mean 0.5: the network has 3 channels, and a number of each is expected"});
  refuses("import " + shipped("plain") + " -o one --deviation nan", {"--deviation"});
  write("text.onnx", "input 1 8 8\n");
  refuses("import text.onnx -o one", {"text.onnx: it is no ONNX file, or a damaged one"});
  EXPECT_EQ(run("import " + shipped("mean") + " -o one").status, 0);
  refuses("import " + shipped("mean") + " -o one", {"one: checkpoints lie there already: name another folder"});
  refuses("export one --onnx missing/net.onnx", {"missing"});
}

}  // namespace
}  // namespace omniconv::onnx_command_tests
