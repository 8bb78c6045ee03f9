#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "support/command_line.h"

// tools/plot_metrics.py draws every kind of metrics, and never overwrites a metrics file.

namespace handgrad {
namespace {

using test::CommandLine;

const std::string first = "{\"step\":1,\"split\":\"train\",\"loss\":4.5}\n",
                  skipped = "{\"step\":2,\"split\":\"train\",\"loss\":\"nan\",\"skipped\":true}\n",
                  health = "{\"step\":3,\"split\":\"health\",\"head/grad_norm\":1.0}\n",
                  validated = "{\"step\":3,\"split\":\"val\",\"loss\":3.25}\n";

class PlotMetrics : public testing::Test {
 protected:
  // Returns the exit code; `said` receives the output.
  int plot(const std::string& arguments) {
    const int status = std::system(("cd " + line.path() + " && python3 " HANDGRAD_SOURCE_DIR "/tools/plot_metrics.py " +
                                    arguments + " 2> plot.err")
                                       .c_str());
    said = line.read("plot.err");
    return WEXITSTATUS(status);
  }
  void refuses(const std::string& arguments, const std::string& message) {
    SCOPED_TRACE(arguments);
    EXPECT_NE(plot(arguments), 0);
    EXPECT_EQ(said, message + "\n");
  }
  CommandLine line;
  std::string said;
};

// A run that was stopped before its first evaluation, with skipped updates and health records.
TEST_F(PlotMetrics, draws_a_run) {
  line.write("rows.jsonl", first + skipped + health);
  EXPECT_EQ(plot("rows.jsonl out.svg"), 0) << said;
  EXPECT_NE(line.read("out.svg").find("</svg>"), std::string::npos);
  line.write("rows.jsonl", first + validated + "{\"step\":4,\"spl");  // a row that is still being written
  EXPECT_EQ(plot("rows.jsonl out.svg"), 0) << said;
  EXPECT_NE(line.read("out.svg").find("validation loss at the end: 3.250"), std::string::npos);
  line.write("rows.jsonl", skipped + health);
  refuses("rows.jsonl out.svg", "rows.jsonl: no loss to draw");
}

TEST_F(PlotMetrics, draws_several_runs_together) {
  line.write("runs/one/metrics.jsonl", first + validated);
  line.write("runs/a<b/metrics.jsonl", first + validated + skipped);
  EXPECT_EQ(plot("runs/one 'runs/a<b/metrics.jsonl' both.SVG"), 0) << said;
  const std::string picture = line.read("both.SVG");
  EXPECT_NE(picture.find(">one: validation 3.250"), std::string::npos);
  EXPECT_NE(picture.find(">a&lt;b: validation 3.250"), std::string::npos);
}

// The loss of a text of one token is 0 from the first step on.
TEST_F(PlotMetrics, draws_a_loss_of_zero) {
  line.write("rows.jsonl", "{\"step\":0,\"split\":\"train\",\"loss\":0.0}\n");
  EXPECT_EQ(plot("rows.jsonl out.svg"), 0) << said;
}

TEST_F(PlotMetrics, writes_over_no_metrics_and_under_no_other_name) {
  line.write("a.jsonl", first);
  line.write("b.jsonl", first + validated);
  std::filesystem::create_symlink("a.jsonl", line / "a.svg");
  std::filesystem::create_symlink("b.jsonl", line / "b.svg");
  const std::string before = line.everything();
  refuses("a.jsonl b.jsonl", "the last argument names the picture, which ends in .svg; got b.jsonl");
  refuses("a.jsonl out.png", "the last argument names the picture, which ends in .svg; got out.png");
  refuses("a.jsonl .", "the last argument names the picture, which ends in .svg; got .");
  refuses("a.jsonl a.svg", "a.svg: is one of the inputs");
  refuses("a.jsonl b.svg", "b.svg: leads to a .jsonl file, which is never written over");
  std::filesystem::remove(line / "plot.err");
  EXPECT_EQ(line.everything(), before);
}

// Lines that a person or another program has added are ignored.
TEST_F(PlotMetrics, leaves_out_lines_that_are_no_rows) {
  line.write("rows.jsonl",
             first + "# a comment\n\n\xFF\xFE\n{\"step\":\"x\",\"split\":\"val\",\"loss\":1}\n" + validated);
  EXPECT_EQ(plot("rows.jsonl out.svg"), 0) << said;
  EXPECT_TRUE(said.find("note: rows.jsonl:") == 0 && said.find(": not a row of metrics; 3 of ") != std::string::npos)
      << said;
  EXPECT_NE(line.read("out.svg").find("polyline"), std::string::npos);
}

TEST_F(PlotMetrics, says_in_a_line_what_cannot_be_read) {
  refuses("none.jsonl out.svg", "cannot read none.jsonl: No such file or directory");
  line.write("empty/text.txt", "no metrics");
  refuses("empty out.svg", "cannot read empty/metrics.jsonl: No such file or directory");
  refuses("empty/text.txt out.svg", "empty/text.txt: no loss to draw");
  line.write("text.txt", "no metrics\n");
  refuses("text.txt out.svg", "text.txt:1: not a row of metrics");
  line.write("rows.jsonl", first);
  refuses("rows.jsonl none/out.svg", "cannot write none/out.svg: No such file or directory");
}

}  // namespace
}  // namespace handgrad
