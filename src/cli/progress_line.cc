#include "cli/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

// Past the stream of that name, which lets no terminal's commands through.
void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine()
    : is_terminal_(::isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now() + 1s) {}

bool ProgressLine::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return false;
  next_ = now + (is_terminal_ ? 200ms : 1'000ms);
  return true;
}

void ProgressLine::show(std::string_view line) {
  write(is_terminal_ ? "\r\033[K" + std::string(line) : std::string(line) + '\n');
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (is_terminal_ && is_shown_) write("\r\033[K");
  is_shown_ = false;
}

}  // namespace sluice::cli
