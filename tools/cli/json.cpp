#include "json.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "handgrad/core/errors.h"
#include "handgrad/files/output_file.h"

namespace handgrad::cli {
namespace {

// Empty: standard output.
std::string json_file(const Values& values) {
  const std::string file = values.text("json");
  return file == "-" ? "" : file;
}

}  // namespace

void check_json(const Values& values) {
  const std::string file = json_file(values);
  if (file.empty()) return;
  const std::string place = files::link_target(file);
  std::error_code error;
  if (std::filesystem::is_directory(place, error)) {
    throw DataError(fmt::format("cannot write {}: is a directory", file));
  }
  if (!std::filesystem::is_directory(files::folder_of(place), error)) {
    throw DataError(fmt::format("cannot write {}: no such file or directory", file));
  }
}

bool prints_json(const Values& values) { return values.given("json") && values.text("json").empty(); }

void write_json(const Values& values, const Json& json) {
  if (!values.given("json")) return;
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string file = json_file(values);
  if (file.empty()) {
    fmt::print("{}", line);
    return;
  }
  std::fflush(stdout);  // FILE may be standard output under another name
  files::write_output(posix_files(), file, line);
}

}  // namespace handgrad::cli
