#include "cli/serve.h"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/read_file.h"
#include "base/result.h"
#include "config/redis_options.h"
#include "server/server.h"
#include "store/redis/target.h"

namespace sluice::cli {
namespace {

Result<std::optional<config::File>> read_config(const ServeOptions& options) {
  std::string name = options.config;
  if (name.empty()) {
    const char* variable = std::getenv("SLUICE_CONFIG");
    if (variable == nullptr || *variable == '\0') return std::optional<config::File>();
    name = variable;
  }
  auto text = read_regular_file(name, std::string::npos);
  if (!text) return Error{name + ": cannot read the server file: " + text.error().message};
  return std::optional<config::File>(config::File{.name = std::move(name), .text = *std::move(text)});
}

std::string shown(const config::Setting& setting, std::span<const std::string> values) {
  std::string text;
  for (const std::string& value : values) {
    if (!text.empty()) text += ", ";
    if (setting.is_secret && !value.empty()) {
      text += "***";
    } else {
      text += setting.has_secret ? config::without_password(value) : value;
    }
  }
  return setting.is_list ? "[" + text + "]" : text;
}

}  // namespace

std::vector<std::string> environment() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

std::optional<config::Resolved> resolve_settings(const ServeOptions& options, std::ostream& err) {
  const auto file = read_config(options);
  if (!file) {
    err << "sluice: " << file.error().message << '\n';
    return std::nullopt;
  }
  config::Resolved resolved = config::resolve(*file, environment(), options.flags);
  for (const std::string& warning : resolved.warnings) err << "sluice: warning: " << warning << '\n';
  for (const std::string& error : resolved.errors) err << "sluice: " << error << '\n';
  if (!resolved.errors.empty()) return std::nullopt;
  return resolved;
}

int serve(const ServeOptions& options, std::ostream& err) {
  const auto resolved = resolve_settings(options, err);
  if (!resolved) return EXIT_FAILURE;
  log::configure(resolved->settings.log_level, resolved->settings.log_format);
  server::Server server(resolved->settings);
  const std::vector<std::string> problems = server.prepare();
  for (const std::string& problem : problems) err << "sluice: " << problem << '\n';
  if (!problems.empty()) return EXIT_FAILURE;
  const std::string problem = server.run();
  if (problem.empty()) return EXIT_SUCCESS;
  err << "sluice: " << problem << '\n';
  return EXIT_FAILURE;
}

int show_settings(const ServeOptions& options, std::ostream& out, std::ostream& err) {
  const auto resolved = resolve_settings(options, err);
  if (!resolved) return EXIT_FAILURE;
  // Its parts are the store's to judge, and one that it refuses may have a secret at a place where none is looked for.
  if (const config::Settings& settings = resolved->settings; !settings.redis_url.empty()) {
    const store::redis::RedisOptions redis = config::redis_options(settings, settings.redis_timeout);
    if (const auto target = store::redis::resolve_target(redis.url, redis.access); !target) {
      err << "sluice: store.redis: " << target.error().message << '\n';
      return EXIT_FAILURE;
    }
  }
  for (std::size_t row = 0; row < resolved->sources.size(); ++row) {
    const config::Setting& setting = config::all_settings()[row];
    const config::Source& source = resolved->sources[row];
    out << setting.name << ": " << shown(setting, source.values) << "  # " << source.origin << '\n';
  }
  for (const auto& [variable, source] : resolved->variables) {
    out << variable << ": " << source.values.front() << "  # " << source.origin << '\n';
  }
  for (const config::QueueSettings& queue : resolved->settings.queues) {
    out << "queues." << queue.name << ": " << config::to_text(queue) << '\n';
  }
  return EXIT_SUCCESS;
}

}  // namespace sluice::cli
