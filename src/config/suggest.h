#pragma once

#include <string>
#include <string_view>

namespace handgrad::config {

/// The hint that follows the name of an unknown key: "; did you mean optimizer.lr?", or the keys of its table.
std::string suggestion(std::string_view key);

/// The same for an unknown table: "; did you mean [model]?", or all tables.
std::string table_suggestion(std::string_view table);

/// Is there a table of this name?
bool is_table(std::string_view table);

}  // namespace handgrad::config
