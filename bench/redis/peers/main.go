// peers asks the usual Go rate limiters over Redis in a closed loop: each goroutine asks again as soon as it is answered.
// It prints one JSON object.
//
//	peers redis_rate|token_limiter|period_limit ADDRESS KEYS GOROUTINES WARM_SECONDS SECONDS
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	zero "github.com/zeromicro/go-zero/core/stores/redis"
)

const (
	rate  = 10 // a second
	burst = 100
)

// go-zero tells only its log when it decides in process, without Redis.
type errorCounter struct {
	count atomic.Uint64
}

func (e *errorCounter) Alert(any)                   { e.count.Add(1) }
func (e *errorCounter) Close() error                { return nil }
func (e *errorCounter) Debug(any, ...logx.LogField) {}
func (e *errorCounter) Error(any, ...logx.LogField) { e.count.Add(1) }
func (e *errorCounter) Info(any, ...logx.LogField)  {}
func (e *errorCounter) Severe(any)                  { e.count.Add(1) }
func (e *errorCounter) Slow(any, ...logx.LogField)  {}
func (e *errorCounter) Stack(any)                   { e.count.Add(1) }
func (e *errorCounter) Stat(any, ...logx.LogField)  {}

// go-zero sizes its pool by itself: 10 connections a processor. Its WithIdentity leaves out CLIENT SETINFO, and neither
// greeting is known to Redis 7.0, whose refusals would open go-zero's circuit breaker.
func zeroStore(address string) *zero.Redis {
	return zero.New(address, zero.WithIdentity(), zero.WithMaintNotifications("disabled"))
}

// An ask makes one decision on a key, by its number.
type ask func(key int) error

func names(count int) []string {
	made := make([]string, count)
	for i := range made {
		made[i] = "user-" + strconv.Itoa(i)
	}
	return made
}

func makeAsk(kind, address string, keys, goroutines int) ask {
	named := names(keys)
	switch kind {
	case "redis_rate":
		// A connection for every goroutine, so that none waits for one.
		client := redis.NewClient(&redis.Options{Addr: address, PoolSize: goroutines})
		limiter := redis_rate.NewLimiter(client)
		numbers := redis_rate.Limit{Rate: rate, Burst: burst, Period: time.Second}
		return func(key int) error {
			_, err := limiter.Allow(context.Background(), named[key], numbers)
			return err
		}
	case "token_limiter":
		store := zeroStore(address)
		limiters := make([]*limit.TokenLimiter, keys)
		for i, name := range named {
			limiters[i] = limit.NewTokenLimiter(rate, burst, store, name)
		}
		return func(key int) error {
			limiters[key].Allow()
			return nil
		}
	case "period_limit":
		limiter := limit.NewPeriodLimit(1, rate, zeroStore(address), "period:")
		return func(key int) error {
			_, err := limiter.Take(named[key])
			return err
		}
	}
	log.Fatalf("peers: there is no %q", kind)
	return nil
}

func ownCPU() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func redisCPU(client *redis.Client) float64 {
	text, err := client.Info(context.Background(), "cpu").Result()
	if err != nil {
		log.Fatal(err)
	}
	sum := 0.0
	for _, line := range strings.Split(text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				log.Fatal(err)
			}
			sum += seconds
		}
	}
	return sum
}

func main() {
	if len(os.Args) != 7 {
		log.Fatal("usage: peers redis_rate|token_limiter|period_limit ADDRESS KEYS GOROUTINES WARM_SECONDS SECONDS")
	}
	number := func(word string) int {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			log.Fatalf("peers: not a count: %q", word)
		}
		return n
	}
	length := func(word string) time.Duration {
		seconds, err := strconv.ParseFloat(word, 64)
		if err != nil {
			log.Fatalf("peers: not a time: %q", word)
		}
		return time.Duration(seconds * float64(time.Second))
	}
	var logged errorCounter
	logx.SetWriter(&logged)
	address, keys, goroutines := os.Args[2], number(os.Args[3]), number(os.Args[4])
	warm, measured := length(os.Args[5]), length(os.Args[6])
	decide := makeAsk(os.Args[1], address, keys, goroutines)
	control := redis.NewClient(&redis.Options{Addr: address})

	// Loads the script: a refusal for each goroutine (NOSCRIPT) would open go-zero's circuit breaker.
	if err := decide(0); err != nil {
		log.Fatal(err)
	}

	var counting, stopping atomic.Bool
	var failures atomic.Uint64
	latencies := make([][]time.Duration, goroutines)
	var running sync.WaitGroup
	for i := range goroutines {
		running.Add(1)
		go func() {
			defer running.Done()
			random := rand.New(rand.NewSource(int64(i)))
			for !stopping.Load() {
				begin := time.Now()
				if err := decide(random.Intn(keys)); err != nil {
					failures.Add(1)
				} else if counting.Load() {
					latencies[i] = append(latencies[i], time.Since(begin))
				}
			}
		}()
	}
	time.Sleep(warm)
	ownBefore, redisBefore, begin := ownCPU(), redisCPU(control), time.Now()
	counting.Store(true)
	time.Sleep(measured)
	counting.Store(false)
	seconds := time.Since(begin).Seconds()
	own, ofRedis := ownCPU()-ownBefore, redisCPU(control)-redisBefore
	stopping.Store(true)
	running.Wait()

	all := slices.Concat(latencies...)
	if len(all) == 0 {
		log.Fatal("peers: nothing was answered")
	}
	slices.Sort(all)
	at := func(part float64) float64 { return all[int(part*float64(len(all)-1))].Seconds() * 1e6 }
	count := float64(len(all))
	out, err := json.Marshal(map[string]any{
		"decisions": len(all), "per_second": count / seconds, "cpu_us": own * 1e6 / count, "redis_us": ofRedis * 1e6 / count,
		"p50_us": at(0.5), "p99_us": at(0.99), "failures": failures.Load() + logged.count.Load(),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(out))
}
