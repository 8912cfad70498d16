package redis

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// How long Redis may take to answer before it counts as lost, unless the url says
// otherwise: one repetition, as it has a sequence number.
const (
	dialTimeout = 2 * time.Second
	readTimeout = 3 * time.Second
	repetitions = 1
)

// Check returns what is wrong with a URL, without asking whether a Redis is there: nil
// if [Open] would try it.
func Check(url string) error {
	client, _, err := connect(url)
	if err != nil {
		return err
	}
	return client.Close()
}

// connect returns a client for the url, which has not connected yet, and the hash tag
// of its namespace.
func connect(address string) (redis.UniversalClient, string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", withoutAddress(err)
	}
	query := u.Query()
	namespace := "default"
	if query.Has("namespace") {
		namespace = query.Get("namespace")
	}
	if namespace == "" || strings.ContainsAny(namespace, "{}") {
		return nil, "", errors.New(strconv.Quote(namespace) + ": want a namespace without braces, such as ?namespace=ci")
	}
	query.Del("namespace")
	logging.Disable() // of what comes back as an error too
	u.RawQuery = query.Encode()
	client, err := newClient(u.String(), query)
	return client, "{agentlimit:" + namespace + "}", withoutAddress(err)
}

func newClient(address string, query url.Values) (redis.UniversalClient, error) {
	switch {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		o.DialerRetries, o.ContextTimeoutEnabled = 1, true
		patience(&o.DialTimeout, &o.ReadTimeout, &o.MaxRetries)
		return redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, err
		}
		o.DialerRetries, o.ContextTimeoutEnabled = 1, true
		patience(&o.DialTimeout, &o.ReadTimeout, &o.MaxRetries)
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	patience(&o.DialTimeout, &o.ReadTimeout, &o.MaxRetries)
	return redis.NewClient(o), nil
}

func patience(dial, read *time.Duration, retries *int) {
	if *dial == 0 {
		*dial = dialTimeout
	}
	if *read == 0 {
		*read = readTimeout
	}
	if *retries == 0 {
		*retries = repetitions
	}
}

// withoutAddress takes the url, which may hold a password, out of the error.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// warnOfEviction says so if Redis may drop keys when its memory is full. Whoever may
// not read its configuration is told nothing.
func (r *Redis) warnOfEviction(ctx context.Context) {
	config, err := r.client.ConfigGet(ctx, "maxmemory*").Result()
	if policy := config["maxmemory-policy"]; err == nil && config["maxmemory"] != "0" && policy != "noeviction" {
		r.say("redis drops keys when its memory is full (maxmemory-policy " + policy + "), limits among them: set it to noeviction")
	}
}
