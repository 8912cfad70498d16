package limits_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
)

func TestKeySpelling(t *testing.T) {
	tests := []struct {
		name string
		key  limits.Key
		text string
	}{
		{"a host", limits.Key{Kind: limits.Host, Name: "api.example.com"}, "host/api.example.com"},
		{"a host with a port", limits.Key{Kind: limits.Host, Name: "[::1]:8080"}, "host/[::1]:8080"},
		{"an account that holds a slash", limits.Key{Kind: limits.Account, Name: "team/a"}, "account/team/a"},
		{"a pool named as a kind", limits.Key{Kind: limits.Pool, Name: "host"}, "pool/host"},
		{"a pair", limits.PairKey("api.example.com", "team/a"), "pair/api.example.com/team/a"},
		{"the cap of a process is the zero key", limits.Key{}, "global"},
	}
	for _, tt := range tests {
		if got := tt.key.String(); got != tt.text {
			t.Errorf("%s: String() = %q, want %q", tt.name, got, tt.text)
		}
		if got, err := limits.ParseKey(tt.text); got != tt.key || err != nil {
			t.Errorf("%s: ParseKey(%q) = %v, %v, want %v", tt.name, tt.text, got, err, tt.key)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              "",
		"a kind alone":         "host",
		"a key without a name": "host/",
		"a kind nobody knows":  "team/a",
		"another case":         "Host/a",
		"global with a name":   "global/a",
	} {
		if got, err := limits.ParseKey(text); err == nil || got != (limits.Key{}) {
			t.Errorf("%s: ParseKey(%q) = %v, %v, want an error and the zero key", name, text, got, err)
		}
	}
}

func TestKeysAreNamesInJSON(t *testing.T) {
	want := map[limits.Key]int64{{Kind: limits.Host, Name: "a"}: 1, {Kind: limits.Pool, Name: "b"}: 2}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"host/a":1,"pool/b":2}` {
		t.Errorf("json.Marshal(%v) = %s, %v", want, text, err)
	}
	var got map[limits.Key]int64
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("json.Unmarshal(%s) (-want +got):\n%s", text, diff)
	}
}

func TestKeysAreOrderedAsAdmissionChecksThem(t *testing.T) {
	want := []limits.Key{
		{Kind: limits.Host, Name: "z"},
		{Kind: limits.Account, Name: "b"},
		{Kind: limits.Pool, Name: "a"},
		{Kind: limits.Pool, Name: "c"},
	}
	got := []limits.Key{want[3], want[1], want[0], want[2]}
	slices.SortFunc(got, limits.Key.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sorted by Compare (-want +got):\n%s", diff)
	}
}
