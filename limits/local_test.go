package limits_test

import (
	"testing"

	"agentlimit/limits"
	"agentlimit/limits/conformance"
)

func TestLocal(t *testing.T) {
	conformance.Alone(t, func(*testing.T, int) []limits.Coordinator {
		return []limits.Coordinator{limits.NewLocal()}
	})
}
