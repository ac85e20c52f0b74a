// Early return for absl::Status and absl::StatusOr.
//
//   CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
//   CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(device));
#pragma once

#include "cgrt/base/language.h"  // first

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Names that are used once, so that the expression may be a lambda that holds others of these.
#define CGRT_RETURN_IF_ERROR(...) CGRT_RETURN_IF_ERROR_AT(CGRT_CONCAT(cgrt_status_, __COUNTER__), __VA_ARGS__)

#define CGRT_RETURN_IF_ERROR_AT(status, ...)             \
  do {                                                   \
    absl::Status status = (__VA_ARGS__);                 \
    if (ABSL_PREDICT_FALSE(!status.ok())) return status; \
  } while (false)

#define CGRT_ASSIGN_OR_RETURN(declaration, ...) \
  CGRT_ASSIGN_OR_RETURN_AT(CGRT_CONCAT(cgrt_result_, __COUNTER__), declaration, __VA_ARGS__)

#define CGRT_ASSIGN_OR_RETURN_AT(result, declaration, ...)                 \
  auto result = (__VA_ARGS__);                                             \
  if (ABSL_PREDICT_FALSE(!result.ok())) return std::move(result).status(); \
  declaration = *std::move(result)

#define CGRT_CONCAT(a, b) CGRT_CONCAT_AGAIN(a, b)
#define CGRT_CONCAT_AGAIN(a, b) a##b
