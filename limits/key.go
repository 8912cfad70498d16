package limits

import (
	"cmp"
	"fmt"
	"strings"
)

// Kind says what a key stands for. Kinds are ordered as admission checks them.
type Kind uint8

// The kinds of key. Host, Account and Pool carry permits, tokens and pauses;
// Pair carries pauses only. Global is no key of a coordinator: it names, in
// verdicts and records, the cap on everything one process has under way.
const (
	Global Kind = iota
	Host
	Account
	Pool
	Pair
)

var kindNames = [...]string{"global", "host", "account", "pool", "pair"}

// String returns the kind's name as users read it: "host", "account", "pool",
// "pair" or "global".
func (k Kind) String() string { return kindNames[k] }

// Key names one thing that limits are put on. Keys are comparable; the zero
// Key is the global cap.
type Key struct {
	Kind Kind
	Name string
}

// PairKey returns the key of a host and an account together. Host names hold
// no slash, so that two pairs never share a key.
func PairKey(host, account string) Key { return Key{Pair, host + "/" + account} }

// Compare orders keys as admission does: by kind, then by name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Name, other.Name))
}

// String spells the key as records and messages do: "host/api.example.com",
// "pair/api.example.com/team-a", or "global".
func (k Key) String() string {
	if k.Kind == Global {
		return "global"
	}
	return k.Kind.String() + "/" + k.Name
}

// ParseKey reads what [Key.String] writes.
func ParseKey(s string) (Key, error) {
	if s == "global" {
		return Key{}, nil
	}
	kind, name, found := strings.Cut(s, "/")
	for k := Host; k <= Pair; k++ {
		if found && name != "" && kind == k.String() {
			return Key{k, name}, nil
		}
	}
	return Key{}, fmt.Errorf("%q: want a key, such as host/api.example.com", s)
}

// MarshalText spells the key as [Key.String] does.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what [Key.MarshalText] writes.
func (k *Key) UnmarshalText(b []byte) error {
	var err error
	*k, err = ParseKey(string(b))
	return err
}
