#include "front/http/kept_head.h"

namespace sluice::http {

void KeptHead::clear() {
  constexpr std::size_t kept = 4096;
  if (text_.capacity() > kept) text_ = {};
  text_.clear();
  method_end_ = target_end_ = 0;
  parts_.clear();
  fields_.clear();
}

void KeptHead::set_request(std::string_view method, std::string_view target) {
  clear();
  text_ += method;
  method_end_ = text_.size();
  text_ += target;
  target_end_ = text_.size();
}

void KeptHead::add_field(std::string_view name, std::string_view value) {
  Part part;
  part.begin = text_.size();
  text_ += name;
  part.name_end = text_.size();
  text_ += value;
  part.end = text_.size();
  parts_.push_back(part);
}

std::span<const HeaderField> KeptHead::fields() {
  const std::string_view text = text_;
  fields_.clear();
  for (const Part& part : parts_) {
    fields_.push_back({.name = text.substr(part.begin, part.name_end - part.begin),
                       .value = text.substr(part.name_end, part.end - part.name_end)});
  }
  return fields_;
}

}  // namespace sluice::http
