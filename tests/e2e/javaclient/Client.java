// The Redis protocol by lettuce, against the service at SLUICE_RESP_PORT, whose password is "secret"; over TLS, if SLUICE_RESP_CA names an authority. Exits with 1 when an answer is wrong.
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

class Client implements AutoCloseable {
  /** A command that lettuce has no method for. */
  record Word(String name) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return name.getBytes(StandardCharsets.US_ASCII);
    }
  }

  private final RedisClient client;
  private final StatefulRedisConnection<String, String> connection;

  Client(ProtocolVersion protocol) {
    String authority = System.getenv("SLUICE_RESP_CA");
    RedisURI uri =
        RedisURI.builder()
            .withHost("localhost")
            .withPort(Integer.parseInt(System.getenv("SLUICE_RESP_PORT")))
            .withPassword("secret".toCharArray())
            .withClientName("article-api")
            .withTimeout(Duration.ofMinutes(1))
            .withSsl(authority != null)
            .build();
    client = RedisClient.create(uri);
    ClientOptions.Builder options = ClientOptions.builder().protocolVersion(protocol).autoReconnect(false);
    if (authority != null) {
      options.sslOptions(SslOptions.builder().trustManager(new File(authority)).build());
    }
    client.setOptions(options.build());
    connection = client.connect();
  }

  @Override
  public void close() {
    connection.close();
    client.shutdown(Duration.ZERO, Duration.ofSeconds(10));
  }

  RedisFuture<List<Object>> send(String name, String key, Object... more) {
    CommandArgs<String, String> arguments = new CommandArgs<>(StringCodec.UTF8).addKey(key);
    for (Object one : more) {
      arguments.add(one.toString());
    }
    return connection.async().dispatch(new Word(name), new ArrayOutput<>(StringCodec.UTF8), arguments);
  }

  void expect(List<Long> wanted, String name, String key, Object... more) throws Exception {
    check(wanted, send(name, key, more).get(1, TimeUnit.MINUTES));
  }

  static void check(Object wanted, Object found) {
    if (!wanted.equals(found)) {
      throw new AssertionError("expected " + wanted + ", found " + found);
    }
  }

  void run(String key) throws Exception {
    check("PONG", connection.sync().ping());
    expect(List.of(0L, 16L, 15L, -1L, 2L), "CL.THROTTLE", key, 15, 30, 60);
    expect(List.of(1L, 1L, 0L, 3600L, 0L), "THROTTLE", key + "-t", 1, 1, 3600);
    expect(List.of(1L, 4L, 4L, -1L, 0L), "GCRA", key + "-g", 3, 1, 86400, "TOKENS", 5);
    try {
      send("CL.THROTTLE", key, "x", 30, 60).get(1, TimeUnit.MINUTES);
      throw new AssertionError("no error for a burst of x");
    } catch (ExecutionException wrong) {
      check(RedisCommandExecutionException.class, wrong.getCause().getClass());
      check("ERR max_burst must be a whole number of 64 bits, is 'x'", wrong.getCause().getMessage());
    }
    connection.setAutoFlushCommands(false);
    List<RedisFuture<List<Object>>> replies = new ArrayList<>();
    for (int i = 0; i < 1000; ++i) {
      replies.add(send("CL.THROTTLE", key + "-piped", 9, 1, 86400));
    }
    connection.flushCommands();
    int allowed = 0;
    for (RedisFuture<List<Object>> reply : replies) {
      allowed += reply.get(1, TimeUnit.MINUTES).get(0).equals(0L) ? 1 : 0;
    }
    check(10, allowed);
    connection.setAutoFlushCommands(true);

    connection.sync().multi();
    List<RedisFuture<List<Object>>> kept = new ArrayList<>();
    for (int i = 0; i < 20; ++i) {
      kept.add(send("CL.THROTTLE", key + "-kept", 9, 1, 86400));
    }
    check(20, connection.sync().exec().size());
    allowed = 0;
    for (RedisFuture<List<Object>> reply : kept) {
      allowed += reply.get(1, TimeUnit.MINUTES).get(0).equals(0L) ? 1 : 0;
    }
    check(10, allowed);
  }

  public static void main(String[] arguments) throws Exception {
    for (ProtocolVersion protocol : List.of(ProtocolVersion.RESP2, ProtocolVersion.RESP3)) {
      try (Client client = new Client(protocol)) {
        client.run("java-" + protocol);
      }
    }
    System.out.println("all right");
  }
}
