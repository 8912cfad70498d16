package redis

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"agentlimit/limits"
)

//go:embed look.lua
var lookScript string

// Look returns what the members of the namespace that url names hold and wait for, and
// changes nothing. It goes through all keys of the database, some at a time.
func Look(ctx context.Context, url string) ([]limits.KeyStatus, error) {
	client, space, err := connect(url)
	if err != nil {
		return nil, fmt.Errorf("look at coordinator redis: %w", err)
	}
	defer func() { _ = client.Close() }()
	all, err := look(ctx, client, space)
	if err != nil {
		return nil, fmt.Errorf("look at coordinator redis: %w", err)
	}
	return all, nil
}

func look(ctx context.Context, client redis.UniversalClient, space string) ([]limits.KeyStatus, error) {
	node := redis.Cmdable(client)
	if cluster, ok := client.(*redis.ClusterClient); ok { // which scans any one node
		master, err := cluster.MasterForKey(ctx, space)
		if err != nil {
			return nil, err
		}
		node = master
	}
	var stored []any
	keys := node.Scan(ctx, 0, globbed(space)+":key:*", 1000).Iterator()
	for keys.Next(ctx) {
		stored = append(stored, keys.Val())
	}
	if err := keys.Err(); err != nil {
		return nil, err
	}
	value, err := redis.NewScript(lookScript).Run(ctx, client, []string{space}, stored...).Slice()
	if err != nil {
		return nil, err
	}
	return readLook(value)
}

// globbed writes text so that SCAN takes it as it is.
func globbed(text string) string {
	var out []byte
	for i := range len(text) {
		if c := text[i]; c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return string(out)
}

func readLook(value []any) ([]limits.KeyStatus, error) {
	in := fields{of: value}
	now := in.time()
	keys, members := next[[]any](&in), next[[]any](&in)
	stored := limits.Stored{Members: make(map[string][]limits.StoredClaim)}
	for _, key := range keys {
		in.of, in.at = key, 0
		stored.Keys = append(stored.Keys, limits.StoredKey{
			Key: in.key(), Limit: in.limit(), Bucket: &limits.Bucket{Level: in.int(), Last: in.time()}, Pause: in.time(),
		})
	}
	for _, member := range members {
		in.of, in.at = member, 0
		name := in.string()
		for _, claim := range next[[]any](&in) {
			in.of, in.at = claim, 0
			stored.Members[name] = append(stored.Members[name], in.stored())
		}
	}
	if in.wrong {
		return nil, errAnswer
	}
	var state limits.State
	state.Load(&stored, now)
	return state.Status(now), nil
}

// stored reads one claim, granted or waiting.
func (f *fields) stored() limits.StoredClaim {
	c := limits.StoredClaim{ID: limits.ClaimID(f.int()), Granted: f.int() == 1}
	for _, name := range next[[]any](f) {
		key := fields{of: []any{name}}
		c.Needs = append(c.Needs, limits.StoredNeed{Key: key.key()})
		f.wrong = f.wrong || key.wrong
	}
	return c
}
