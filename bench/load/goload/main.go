// goload asks a rate limit service as fast as grpc-go can: a closed loop of -in-flight callers on each of
// -connections connections. It prints one JSON object.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"sync"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// A histogram counts durations in buckets that are 1 % wide.
type histogram struct {
	buckets [2400]uint64
}

var bucketWidth = math.Log(1.01)

func (h *histogram) add(d time.Duration) {
	i := int(math.Log(float64(max(d.Nanoseconds(), 1))) / bucketWidth)
	h.buckets[min(i, len(h.buckets)-1)]++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
}

// quantile answers in microseconds.
func (h *histogram) quantile(q float64) float64 {
	var total, seen uint64
	for _, n := range h.buckets {
		total += n
	}
	for i, n := range h.buckets {
		seen += n
		if seen > 0 && float64(seen) >= q*float64(total) {
			return math.Exp(float64(i)*bucketWidth) / 1000
		}
	}
	return 0
}

// A caller counts what one goroutine saw.
type caller struct {
	calls, denied, errors uint64
	latency               histogram
	lastError             error
}

func (c *caller) run(client rls.RateLimitServiceClient, requests []*rls.RateLimitRequest, first int, end time.Time) {
	for i := first; ; i++ {
		start := time.Now()
		if start.After(end) {
			return
		}
		answer, err := client.ShouldRateLimit(context.Background(), requests[i%len(requests)])
		c.calls++
		c.latency.add(time.Since(start))
		if err != nil {
			c.errors++
			c.lastError = err
		} else if answer.OverallCode != rls.RateLimitResponse_OK {
			c.denied++
		}
	}
}

func main() {
	target := flag.String("target", "127.0.0.1:8081", "address of the service")
	connections := flag.Int("connections", 4, "connections")
	inFlight := flag.Int("in-flight", 16, "calls in flight on each connection")
	seconds := flag.Float64("seconds", 3, "how long to ask")
	domain := flag.String("domain", "bench", "domain of the requests")
	key := flag.String("key", "user", "key of the one entry")
	users := flag.Int("users", 10000, "number of different values of that entry")
	flag.Parse()

	requests := make([]*rls.RateLimitRequest, *users)
	for i := range requests {
		entry := &ratelimit.RateLimitDescriptor_Entry{Key: *key, Value: fmt.Sprintf("user-%d", i)}
		requests[i] = &rls.RateLimitRequest{
			Domain:      *domain,
			Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{entry}}},
		}
	}

	callers := make([]caller, *connections**inFlight)
	start := time.Now()
	end := start.Add(time.Duration(*seconds * float64(time.Second)))
	var group sync.WaitGroup
	for c := range *connections {
		connection, err := grpc.NewClient(*target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			log.Fatal(err)
		}
		defer connection.Close()
		client := rls.NewRateLimitServiceClient(connection)
		for i := range *inFlight {
			n := c**inFlight + i
			group.Go(func() { callers[n].run(client, requests, n*len(requests)/len(callers), end) })
		}
	}
	group.Wait()

	elapsed := time.Since(start).Seconds()
	var sum caller
	for i := range callers {
		sum.calls += callers[i].calls
		sum.denied += callers[i].denied
		sum.errors += callers[i].errors
		sum.latency.merge(&callers[i].latency)
		if callers[i].lastError != nil {
			sum.lastError = callers[i].lastError
		}
	}
	report := map[string]any{
		"calls": sum.calls, "denied": sum.denied, "errors": sum.errors, "seconds": elapsed,
		"p50_us": sum.latency.quantile(0.5), "p99_us": sum.latency.quantile(0.99),
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		log.Fatal(err)
	}
	if sum.lastError != nil {
		log.Fatal(sum.lastError)
	}
}
