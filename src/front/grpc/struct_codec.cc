#include "front/grpc/struct_codec.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <protozero/pbf_writer.hpp>

namespace sluice::front::grpc {
namespace {

namespace json = boost::json;

void write_object(const json::object& object, protozero::pbf_writer& writer);

void write_value(const json::value& value, protozero::pbf_writer& writer) {
  switch (value.kind()) {
    case json::kind::null:
      writer.add_enum(1, 0);
      break;
    case json::kind::bool_:
      writer.add_bool(4, value.get_bool());
      break;
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      writer.add_double(2, value.to_number<double>());
      break;
    case json::kind::string:
      writer.add_string(3, value.get_string().data(), value.get_string().size());
      break;
    case json::kind::object: {
      protozero::pbf_writer inner(writer, 5);
      write_object(value.get_object(), inner);
      break;
    }
    case json::kind::array: {
      protozero::pbf_writer list(writer, 6);
      for (const json::value& element : value.get_array()) {
        protozero::pbf_writer inner(list, 1);
        write_value(element, inner);
      }
      break;
    }
  }
}

void write_object(const json::object& object, protozero::pbf_writer& writer) {
  for (const auto& [name, value] : object) {
    protozero::pbf_writer field(writer, 1);
    field.add_string(1, name.data(), name.size());
    protozero::pbf_writer inner(field, 2);
    write_value(value, inner);
  }
}

}  // namespace

std::string encode_struct(std::string_view json_text) {
  std::string out;
  boost::system::error_code error;
  const json::value value = json::parse(json_text, error);  // no deeper than 32 levels
  if (error || !value.is_object()) return out;
  protozero::pbf_writer writer(out);
  write_object(value.get_object(), writer);
  return out;
}

}  // namespace sluice::front::grpc
