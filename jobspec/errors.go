package jobspec

// Invalid is the error of one bad line of a pipe.
type Invalid struct {
	Pos Position
	Err error
}

// Error spells the place and what is wrong there.
func (e *Invalid) Error() string { return e.Pos.String() + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Invalid) Unwrap() error { return e.Err }
