#include "front/grpc/reflection.h"

#include <algorithm>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "front/grpc/protobuf_fields.h"
#include "service_descriptors.h"

namespace sluice::front::grpc {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;

/// A .proto file, compiled: its FileDescriptorProto, and the names of what it declares.
struct File {
  std::string_view bytes;
  std::string_view name;
  std::string package;
  std::vector<std::string> symbols;
  std::vector<std::string> services;
};

/// The names in a message: its own and those of what is declared in it.
void read_message(pbf_reader reader, const std::string& scope, File& file) {
  std::string name;
  std::vector<pbf_reader> nested;
  while (reader.next()) {
    if (!reader.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
      reader.skip();
    } else if (reader.tag() == 1) {
      name = scope + "." + std::string(view_of(reader.get_view()));
    } else if (reader.tag() == 3) {
      nested.push_back(reader.get_message());
    } else if (reader.tag() == 4) {
      nested.push_back(reader.get_message());  // an enumeration: its name is in the same place
    } else {
      reader.skip();
    }
  }
  file.symbols.push_back(name);
  for (pbf_reader& one : nested) read_message(one, name, file);
}

void read_service(pbf_reader reader, File& file) {
  std::string name;
  std::vector<std::string> methods;
  while (reader.next()) {
    if (reader.tag() == 1) {
      name = file.package + "." + std::string(view_of(reader.get_view()));
    } else if (reader.tag() == 2) {
      pbf_reader method = reader.get_message();
      while (method.next()) {
        if (method.tag() == 1) {
          methods.emplace_back(view_of(method.get_view()));
        } else {
          method.skip();
        }
      }
    } else {
      reader.skip();
    }
  }
  file.symbols.push_back(name);
  file.services.push_back(name);
  for (const std::string& method : methods) file.symbols.push_back(name + "." + method);
}

File read_file(std::string_view bytes) {
  File file{.bytes = bytes, .name = {}, .package = {}, .symbols = {}, .services = {}};
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        file.name = view_of(reader.get_view());
        break;
      case 2:
        file.package = std::string(view_of(reader.get_view()));
        break;
      case 4:
      case 5: {
        // Also an enumeration of the file's own, whose values, under another number, are not looked at.
        read_message(reader.get_message(), file.package, file);
        break;
      }
      case 6:
        read_service(reader.get_message(), file);
        break;
      default:
        reader.skip();
    }
  }
  return file;
}

/// All files, in the order in which one needs the other.
const std::vector<File>& files() {
  static const std::vector<File> kFiles = [] {
    std::vector<File> all;
    pbf_reader reader(kServiceDescriptors.data(), kServiceDescriptors.size());
    while (reader.next(1)) all.push_back(read_file(view_of(reader.get_view())));
    return all;
  }();
  return kFiles;
}

void put_not_found(pbf_writer& out, std::string_view what) {
  constexpr std::int32_t not_found = 5;
  pbf_writer error(out, 7);
  error.add_int32(1, not_found);
  const std::string text = "not known here: " + std::string(what);
  error.add_string(2, text);
}

template <typename Matches>
void put_file(pbf_writer& out, std::string_view asked, Matches matches) {
  const auto found = std::ranges::find_if(files(), matches);
  if (found == files().end()) {
    put_not_found(out, asked);
    return;
  }
  pbf_writer answer(out, 4);
  answer.add_bytes(1, found->bytes.data(), found->bytes.size());
}

void put_services(pbf_writer& out) {
  pbf_writer list(out, 6);
  for (const File& file : files()) {
    for (const std::string& service : file.services) {
      pbf_writer one(list, 1);
      one.add_string(1, service);
    }
  }
}

}  // namespace

bool is_reflection(std::string_view path) {
  return path == "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" ||
         path == "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
}

bool reflect(std::string_view request, std::string& out) {
  pbf_writer writer(out);
  try {
    pbf_reader reader(request.data(), request.size());
    writer.add_bytes(2, request.data(), request.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes_field(1):
          writer.add_bytes(1, reader.get_view());
          break;
        case bytes_field(3): {
          const std::string_view name = view_of(reader.get_view());
          put_file(writer, name, [&](const File& file) { return file.name == name; });
          break;
        }
        case bytes_field(4): {
          const std::string_view name = view_of(reader.get_view());
          put_file(writer, name,
                   [&](const File& file) { return std::ranges::find(file.symbols, name) != file.symbols.end(); });
          break;
        }
        case bytes_field(5):
          reader.skip();
          put_not_found(writer, "extensions");
          break;
        case bytes_field(6):
          put_not_found(writer, view_of(reader.get_view()));
          break;
        case bytes_field(7):
          reader.skip();
          put_services(writer);
          break;
        default:
          reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

}  // namespace sluice::front::grpc
