// The main path by grpc-go and the messages of go-control-plane, against the service at SLUICE_GRPC, which serves the
// policy in tests/e2e/support/policies.py.
package goclient

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	ok        = rls.RateLimitResponse_OK
	overLimit = rls.RateLimitResponse_OVER_LIMIT
)

func connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	target := os.Getenv("SLUICE_GRPC")
	if target == "" {
		t.Skip("SLUICE_GRPC names no service")
	}
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func descriptor(entries ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return d
}

func request(descriptors ...*ratelimit.RateLimitDescriptor) *rls.RateLimitRequest {
	return &rls.RateLimitRequest{Domain: "test", Descriptors: descriptors}
}

func ask(t *testing.T, connection *grpc.ClientConn, r *rls.RateLimitRequest) *rls.RateLimitResponse {
	t.Helper()
	answer, err := rls.NewRateLimitServiceClient(connection).ShouldRateLimit(within(t, 30*time.Second), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func codeOf(t *testing.T, connection *grpc.ClientConn, r *rls.RateLimitRequest, options ...grpc.CallOption) codes.Code {
	t.Helper()
	_, err := rls.NewRateLimitServiceClient(connection).ShouldRateLimit(within(t, 30*time.Second), r, options...)
	return status.Code(err)
}

func TestFieldsOfAnAnswer(t *testing.T) {
	connection := connect(t)
	for _, remaining := range []uint32{4, 3, 2, 1, 0} {
		answer := ask(t, connection, request(descriptor("five", "go")))
		one := answer.Statuses[0]
		if answer.OverallCode != ok || len(answer.Statuses) != 1 || one.Code != ok || one.LimitRemaining != remaining {
			t.Fatalf("with %d to remain: %v", remaining, answer)
		}
		limit := one.CurrentLimit
		if limit.RequestsPerUnit != 5 || limit.Unit != rls.RateLimitResponse_RateLimit_YEAR || limit.Name != "Five" {
			t.Errorf("limit: %v", limit)
		}
		if seconds := one.DurationUntilReset.Seconds; seconds < 1 || seconds > 365*86400 {
			t.Errorf("until reset: %d s", seconds)
		}
	}
	denied := ask(t, connection, request(descriptor("five", "go")))
	if denied.OverallCode != overLimit || denied.Statuses[0].Code != overLimit || denied.Statuses[0].LimitRemaining != 0 {
		t.Errorf("the sixth: %v", denied)
	}
	headers := denied.ResponseHeadersToAdd
	if len(headers) != 1 || !strings.EqualFold(headers[0].Key, "retry-after") || headers[0].Value == "0" {
		t.Errorf("headers: %v", headers)
	}
}

func TestStatusesInOrder(t *testing.T) {
	connection := connect(t)
	ask(t, connection, request(descriptor("one", "go-order")))
	answer := ask(t, connection, request(descriptor("five", "go-order"), descriptor("one", "go-order"), descriptor("free", "x")))
	if answer.OverallCode != overLimit {
		t.Errorf("overall: %v", answer.OverallCode)
	}
	for i, want := range []rls.RateLimitResponse_Code{ok, overLimit, ok} {
		if answer.Statuses[i].Code != want {
			t.Errorf("status %d: %v", i, answer.Statuses[i])
		}
	}
	if answer.Statuses[0].LimitRemaining != 5 {
		t.Errorf("a denied request took from a limit that had room: %v", answer.Statuses[0])
	}
}

func TestHitsAddend(t *testing.T) {
	connection := connect(t)
	own := descriptor("five", "go-own")
	own.HitsAddend = wrapperspb.UInt64(4)
	r := request(own, descriptor("five", "go-shared"))
	r.HitsAddend = 2
	answer := ask(t, connection, r)
	if answer.Statuses[0].LimitRemaining != 1 || answer.Statuses[1].LimitRemaining != 3 {
		t.Errorf("remaining: %v", answer.Statuses)
	}
}

func TestLimitInTheRequest(t *testing.T) {
	connection := connect(t)
	d := descriptor("five", "go-override")
	d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: types.RateLimitUnit_YEAR}
	for _, want := range []rls.RateLimitResponse_Code{ok, overLimit} {
		if answer := ask(t, connection, request(d)); answer.OverallCode != want {
			t.Errorf("%v, expected %v", answer, want)
		}
	}
}

func TestErrors(t *testing.T) {
	connection := connect(t)
	noDomain := request(descriptor("five", "x"))
	noDomain.Domain = ""
	large := request(descriptor("five", strings.Repeat("x", 64*1024)))
	for name, one := range map[string]struct {
		request *rls.RateLimitRequest
		code    codes.Code
	}{
		"no domain":      {noDomain, codes.InvalidArgument},
		"no descriptors": {request(), codes.InvalidArgument},
		"too large":      {large, codes.ResourceExhausted},
	} {
		if code := codeOf(t, connection, one.request); code != one.code {
			t.Errorf("%s: %v, expected %v", name, code, one.code)
		}
	}
	err := connection.Invoke(within(t, 30*time.Second), "/no.such.Service/Method", request(), &rls.RateLimitResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: %v", err)
	}
}

func TestHealth(t *testing.T) {
	client := grpc_health_v1.NewHealthClient(connect(t))
	answer, err := client.Check(within(t, 30*time.Second), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", answer, err)
	}
	_, err = client.Check(within(t, 30*time.Second), &grpc_health_v1.HealthCheckRequest{Service: "nobody"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("unknown service: %v", err)
	}
}

// 4 connections × 64 callers: exactly as many pass as the limit says.
func TestManyAtOnce(t *testing.T) {
	var admitted, denied atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		client := rls.NewRateLimitServiceClient(connect(t))
		for range 64 {
			group.Go(func() {
				for range 10 {
					answer, err := client.ShouldRateLimit(within(t, 30*time.Second), request(descriptor("per_team", "go-crowd")))
					if err != nil {
						t.Error(err)
					} else if answer.OverallCode == ok {
						admitted.Add(1)
					} else {
						denied.Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	if admitted.Load() != 1000 || denied.Load() != 1560 {
		t.Errorf("%d admitted, %d denied", admitted.Load(), denied.Load())
	}
}
