// Members of objects that hold their default are left out of files. Internal to inspect/ and saved/.
//
//   member_unless(json, "depth", copy.depth, standard.depth);
#pragma once

#include <string_view>

#include "cgrt/base/json_writer.h"

namespace cgrt::inspect {

template <class Value>
void member_unless(JsonWriter& json, std::string_view key, const Value& value, const Value& standard) {
  if (value != standard) json.member(key, value);
}

}  // namespace cgrt::inspect
