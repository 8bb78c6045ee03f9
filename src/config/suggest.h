#pragma once

#include <string>
#include <string_view>

namespace handgrad {

/// What a message adds about a key that does not exist: "; did you mean optimizer.lr?", or the keys of its table.
std::string suggestion(std::string_view key);

/// The same for a table: "; did you mean [model]?", or all tables.
std::string table_suggestion(std::string_view table);

/// Is there a key in this table?
bool is_table(std::string_view table);

}  // namespace handgrad
