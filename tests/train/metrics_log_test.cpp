#include "train/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "handgrad/core/errors.h"
#include "handgrad/files/file_system.h"
#include "handgrad/files/read_file.h"
#include "support/failing_files.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace handgrad {
namespace {

using test::TemporaryFolder;

std::string row(Index step, const std::string& split = "train", double elapsed = 0.0) {
  nlohmann::ordered_json json = {{"step", step}, {"split", split}, {"loss", 1.5}};
  if (elapsed > 0.0) json["elapsed_s"] = elapsed;
  return json.dump();
}

LoopState at(Index step, bool pending = false) {
  LoopState loop;
  loop.step = step, loop.evaluation_pending = pending;
  return loop;
}

// The content of a log after it has been opened.
std::string opened(const std::string& before, const LoopState& loop) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log", std::ios::binary) << before;
  MetricsLog(posix_files(), folder / "log", loop);
  return files::read_file(folder / "log");
}

TEST(MetricsLog, rows_of_later_steps_go) {
  const std::string kept = row(1) + "\n" + row(2) + "\n" + row(2, "val") + "\n";
  EXPECT_EQ(opened(kept + row(3) + "\n" + row(4) + "\n", at(2)), kept);
  EXPECT_EQ(opened("", at(2)), "");
}

TEST(MetricsLog, an_evaluation_that_is_still_to_come_goes) {
  const std::string kept = row(1, "val") + "\n" + row(2) + "\n" + row(2, "health") + "\n";
  EXPECT_EQ(opened(kept + row(2, "val") + "\n", at(2, true)), kept);
}

// None of these lines may cause the rows after it to be cut off.
TEST(MetricsLog, lines_of_other_origin_stay_and_cost_nothing) {
  for (const std::string foreign : {"# a note", "", "   ", "not json", "[1, 2]", "{\"note\": \"no step\"}", "42",
                                    "{\"step\": \"two\"}", "step 1  loss 4.0480", "{\"step\":"}) {
    const std::string kept = row(1) + "\n" + foreign + "\n" + row(2) + "\n";
    EXPECT_EQ(opened(kept, at(2)), kept) << foreign;
    EXPECT_EQ(opened(kept + row(3) + "\n" + foreign + "\n", at(2)), kept + foreign + "\n") << foreign;
  }
}

TEST(MetricsLog, a_row_whose_split_is_no_text_is_kept) {
  const std::string kept = row(1) + "\n{\"step\":2,\"split\":5}\n{\"step\":2}\n";
  EXPECT_EQ(opened(kept + row(2, "val") + "\n", at(2, true)), kept);
}

TEST(MetricsLog, a_pipe_of_its_name_is_refused_without_waiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "log").c_str(), 0600), 0);
  EXPECT_EQ(test::message_of<DataError>([&] { MetricsLog(posix_files(), folder / "log", at(2)); }),
            "cannot read " + (folder / "log") + ": is not a regular file");
}

TEST(MetricsLog, line_ends_of_other_systems_are_read) {
  const std::string kept = row(1) + "\r\n" + row(2) + "\r\n";
  EXPECT_EQ(opened(kept + row(3) + "\r\n", at(2)), kept);
}

TEST(MetricsLog, a_last_line_without_an_end_is_completed_and_a_torn_row_goes) {
  EXPECT_EQ(opened(row(1) + "\n" + row(2), at(2)), row(1) + "\n" + row(2) + "\n");
  EXPECT_EQ(opened(row(1) + "\n" + row(2).substr(0, 9), at(2)), row(1) + "\n");
  EXPECT_EQ(opened(row(1) + "\n# a note", at(2)), row(1) + "\n# a note\n");
}

TEST(MetricsLog, time_goes_on_and_tokens_too) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << row(1, "train", 100.5) << "\n"
                                << row(2, "val") << "\n"
                                << row(3, "train", 900) << "\n";
  LoopState loop = at(2);
  loop.tokens = 640;
  MetricsLog log(posix_files(), folder / "log", loop);
  StepReport report;
  report.step = 3, report.tokens = 960;
  log.add(report);
  const std::string text = files::read_file(folder / "log");
  const auto last = nlohmann::json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
  EXPECT_GE(last["elapsed_s"].get<double>(), 100.5);
  EXPECT_LT(last["elapsed_s"].get<double>(), 900.0);
  EXPECT_GE(last["tokens_per_s"].get<double>(), 0.0);
}

// The first step of a session allocates memory and warms up, so it is left out of the rate unless it is the only one.
TEST(MetricsLog, the_first_step_of_a_session_does_not_count_in_rates) {
  const TemporaryFolder folder;
  MetricsLog log(posix_files(), folder / "log", at(0));
  StepReport report;
  ::usleep(300'000);
  report.step = 1, report.tokens = 1000;
  log.note(report);
  ::usleep(1000);
  report.step = 2, report.tokens = 2000;
  log.note(report);
  log.add(report);
  const auto row = nlohmann::json::parse(files::read_file(folder / "log"));
  EXPECT_GT(row["tokens_per_s"].get<double>(), 1000 / 0.3) << "as fast as the second step";
}

// A run must be able to continue on a full disk: nothing is written unless the log changes.
TEST(MetricsLog, cutting_rows_off_needs_no_room) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << row(1) << "\n" << row(2) << "\n";
  test::FailingFiles full([](int, const std::string& name) { return name == "write" ? -ENOSPC : 0; });
  MetricsLog(&full, folder / "log", at(1));
  EXPECT_EQ(files::read_file(folder / "log"), row(1) + "\n");
}

}  // namespace
}  // namespace handgrad
