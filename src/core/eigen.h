#pragma once

#include <Eigen/Core>

#include "handgrad/core/views.h"

namespace handgrad {

template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class S>
Eigen::Map<const Matrix<S>, 0, Eigen::OuterStride<>> eigen_map(Rows<const S> rows) {
  return {rows.data, rows.rows, rows.cols, Eigen::OuterStride<>(rows.stride)};
}

template <class S>
Eigen::Map<Matrix<S>, 0, Eigen::OuterStride<>> eigen_map(Rows<S> rows) {
  return {rows.data, rows.rows, rows.cols, Eigen::OuterStride<>(rows.stride)};
}

}  // namespace handgrad
