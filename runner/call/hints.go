package call

import "time"

// Hint is what a service said about when to come back.
type Hint struct {
	Source string
	Raw    string
	Wait   time.Duration
}
