#include "cli/bench_report.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/duration.h"
#include "front/http/json_text.h"

namespace sluice::cli {
namespace {

constexpr std::array<std::pair<double, std::string_view>, 5> kQuantiles = {
    {{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"}}};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double rate_of(const load::Totals& totals) {
  const std::uint64_t answered = totals.latency.count() - totals.unsent;
  return totals.length.count() == 0 ? 0 : static_cast<double>(answered) / seconds(totals.length);
}

std::string time_text(std::int64_t nanoseconds) { return to_rounded_text(std::chrono::nanoseconds(nanoseconds)); }

std::string quoted(std::string_view text) {
  std::string out;
  http::append_json_string(out, text);
  return out;
}

void append_check(std::string& out, const load::CheckReport& check) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "\ncheck       {}\n",
                 check.is_within() ? "within the limits" : "MORE WAS ADMITTED THAN THE LIMITS ALLOW");
  fmt::format_to(to, "  keys      {} asked for, {} over their bound\n", check.keys, check.keys_over);
  fmt::format_to(to, "  tokens    {} admitted, at most {} may be\n", check.admitted + check.admitted_local,
                 check.bound);
  if (check.admitted_local > 0)
    fmt::format_to(to, "  of these  {} by nodes themselves, as the store had failed\n", check.admitted_local);
  if (check.admitted_blind > 0)
    fmt::format_to(to, "  besides   {} let through uncounted (on_store_failure: allow)\n", check.admitted_blind);
  if (check.excess > 0) {
    fmt::format_to(to, "  excess    {} tokens, of which evictions explain {}\n", check.excess,
                   std::min(check.excess, check.allowed));
  }
  if (check.worst.bound > 0) {
    fmt::format_to(to, "  {}   {}: {} admitted, bound {} ({:.2f} x)\n", check.worst.excess > 0 ? "worst  " : "nearest",
                   check.worst.name, check.worst.admitted, check.worst.bound,
                   static_cast<double>(check.worst.admitted) / static_cast<double>(check.worst.bound));
  }
  if (check.used && check.used_least) {
    fmt::format_to(
        to, "  used      {:.1f} % of the bounds of the {} keys of which twice as much was asked; least {:.1f} %\n",
        *check.used * 100, check.keys_wanted, *check.used_least * 100);
  }
}

}  // namespace

std::string to_table(const BenchReport& report) {
  const load::Totals& totals = *report.totals;
  std::string out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "target      {}\n", report.target);
  fmt::format_to(to, "requests    {} in {:.2f} s: {:.0f}/s{}\n", totals.asked, seconds(totals.length), rate_of(totals),
                 report.rate > 0 ? fmt::format(", {:g}/s planned", report.rate) : std::string(", as fast as answered"));
  fmt::format_to(to, "answers     {} admitted, {} denied, {} failed\n",
                 totals.admitted + totals.admitted_local + totals.admitted_blind, totals.denied + totals.denied_blind,
                 totals.failed);
  if (totals.admitted_local + totals.admitted_blind + totals.denied_blind > 0) {
    fmt::format_to(to, "  of these  {} by on_store_failure: local, {} by allow, {} by deny\n", totals.admitted_local,
                   totals.admitted_blind, totals.denied_blind);
  }
  if (totals.unsent > 0) {
    fmt::format_to(to,
                   "unsent      {} planned requests found no place in flight; they count with the time they waited\n",
                   totals.unsent);
  }
  for (const auto& [what, times] : totals.errors) fmt::format_to(to, "error       {} x {}\n", times, what);
  fmt::format_to(to, "latency     {}\n",
                 report.rate > 0 ? "from the planned time to the answer" : "from sending to the answer");
  for (const auto& [share, name] : kQuantiles) {
    fmt::format_to(to, "  {:<9} {}\n", name, time_text(totals.latency.quantile(share)));
  }
  fmt::format_to(to, "  {:<9} {}\n  {:<9} {}\n", "max", time_text(totals.latency.max()), "mean",
                 time_text(static_cast<std::int64_t>(totals.latency.mean())));
  if (report.check) {
    append_check(out, *report.check);
  } else {
    fmt::format_to(to, "\ncheck       none: {}\n", report.unchecked);
  }
  for (const std::string& note : report.notes) fmt::format_to(to, "note        {}\n", note);
  return out;
}

std::string to_json(const BenchReport& report) {
  const load::Totals& totals = *report.totals;
  std::string out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"target":{},"planned_rate":{},"seconds":{:.6f},"rate":{:.3f},"asked":{},"admitted":{},)",
                 quoted(report.target), report.rate, seconds(totals.length), rate_of(totals), totals.asked,
                 totals.admitted);
  fmt::format_to(
      to,
      R"("admitted_local":{},"admitted_blind":{},"denied":{},"denied_blind":{},"failed":{},"unsent":{},"connections_lost":{},)",
      totals.admitted_local, totals.admitted_blind, totals.denied, totals.denied_blind, totals.failed, totals.unsent,
      totals.lanes_lost);
  out += R"("errors":{)";
  for (const auto& [what, times] : totals.errors) fmt::format_to(to, "{}:{},", quoted(what), times);
  if (out.back() == ',') out.pop_back();
  out += R"(},"latency_ns":{)";
  for (const auto& [share, name] : kQuantiles) fmt::format_to(to, R"("{}":{},)", name, totals.latency.quantile(share));
  fmt::format_to(to, R"("max":{},"mean":{:.0f}}},"check":)", totals.latency.max(), totals.latency.mean());
  if (report.check) {
    const load::CheckReport& check = *report.check;
    fmt::format_to(
        to, R"({{"within":{},"keys":{},"keys_over":{},"admitted":{},"admitted_local":{},"admitted_blind":{},)",
        check.is_within(), check.keys, check.keys_over, check.admitted, check.admitted_local, check.admitted_blind);
    fmt::format_to(
        to, R"("bound":{},"excess":{},"explained":{},"worst":{{"key":{},"admitted":{},"bound":{}}},"keys_wanted":{})",
        check.bound, check.excess, std::min(check.excess, check.allowed), quoted(check.worst.name),
        check.worst.admitted, check.worst.bound, check.keys_wanted);
    if (check.used && check.used_least)
      fmt::format_to(to, R"(,"used":{:.6f},"used_least":{:.6f})", *check.used, *check.used_least);
    out += '}';
  } else {
    out += "null";
  }
  out += R"(,"notes":[)";
  for (const std::string& note : report.notes) out += quoted(note) + ",";
  if (out.back() == ',') out.pop_back();
  return out + "]}\n";
}

std::string progress_line(const load::Totals& totals, double seconds, double rate_now) {
  return fmt::format("{:.0f} s: {:.0f}/s, {} admitted, {} denied, {} failed, p99 {}", seconds, rate_now,
                     totals.admitted + totals.admitted_local + totals.admitted_blind,
                     totals.denied + totals.denied_blind, totals.failed, time_text(totals.latency.quantile(0.99)));
}

}  // namespace sluice::cli
