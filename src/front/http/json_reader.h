// Reads JSON (RFC 8259) value by value, straight out of the text: for decoders that know what they expect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::http {

enum class JsonType : std::uint8_t { object, array, string, number, boolean, null, none };

/// "an object", "a string", … for messages; none: "the end of the text".
[[nodiscard]] std::string_view describe(JsonType type);

/// Length of the JSON number that `text` begins with; 0: there is none.
[[nodiscard]] std::size_t json_number_length(std::string_view text);

/// A pull reader: the decoder asks for what must come next, so nothing is built, nothing recurses, and the depth is the
/// decoder's own. Every read returns false on the first fault and on all calls after it. Strings without escapes are
/// views into the text; others are decoded into `arena` (never more than the text's size, so views into it stay valid).
/// Strict: valid UTF-8, no lone surrogates, no trailing commas, no comments. Allocates only for escapes.
class JsonReader {
 public:
  /// Both must outlive what is read.
  JsonReader(std::string_view text, std::string& arena) : text_(text), arena_(arena) { arena_.clear(); }

  /// What comes next, without reading it; none: nothing, or no value (then a fault is noted).
  [[nodiscard]] JsonType peek();

  [[nodiscard]] bool begin_object();
  /// True: `name` was read, and its value comes next. False: the object has ended, or a fault.
  [[nodiscard]] bool next_member(std::string_view& name);
  [[nodiscard]] bool begin_array();
  /// True: an element comes next. False: the array has ended, or a fault.
  [[nodiscard]] bool next_element();

  [[nodiscard]] bool read_string(std::string_view& value);
  /// The number as it is written.
  [[nodiscard]] bool read_number(std::string_view& token);
  [[nodiscard]] bool read_bool(bool& value);
  [[nodiscard]] bool read_null();
  /// Any one value, with all that is in it. Nothing recurses: a level takes one byte.
  [[nodiscard]] bool skip_value();
  /// Nothing but white space may be left.
  [[nodiscard]] bool finish();

  [[nodiscard]] bool failed() const { return failed_; }
  /// What is wrong, without the place. Precondition: failed().
  [[nodiscard]] const std::string& fault() const { return fault_; }
  /// The place of the fault, or else where the last value or name that was read or looked at begins:
  /// "line 1, column 17". Columns count characters.
  [[nodiscard]] std::string place() const;

 private:
  void skip_space();
  bool fail(std::string what);
  bool fail_here(std::string_view expected);
  bool read_word(std::string_view word);
  bool read_scalar(JsonType type);
  bool read_escapes(std::size_t begin, std::string_view& value);
  bool decode_unicode();
  bool read_hex4(std::uint32_t& unit);

  std::string_view text_;
  std::string& arena_;
  std::size_t position_ = 0;
  std::size_t mark_ = 0;  ///< where the last value or name begins
  bool first_ = false;    ///< just inside a container
  bool failed_ = false;
  std::string fault_;
};

/// Is the whole text one JSON value? If not: the place and what is wrong there.
[[nodiscard]] std::optional<std::string> json_fault(std::string_view text);

}  // namespace sluice::http
