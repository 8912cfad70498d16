package jobspec

import "container/heap"

// shelf is all there is, a host, or a lane.
type shelf struct {
	index   *index
	above   *shelf // nil: all
	below   shelves
	first   int32 // number of the first job that was not handed out, here or below
	last    int32 // number of the last of them; of a lane only
	left    int32 // how many they are; of a lane only
	waiting int   // jobs that were handed out and wait to be started
	place   int   // in above.below; -1: nothing is left
}

// hidden reports whether a lane with something left has nobody waiting.
func (s *shelf) hidden() bool {
	for len(s.below) > 0 {
		s = s.below[0]
	}
	return s.waiting == 0 && s.left > 0
}

// shelves is a heap (see [heap.Interface]) of those with something left: a hidden
// one is on top, then the one with the fewest jobs waiting.
type shelves []*shelf

func (s shelves) Len() int { return len(s) }
func (s shelves) Less(i, j int) bool {
	if hidden := s[i].hidden(); hidden != s[j].hidden() {
		return hidden
	}
	if s[i].waiting != s[j].waiting {
		return s[i].waiting < s[j].waiting
	}
	return s[i].first < s[j].first
}
func (s shelves) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}
func (s *shelves) Push(x any) {
	one := x.(*shelf)
	one.place = len(*s)
	*s = append(*s, one)
}
func (s *shelves) Pop() any {
	last := len(*s) - 1
	one := (*s)[last]
	one.place = -1
	*s = (*s)[:last]
	return one
}

// moveLocked counts jobs that were handed out, or wait no more if n is negative, for
// s and those above it.
func (s *shelf) moveLocked(n int) {
	for ; s.above != nil; s = s.above {
		s.waiting += n
		switch {
		case len(s.below) > 0:
			s.first = s.below[0].first
		case s.left == 0 && s.place >= 0:
			heap.Remove(&s.above.below, s.place)
		}
		if s.place >= 0 {
			heap.Fix(&s.above.below, s.place)
		}
	}
}

// done tells that a job of the lane was handed out and waits no more.
func (s *shelf) done() {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.moveLocked(-1)
}
