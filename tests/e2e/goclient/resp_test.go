// The Redis protocol by go-redis, against the service at SLUICE_RESP, whose password is "secret"; over TLS, if SLUICE_RESP_CA names an authority.
package goclient

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func redisClient(t *testing.T, protocol int) *redis.Client {
	t.Helper()
	address := os.Getenv("SLUICE_RESP")
	if address == "" {
		t.Skip("SLUICE_RESP names no service")
	}
	options := redis.Options{Addr: address, Password: "secret", Protocol: protocol, ClientName: "article-api"}
	if authority := os.Getenv("SLUICE_RESP_CA"); authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		options.TLSConfig = &tls.Config{RootCAs: pool, ServerName: "localhost"}
	}
	client := redis.NewClient(&options)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestGoRedis(t *testing.T) {
	for protocol, key := range map[int]string{2: "go2", 3: "go3"} {
		client := redisClient(t, protocol)
		ctx := within(t, time.Minute)
		if err := client.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		reply, err := client.Do(ctx, "CL.THROTTLE", key, 15, 30, 60).Int64Slice()
		if err != nil || !slices.Equal(reply, []int64{0, 16, 15, -1, 2}) {
			t.Errorf("protocol %d: %v %v", protocol, reply, err)
		}
		if _, err = client.Do(ctx, "CL.THROTTLE", key, "x", 30, 60).Result(); err == nil {
			t.Error("no error for a burst of x")
		}
	}
}

func TestGoRedisPipeline(t *testing.T) {
	client := redisClient(t, 3)
	testPipeline(t, client.Pipeline(), "gopiped")
}

// Between MULTI and EXEC.
func TestGoRedisTransaction(t *testing.T) {
	client := redisClient(t, 3)
	testPipeline(t, client.TxPipeline(), "gokept")
}

func testPipeline(t *testing.T, pipeline redis.Pipeliner, key string) {
	ctx := within(t, time.Minute)
	var replies []*redis.Cmd
	for range 1000 {
		replies = append(replies, pipeline.Do(ctx, "CL.THROTTLE", key, 9, 1, 86400))
	}
	if _, err := pipeline.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	allowed := 0
	for _, reply := range replies {
		if numbers, err := reply.Int64Slice(); err == nil && numbers[0] == 0 {
			allowed++
		}
	}
	if allowed != 10 {
		t.Errorf("%d were allowed, of 10", allowed)
	}
}
