#include "tests/unit/front_grpc/grpc_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::front::grpc::testing_support {

int Response::status() const {
  if (const auto it = trailers.find("grpc-status"); it != trailers.end()) return std::stoi(it->second);
  if (const auto it = head.find("grpc-status"); it != head.end()) return std::stoi(it->second);
  return -1;
}

std::string Response::message() const {
  const auto it = head.find("grpc-message");
  return it == head.end() ? "" : it->second;
}

store::Progress HeldStore::check(store::Check& check, Time) {
  held.push_back(&check);
  return store::Progress::pending;
}

void HeldStore::cancel(store::Check& check) {
  ++cancelled;
  std::erase(held, &check);
}

void HeldStore::answer_all() {
  for (store::Check* check : std::exchange(held, {})) {
    for (Decision& decision : check->decisions) {
      decision = Decision();
      decision.limit = 30;
      decision.remaining = 29;
    }
    check->admitted = true;
    check->complete();
  }
}

std::string framed(std::string_view message, char flag) {
  std::string out(1, flag);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(message.size() >> static_cast<unsigned>(shift));
  return out.append(message);
}

std::string request_for(std::string_view user, std::string_view domain) {
  const auto field = [](int number, std::string_view bytes) {
    std::string out{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())};
    return out.append(bytes);
  };
  return field(1, domain) + field(2, field(1, field(1, "user") + field(2, user)));
}

struct Client::Callbacks {
  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    Response& response = static_cast<Client*>(user)->responses[frame->hd.stream_id];
    auto& fields = frame->headers.cat == NGHTTP2_HCAT_RESPONSE ? response.head : response.trailers;
    fields[{reinterpret_cast<const char*>(name), name_size}] = {reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                  void* user) {
    static_cast<Client*>(user)->responses[id].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Client& peer = *static_cast<Client*>(user);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA:
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) peer.responses[frame->hd.stream_id].ended = true;
        break;
      case NGHTTP2_RST_STREAM:
        peer.responses[frame->hd.stream_id].reset = frame->rst_stream.error_code;
        peer.responses[frame->hd.stream_id].was_reset = true;
        break;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) ++peer.ping_acks;
        break;
      default:
        break;
    }
    return 0;
  }
  static int close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    static_cast<Client*>(user)->responses[id].closed = true;
    return 0;
  }
  static ssize_t body(nghttp2_session*, std::int32_t, std::uint8_t* room, std::size_t size, std::uint32_t* flags,
                      nghttp2_data_source* source, void*) {
    auto& from = *static_cast<Body*>(source->ptr);
    const std::size_t n = std::min(size, from.bytes.size() - from.sent);
    std::memcpy(room, from.bytes.data() + from.sent, n);
    from.sent += n;
    if (from.sent == from.bytes.size()) {
      if (!from.end && n == 0) return NGHTTP2_ERR_DEFERRED;
      if (from.end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return static_cast<ssize_t>(n);
  }
};

Client::Client() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::close);
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_peer_max_concurrent_streams(option, 100'000);
  nghttp2_option_set_max_send_header_block_length(option, 16U << 20U);
  nghttp2_session_client_new2(&client, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, nullptr, 0);
}

Client::~Client() { nghttp2_session_del(client); }

Peer::Peer(std::string_view policy, GrpcOptions the_options, bool is_certified)
    : options(the_options),
      shard(registry.add_shard()),
      reader(policies),
      store(std::make_shared<store::MemoryStore>(10'000)),
      service(reader, store, shard, draining) {
  if (!policy.empty()) {
    const policy::SourceText text{.name = "policy.yaml", .text = std::string(policy)};
    const policy::Loaded loaded = policy::load_texts({&text, 1});
    for (const policy::Finding& finding : loaded.findings) ADD_FAILURE() << finding.to_string();
    policies.set(loaded.policy);
  }
  connection = std::make_unique<Connection>(*this, service, options, now, is_certified);
}

HeldStore& Peer::hold() {
  auto held = std::make_shared<HeldStore>();
  store = held;
  return *held;
}

std::int32_t Client::send(const Fields& head, std::string body, bool end) {
  std::vector<nghttp2_nv> fields;
  fields.reserve(head.size());
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT: nghttp2 only reads
  };
  for (const auto& [name, value] : head) {
    fields.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  const std::int32_t next = static_cast<std::int32_t>(nghttp2_session_get_next_stream_id(client));
  Body& from = bodies_[next];
  from = {.bytes = std::move(body), .sent = 0, .end = end};
  nghttp2_data_provider provider{};
  provider.source.ptr = &from;
  provider.read_callback = Callbacks::body;
  const bool has_body = !from.bytes.empty() || !end;
  return nghttp2_submit_request(client, nullptr, fields.data(), fields.size(), has_body ? &provider : nullptr, nullptr);
}

std::int32_t Client::call(std::string_view path, std::string body, const Fields& more, bool end) {
  Fields head{{":method", "POST"}, {":scheme", "http"}, {":path", std::string(path)}, {":authority", "limits"}};
  head.insert(head.end(), more.begin(), more.end());
  const auto has_type = [&](const auto& field) { return field.first == "content-type"; };
  if (std::none_of(more.begin(), more.end(), has_type)) head.emplace_back("content-type", "application/grpc");
  head.emplace_back("te", "trailers");
  return send(head, std::move(body), end);
}

const Response& Peer::exchange(std::string_view path, std::string body, const Fields& more) {
  const std::int32_t id = call(path, std::move(body), more);
  pump();
  return responses[id];
}

const Response& Peer::ask(std::string_view user, const Fields& more) {
  return exchange(kShouldRateLimit, framed(request_for(user)), more);
}

std::string Client::client_output() {
  std::string out;
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(client, &bytes);
    if (size <= 0) return out;
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

std::string Peer::server_output(std::size_t limit) {
  std::string out;
  connection->take_output(out, limit);
  return out;
}

void Client::client_input(std::string_view bytes) {
  // nghttp2's client tells of the first GOAWAY only, so these are found in the bytes.
  unparsed_.append(bytes);
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + size; ++i) value = value << 8U | static_cast<unsigned char>(unparsed_[i]);
    return value;
  };
  constexpr std::size_t head = 9;
  while (unparsed_.size() >= head && unparsed_.size() >= head + number(0, 3)) {
    if (unparsed_[3] == NGHTTP2_GOAWAY) {
      goaway_streams.push_back(static_cast<std::int32_t>(number(head, 4)));
      goaways.push_back(number(head + 4, 4));
    }
    unparsed_.erase(0, head + number(0, 3));
  }
  nghttp2_session_mem_recv(client, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

bool Peer::feed(std::string_view bytes) {
  reading = connection->feed({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, now);
  return reading;
}

void Peer::pump() {
  for (;;) {
    const std::string out = client_output();
    if (!out.empty()) feed(out);
    const std::string back = server_output();
    client_input(back);
    if (out.empty() && back.empty()) return;
  }
}

}  // namespace sluice::front::grpc::testing_support
