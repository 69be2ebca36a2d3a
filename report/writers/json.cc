#include <google/protobuf/util/json_util.h>

#include "report/writers/formats.h"

namespace attntrace {

std::string WriteJson(const Report& report, const WriterOptions& options) {
  google::protobuf::util::JsonPrintOptions json;
  json.add_whitespace = true;
  json.always_print_primitive_fields = true;  // a jq line finds its field, whatever its value
  json.preserve_proto_field_names = true;
  std::string text;
  // Strings are UTF-8 since the decoder, so nothing is left that could fail but memory.
  if (!google::protobuf::util::MessageToJsonString(report, &text, json).ok()) return "{}\n";
  return text;
}

}  // namespace attntrace
