#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

#include "handgrad/core/errors.h"

namespace handgrad::misuse {

/// The public headers, relative to include/handgrad, that the tests of this folder call with wrong arguments.
inline std::set<std::string>& covered_headers() {
  static std::set<std::string> headers;
  return headers;
}

/// Registers the headers that a test file covers.
struct Covers {
  Covers(std::initializer_list<const char*> headers)
      : Covers(std::vector<std::string>(headers.begin(), headers.end())) {}
  explicit Covers(const std::vector<std::string>& headers) { covered_headers().insert(headers.begin(), headers.end()); }
};

/// The message of the error if the call throws exactly this type, else a description of the result.
template <class Type, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return typeid(error) == typeid(Type) ? error.what() : std::string("an error of another type: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("not an error of ours: ") + error.what();
  }
  return "no error";
}

/// Expects a typed error whose message contains these words: the operation, the rule, the values.
#define EXPECT_REFUSED(Type, words, ...)                                                          \
  do {                                                                                            \
    const std::string message = ::handgrad::misuse::refusal<Type>([&] { (void)(__VA_ARGS__); });  \
    EXPECT_NE(message.find(words), std::string::npos) << #__VA_ARGS__ << "\n  gave: " << message; \
  } while (false)

}  // namespace handgrad::misuse
