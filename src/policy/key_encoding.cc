#include "policy/key_encoding.h"

#include "policy/escape.h"

namespace sluice::policy {
namespace {

constexpr PlainBytes kPlain{"-._~/:@+,*"};
constexpr char kSeparator = '|';

void append_part(std::string_view text, std::string& out) {
  if (text.empty()) {
    out.push_back('%');
  } else {
    append_escaped(text, kPlain, out);
  }
}

}  // namespace

void KeyWriter::begin_part() {
  if (any_) {
    if (first_end_ == std::string::npos) first_end_ = out_.size();
    out_.push_back(kSeparator);
  }
  any_ = true;
}

void KeyWriter::add_value(std::string_view value) {
  begin_part();
  append_part(value, out_);
}

void KeyWriter::add_pair(std::string_view key, std::string_view value) {
  begin_part();
  append_part(key, out_);
  out_.push_back('=');
  append_part(value, out_);
}

void KeyWriter::finish() {
  const bool has_rest = first_end_ != std::string::npos;
  const std::size_t first_size = (has_rest ? first_end_ : out_.size()) - begin_;
  const std::size_t rest_size = has_rest ? out_.size() - first_end_ - 1 : 0;
  if (first_size <= kMaxFirstBytes && rest_size <= kMaxRestBytes) return;
  const std::string written = out_.substr(begin_);
  const std::string_view first = std::string_view(written).substr(0, first_size);
  out_.resize(begin_);
  if (first_size > kMaxFirstBytes) {
    append_digest(first, out_);
  } else {
    out_.append(first);
  }
  if (!has_rest) return;
  const std::string_view rest = std::string_view(written).substr(first_size + 1);
  out_.push_back(kSeparator);
  if (rest_size > kMaxRestBytes) {
    append_digest(rest, out_);
  } else {
    out_.append(rest);
  }
}

void append_key(std::span<const Entry> entries, std::string& out) {
  KeyWriter writer(out);
  for (const Entry& entry : entries) writer.add_value(entry.value);
  writer.finish();
}

}  // namespace sluice::policy
