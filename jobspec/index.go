package jobspec

import (
	"container/heap"
	"encoding/binary"
	"hash/maphash"
	"sort"
	"sync"
)

// index lists the jobs of files that can be read again, 24 bytes a job, so that
// a run need not take them up in the order of the files: of the jobs in memory each
// host has an equal share, and of a host's share each lane, as long as they have
// jobs. So many jobs for a busy host do not hide those for others behind them. A
// lane's jobs, and all jobs as long as none is kept in memory, come in the order of
// the files.
type index struct {
	feeds  []listed // in the order of their jobs
	chunks [][]spot
	count  int
	mine   int         // of them to be handed out
	equals map[int]int // of a job without an id: how many equal ones are in front of it
	seed   maphash.Seed
	known  map[uint64]*shelf // lanes
	hosts  map[string]*shelf

	mu  sync.Mutex // guards all shelves; never held across a wait
	all shelf      // of hosts, which are shelves of lanes
}

// listed is a feed in the index.
type listed struct {
	feed
	first int   // number of its first job, from 0
	file  *file // that its jobs are from
}

// chunk is how many spots are allocated at once.
const chunk = 4096

// maxLanes bounds the shelves: of more lanes several share one of so many more.
const maxLanes = 1 << 15

// shelf is all there is, a host, or a lane.
type shelf struct {
	index *index
	above *shelf // nil: all
	below shelves
	left  int   // jobs that were not handed out; of a lane only
	first int32 // number of the first of them, here or below
	last  int32 // number of the last of them; of a lane only
	out   int   // jobs that were handed out and are not done
	place int   // in above.below; -1: nothing is left
}

// shelves is a heap (see [heap.Interface]) of those with something left: the one
// with the fewest jobs out is on top.
type shelves []*shelf

func (s shelves) Len() int { return len(s) }
func (s shelves) Less(i, j int) bool {
	if s[i].out != s[j].out {
		return s[i].out < s[j].out
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

func newIndex(seed maphash.Seed) index {
	return index{seed: seed, equals: make(map[int]int), known: make(map[uint64]*shelf), hosts: make(map[string]*shelf)}
}

// begin says that the jobs of feed f come next.
func (x *index) begin(f feed) {
	x.feeds = append(x.feeds, listed{feed: f, first: x.count})
}

// of returns the feed that has the job of a number.
func (x *index) of(number int) listed {
	behind := sort.Search(len(x.feeds), func(i int) bool { return x.feeds[i].first > number })
	return x.feeds[behind-1]
}

// add lists the next job; one that is another shard's only with its place.
func (x *index) add(e entry, j *Job, equals int, mine bool) {
	if x.count%chunk == 0 {
		x.chunks = append(x.chunks, make([]spot, chunk))
	}
	x.feeds[len(x.feeds)-1].file = e.file
	*x.spot(x.count) = e.spot
	if equals > 0 {
		x.equals[x.count] = equals
	}
	if mine {
		x.enqueue(int32(x.count), x.laneOf(j))
		x.mine++
	}
	x.count++
}

// enqueue puts a job behind the others of its lane.
func (x *index) enqueue(number int32, lane *shelf) {
	if lane.left == 0 {
		lane.first = number
	} else {
		x.spot(int(lane.last)).next = number
	}
	lane.last = number
	lane.left++
}

func (x *index) spot(number int) *spot { return &x.chunks[number/chunk][number%chunk] }

// laneOf returns the lane of a job: those with other keys, with another priority or
// that are not to start yet must not hide it.
func (x *index) laneOf(j *Job) *shelf {
	var h maphash.Hash
	h.SetSeed(x.seed)
	for _, name := range append([]string{j.Host, j.Account}, j.Pools...) {
		h.WriteString(name)
		h.WriteByte(0)
	}
	var rest [9]byte
	binary.LittleEndian.PutUint64(rest[:], uint64(j.Priority))
	if j.NotBefore.Set {
		rest[8] = 1
	}
	h.Write(rest[:])
	sum := h.Sum64()
	lane := x.known[sum]
	if lane == nil && len(x.known) >= maxLanes {
		sum %= maxLanes
		lane = x.known[sum]
	}
	if lane != nil {
		return lane
	}
	host := x.hosts[j.Host]
	if host == nil {
		host = &shelf{index: x, above: &x.all, place: -1}
		x.hosts[j.Host] = host
	}
	lane = &shelf{index: x, above: host, place: -1}
	x.known[sum] = lane
	return lane
}

// fill orders the shelves, when all jobs are listed.
func (x *index) fill() {
	for _, lane := range x.known {
		heap.Push(&lane.above.below, lane)
	}
	for _, host := range x.hosts {
		host.first = host.below[0].first
		heap.Push(&x.all.below, host)
	}
	x.known, x.hosts = nil, nil
}

// take hands out the next job: its number, and the shelf it lay on; nil if none is
// left.
func (x *index) take() (number int, from *shelf) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &x.all
	for len(s.below) > 0 {
		s = s.below[0]
	}
	if s.left == 0 {
		return 0, nil
	}
	number = int(s.first)
	s.first = x.spot(number).next
	s.left--
	s.moveLocked(1)
	return number, s
}

// moveLocked counts jobs that were handed out, or are done if n is negative, for s
// and those above it.
func (s *shelf) moveLocked(n int) {
	for ; s.above != nil; s = s.above {
		s.out += n
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

// done tells that a job of the lane was handed out and leaves the memory.
func (s *shelf) done() {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.moveLocked(-1)
}
