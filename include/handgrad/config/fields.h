#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad::config {

/// Version of the set of keys, stored in resolved configs. A new key raises it and states its value in older files.
inline constexpr int config_format = 2;

enum class FieldType { integer, real, boolean, string, paths, choice };

/// How a key may differ when a run is resumed: not at all; freely; not below the updates done (`train.steps`); only if
/// batch_size x accumulation remains the same.
enum class ResumeClass { same, free, steps, global_batch };

/// A value of a field. A choice is stored by its name.
using FieldValue = std::variant<Index, double, bool, std::string, std::vector<std::string>>;

struct IntegerRange {
  Index lowest = 0, highest = 0;
};

struct RealRange {
  double lowest = 0, highest = 0;
  bool with_lowest = true, with_highest = true;
};

/// The description of one key of a config.
struct Field {
  std::string table;  ///< "model"
  std::string key;    ///< "model.n_heads"
  FieldType type = FieldType::integer;
  IntegerRange integers;             ///< Of type integer.
  RealRange reals;                   ///< Of type real.
  std::vector<std::string> choices;  ///< Of type choice.
  ResumeClass resume = ResumeClass::free;
  std::string help;                                ///< One line.
  std::vector<std::string> aliases;                ///< Names in other programs, for suggestions.
  int since = 1;                                   ///< The config_format that introduced it.
  std::optional<FieldValue> value_in_older_files;  ///< Its value in files of an older format; empty: its default.
  std::function<FieldValue(const Config&)> get;
  std::function<void(Config&, const FieldValue&)> set;  ///< Requires accepts(field, value).

  /// The key without its table.
  std::string_view name() const { return std::string_view(key).substr(table.size() + 1); }
};

/// All keys, grouped by table, in the order in which they are documented.
const std::vector<Field>& fields();

/// The field of a key such as "model.n_heads"; null for an unknown key.
const Field* find_field(std::string_view key);

/// The values that a field accepts: "an integer from 1 to 1024".
std::string expected(const Field& field);

/// Does the value have the field's type, and is it within the field's range?
bool accepts(const Field& field, const FieldValue& value);

/// Sets every key that is newer than `format` and not in `given` to its value in older files.
void set_older_values(const std::vector<Field>& table, int format, const std::set<std::string>& given, Config& config);

/// A value as TOML. Reading it back gives the same bits in every locale.
std::string to_toml(const FieldValue& value);

}  // namespace handgrad::config
