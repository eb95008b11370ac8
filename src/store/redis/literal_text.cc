#include "store/redis/literal_text.h"

#include <algorithm>
#include <map>
#include <vector>

namespace sluice::store::redis {

namespace {

// A call of a command: where it stands, and its arguments as they are written.
struct CommandCall {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view function;  // redis.call or redis.pcall
  std::vector<std::string_view> arguments;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

CommandCall parse_call(std::string_view code, std::size_t begin) {
  const std::size_t open = code.find('(', begin);
  CommandCall call{.begin = begin, .end = code.size(), .function = code.substr(begin, open - begin), .arguments = {}};
  std::size_t depth = 0;
  bool quoted = false;
  std::size_t argument = open + 1;
  for (std::size_t at = open; at < code.size(); ++at) {
    const char byte = code[at];
    if (byte == '\'') quoted = !quoted;
    if (quoted) continue;
    if (byte == '(' || byte == '[' || byte == '{') ++depth;
    if (byte == ')' || byte == ']' || byte == '}') --depth;
    if (depth == 0 || (depth == 1 && byte == ',')) {
      call.arguments.push_back(trimmed(code.substr(argument, at - argument)));
      argument = at + 1;
    }
    if (depth == 0) {
      call.end = at + 1;
      return call;
    }
  }
  return call;
}

std::size_t find_call(std::string_view code, std::size_t from) {
  const std::size_t call = code.find("redis.call(", from);
  const std::size_t pcall = code.find("redis.pcall(", from);
  return std::min(call, pcall);
}

bool names_a_key(const CommandCall& call) {
  return call.arguments.size() > 1 && call.arguments[1].starts_with("KEYS[");
}

// What the call has in common with others of its kind: arguments that are no strings are parameters.
std::string shape_of(const CommandCall& call) {
  std::string shape(call.function);
  for (const std::string_view argument : call.arguments)
    shape.append(" ").append(argument.starts_with('\'') ? argument : "?");
  return shape;
}

std::string function_text(const std::string& name, const CommandCall& call, std::size_t most_keys) {
  std::string parameters = "i";
  std::string rest;
  for (std::size_t k = 2; k < call.arguments.size(); ++k) {
    const bool is_literal = call.arguments[k].starts_with('\'');
    const std::string argument = is_literal ? std::string(call.arguments[k]) : "a" + std::to_string(k);
    if (!is_literal) parameters.append(",").append(argument);
    rest.append(",").append(argument);
  }
  std::string text = "local function " + name + "(" + parameters + ")\n";
  for (std::size_t key = 1; key <= most_keys; ++key) {
    const std::string number = std::to_string(key);
    text.append("if i==").append(number).append(" then return ").append(call.function).append("(");
    text.append(call.arguments[0]).append(",KEYS[").append(number).append("]").append(rest).append(") end\n");
  }
  return text + "error('a key beyond the last of this text')\nend\n";
}

}  // namespace

std::string literal_text(std::string_view code, std::size_t most_keys) {
  std::map<std::string, std::string> names;  // of functions, by shape
  std::string functions;
  std::string body;
  std::size_t done = 0;
  for (std::size_t at = find_call(code, 0); at < code.size(); at = find_call(code, done)) {
    const CommandCall call = parse_call(code, at);
    body.append(code.substr(done, at - done));
    done = call.end;
    if (!names_a_key(call)) {
      body.append(code.substr(call.begin, call.end - call.begin));
      continue;
    }
    auto [name, is_new] = names.try_emplace(shape_of(call));
    if (is_new) {
      name->second = "on_key_" + std::to_string(names.size());
      functions.append(function_text(name->second, call, most_keys));
    }
    constexpr std::size_t before = 5;  // KEYS[
    body.append(name->second)
        .append("(")
        .append(call.arguments[1].substr(before, call.arguments[1].size() - before - 1));
    for (std::size_t k = 2; k < call.arguments.size(); ++k) {
      if (!call.arguments[k].starts_with('\'')) body.append(",").append(call.arguments[k]);
    }
    body.append(")");
  }
  body.append(code.substr(done));
  return functions + body;
}

}  // namespace sluice::store::redis
