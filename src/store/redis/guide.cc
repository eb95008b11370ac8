#include "store/redis/guide.h"

#include <algorithm>
#include <utility>

#include "store/redis/advice.h"
#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kPatience = 500'000'000;  // ns: to connect and be answered
constexpr std::int64_t kFirstPause = 50'000'000;
constexpr std::int64_t kLongestPause = 500'000'000;
// So many bytes tell of the servers of a round.
constexpr std::size_t kMostWords = 1'000;

}  // namespace

Guide::Guide(std::vector<Address> servers, Login& login, std::uint64_t seed)
    : servers_(std::move(servers)), login_(login), jitter_(seed) {
  // So that the threads of many daemons do not all ask the first.
  index_ = seed % servers_.size();
}

void Guide::locate(Found found) {
  (void)login_.refresh();
  found(servers_[index_], {});
}

void Guide::begin_connect(std::int64_t now) {
  now_ = now;
  wish_ = Wish::nothing;
  retry_at_ = kNoWakeup;
  state_ = State::connecting;
  deadline_ = now + kPatience;
  output_.clear();
}

void Guide::connected(std::int64_t now) {
  now_ = now;
  reader_ = ReplyReader();
  output_.clear();
  const Hello& hello = login_.hello();
  awaits_login_ = !hello.password.empty();
  if (awaits_login_) append_auth(output_, hello.user, hello.password);
  state_ = State::asking;
  ask(output_);
}

void Guide::received(std::string_view bytes, std::int64_t now) {
  now_ = now;
  reader_.feed(bytes);
  while (state_ == State::asking || state_ == State::satisfied) {
    const Reply reply = reader_.next();
    if (reply == nullptr) break;
    if (std::exchange(awaits_login_, false)) {
      if (reply->type != REDIS_REPLY_ERROR) continue;
      say(advised(one_line(text_of(*reply)), login_advice()));
      in_vain();
    } else if (!heard(*reply)) {
      in_vain();
    }
  }
  if (reader_.failed() && state_ != State::down) {
    say(strange_answer(bytes));
    in_vain();
  }
}

void Guide::closed(std::int64_t now, std::string_view detail) {
  now_ = now;
  if (state_ == State::down) return;
  if (state_ != State::satisfied) {
    if (!detail.empty()) {
      say(detail);
    } else {
      say(state_ == State::asking ? kClosedUnheard : "cannot be reached");
    }
    in_vain();
    return;
  }
  // One that served until now: another will know.
  go_on();
}

void Guide::satisfied() {
  state_ = State::satisfied;
  deadline_ = kNoWakeup;
  tried_ = 0;
  pause_ = 0;
  whys_.clear();
}

void Guide::ask_again() {
  state_ = State::asking;
  deadline_ = now_ + kPatience;
  ask(output_);
}

void Guide::go_on() {
  index_ = (index_ + 1) % servers_.size();
  state_ = State::down;
  deadline_ = kNoWakeup;
  retry_at_ = kNoWakeup;
  wish_ = Wish::connect;
}

void Guide::in_vain() {
  if (whys_.size() < kMostWords) {
    if (!whys_.empty()) whys_ += "; ";
    whys_ += server().to_text() + ": " + why_;
  }
  go_on();
  if (++tried_ < servers_.size()) return;
  tried_ = 0;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  wish_ = Wish::disconnect;
  retry_at_ = now_ + jitter_.spread(pause_);
  exhausted(std::exchange(whys_, {}));
}

void Guide::set_servers(std::vector<Address> servers) {
  const Address current = server();
  std::erase(servers, current);
  servers.insert(servers.begin(), current);
  servers_ = std::move(servers);
  index_ = 0;
}

std::int64_t Guide::next_wakeup() const { return std::min(deadline_, retry_at_); }

void Guide::wake(std::int64_t now) {
  now_ = now;
  if (deadline_ <= now) {
    if (state_ == State::connecting) {
      say(awaited().empty() ? std::string("no connection in time") : awaited());
    } else {
      say("no answer in time");
    }
    in_vain();
  }
  if (retry_at_ <= now) {
    retry_at_ = kNoWakeup;
    wish_ = Wish::connect;
  }
}

}  // namespace sluice::store::redis
