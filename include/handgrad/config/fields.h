#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "handgrad/config/config.h"

namespace handgrad {

/// Version of the set of keys, written to resolved copies. A new key raises it, and gives its value for older files.
inline constexpr int config_format = 2;

enum class FieldType { integer, real, boolean, string, paths, choice };

/// What a resumed run may do to a key: nothing; change it freely; change it as long as the updates done stay done
/// (`train.steps`); change it as long as batch_size x accumulation stays.
enum class ResumeClass { same, free, steps, global_batch };

/// A value of a field. A choice is the name of what is chosen.
using FieldValue = std::variant<Index, double, bool, std::string, std::vector<std::string>>;

struct IntegerRange {
  Index lowest = 0, highest = 0;
};

struct RealRange {
  double lowest = 0, highest = 0;
  bool with_lowest = true, with_highest = true;
};

/// All that there is to know about one key of a config.
struct Field {
  std::string table;  ///< "model"
  std::string key;    ///< "model.n_heads"
  FieldType type = FieldType::integer;
  IntegerRange integers;             ///< Of type integer.
  RealRange reals;                   ///< Of type real.
  std::vector<std::string> choices;  ///< Of type choice.
  ResumeClass resume = ResumeClass::free;
  std::string help;                    ///< One line.
  std::vector<std::string> elsewhere;  ///< What other programs call it, to suggest it by.
  int since = 1;                       ///< The config_format that introduced it.
  std::optional<FieldValue> before;    ///< Its value in files of an older format; its default if empty.
  std::function<FieldValue(const Config&)> get;
  std::function<void(Config&, const FieldValue&)> set;  ///< Takes a value that `problem` finds nothing wrong with.

  /// The key without its table.
  std::string_view name() const { return std::string_view(key).substr(table.size() + 1); }
};

/// Every key, grouped by table, in the order in which people read them. Made once, never changed.
const std::vector<Field>& fields();

/// The field of a key such as "model.n_heads"; null if there is none.
const Field* find_field(std::string_view key);

/// What a field takes: "an integer from 1 to 1024".
std::string expected(const Field& field);

/// Is the value of the field's type and within its range?
bool accepts(const Field& field, const FieldValue& value);

/// Gives every key that is newer than `format`, and is not in `given`, the value that it has for older files.
void set_older_values(const std::vector<Field>& table, int format, const std::set<std::string>& given, Config& config);

/// A value as TOML: reading it back gives the same bits, in every locale.
std::string to_toml(const FieldValue& value);

}  // namespace handgrad
