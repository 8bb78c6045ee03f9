#pragma once

#include <string>
#include <utility>
#include <vector>

#include "handgrad/config/fields.h"

namespace handgrad::config {

inline RealRange closed(double lowest, double highest) { return {lowest, highest, true, true}; }
inline RealRange below(double lowest, double highest) { return {lowest, highest, true, false}; }
inline RealRange above(double lowest, double highest) { return {lowest, highest, false, true}; }
inline RealRange between(double lowest, double highest) { return {lowest, highest, false, false}; }

/// A field whose details are set after it has been added to the table.
struct FieldDraft {
  Field field;

  FieldDraft& on_resume(ResumeClass resume) {
    field.resume = resume;
    return *this;
  }
  FieldDraft& since(int format) {
    field.since = format;
    return *this;
  }
  FieldDraft& aliases(std::vector<std::string> names) {
    field.aliases = std::move(names);
    return *this;
  }
};

/// Names of an enum's values.
template <class E>
using Choices = std::vector<std::pair<E, std::string>>;

/// Builds the fields of one table, [name], from pointers to the members of its struct.
template <class Part>
class TableBuilder {
 public:
  TableBuilder(std::vector<FieldDraft>& drafts, std::string name, Part Config::*part, ResumeClass resume)
      : drafts_(drafts), name_(std::move(name)), part_(part), resume_(resume) {}

  FieldDraft& integer(const char* name, Index Part::*member, IntegerRange range, const char* help) {
    FieldDraft& draft = plain(name, FieldType::integer, member, help);
    draft.field.integers = range;
    return draft;
  }
  FieldDraft& real(const char* name, double Part::*member, RealRange range, const char* help) {
    FieldDraft& draft = plain(name, FieldType::real, member, help);
    draft.field.reals = range;
    return draft;
  }
  FieldDraft& boolean(const char* name, bool Part::*member, const char* help) {
    return plain(name, FieldType::boolean, member, help);
  }
  FieldDraft& string(const char* name, std::string Part::*member, const char* help) {
    return plain(name, FieldType::string, member, help);
  }
  FieldDraft& paths(const char* name, std::vector<std::string> Part::*member, const char* help) {
    return plain(name, FieldType::paths, member, help);
  }
  template <class E>
  FieldDraft& choice(const char* name, E Part::*member, const Choices<E>& choices, const char* help) {
    FieldDraft& draft = described(name, FieldType::choice, help);
    for (const auto& [value, text] : choices) draft.field.choices.push_back(text);
    draft.field.get = [part = part_, member, choices](const Config& config) -> FieldValue {
      for (const auto& [value, text] : choices) {
        if (value == config.*part.*member) return text;
      }
      return std::string("?");
    };
    draft.field.set = [part = part_, member, choices](Config& config, const FieldValue& chosen) {
      for (const auto& [value, text] : choices) {
        if (text == std::get<std::string>(chosen)) config.*part.*member = value;
      }
    };
    return draft;
  }

 private:
  FieldDraft& described(const char* name, FieldType type, const char* help) {
    Field field;
    field.table = name_;
    field.key = name_ + "." + name;
    field.type = type;
    field.resume = resume_;
    field.help = help;
    return drafts_.emplace_back(FieldDraft{std::move(field)});
  }
  template <class T>
  FieldDraft& plain(const char* name, FieldType type, T Part::*member, const char* help) {
    FieldDraft& draft = described(name, type, help);
    draft.field.get = [part = part_, member](const Config& config) -> FieldValue { return config.*part.*member; };
    draft.field.set = [part = part_, member](Config& config, const FieldValue& value) {
      config.*part.*member = std::get<T>(value);
    };
    return draft;
  }

  std::vector<FieldDraft>& drafts_;
  std::string name_;
  Part Config::*part_;
  ResumeClass resume_;
};

}  // namespace handgrad::config
