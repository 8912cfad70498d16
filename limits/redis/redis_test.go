package redis

import (
	"testing"

	"agentlimit/limits"
	"agentlimit/limits/conformance"
)

func TestConformance(t *testing.T) {
	s := newServer(t)
	members := func(t *testing.T, n int) []limits.Coordinator {
		url := s.url(s.fresh())
		var all []limits.Coordinator
		for range n {
			all = append(all, mustOpen(t, url, usual))
		}
		return all
	}
	conformance.Alone(t, members)
	conformance.Together(t, members)
}
