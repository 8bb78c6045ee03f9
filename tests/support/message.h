#pragma once

#include <gtest/gtest.h>

#include <string>

namespace handgrad::test {

/// The message of the error that `call` throws. The test fails if it throws none, or another type.
template <class Error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another type: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace handgrad::test
