#pragma once

#include <nlohmann/json.hpp>

#include "options.h"

namespace handgrad::cli {

using Json = nlohmann::ordered_json;

/// Throws DataError if the file of --json=FILE is a directory or its folder does not exist. Call it before the work.
void check_json(const Values& values);

/// Is standard output reserved for the JSON object?
bool prints_json(const Values& values);

/// For --json, prints one line of JSON; for --json=FILE, writes it to the file, as write_output does.
void write_json(const Values& values, const Json& json);

}  // namespace handgrad::cli
