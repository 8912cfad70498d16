package jobspec

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"agentlimit/limits"
)

// index lists the jobs of files that can be read again, 24 bytes a job, and 4 more until
// all are listed if any has a time to keep, so that a run need not take them up in the
// order of the files. A job whose lane has nobody waiting in memory comes first, whose
// host has the fewest waiting there before others: so nothing hides a job that could
// start. The jobs of a lane come by deadline, and as the files have them.
type index struct {
	feeds  []listed // in the order of their jobs
	chunks [][]spot
	count  int
	mine   int         // of them to be handed out
	equals map[int]int // of a job without an id: how many equal ones are in front of it
	began  limits.Time
	ranks  []int32           // of each job among those of its lane; nil: all have the last
	lanes  map[string]*shelf // by what tells them apart
	hosts  map[string]*shelf
	key    []byte // of the last lane, to be used again

	inOrder bool // hand out jobs as the files have them

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

// maxLanes is how many lanes are told apart: the rest of a host's share one.
const maxLanes = 1 << 15

func newIndex(inOrder bool) index {
	return index{
		began: limits.TimeOf(time.Now()), inOrder: inOrder,
		equals: make(map[int]int), lanes: make(map[string]*shelf), hosts: make(map[string]*shelf),
	}
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
	if x.inOrder {
		j = new(Job) // as if all were of one lane
	}
	rank := x.rank(j)
	if rank != lastRank && x.ranks == nil {
		x.ranks = slices.Repeat([]int32{lastRank}, x.count)
	}
	if x.ranks != nil {
		x.ranks = append(x.ranks, rank)
	}
	if mine {
		x.enqueue(int32(x.count), x.laneOf(j))
		x.mine++
	}
	x.count++
}

// lastRank is that of a job which may start at any time.
const lastRank = math.MaxInt32

// rank says when the next job of a lane must start, in milliseconds from now, or when
// it may, if it is not to start yet.
func (x *index) rank(j *Job) int32 {
	when := j.Deadline
	if j.NotBefore.Set {
		when = j.NotBefore
	}
	if !when.Set {
		return lastRank
	}
	return int32(min(max(when.Moment(x.began).Sub(x.began).Milliseconds(), math.MinInt32), lastRank))
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

// sort brings a lane's jobs into the order of their ranks.
func (x *index) sort(lane *shelf) {
	numbers := make([]int32, 0, lane.left)
	for n := lane.first; len(numbers) < cap(numbers); n = x.spot(int(n)).next {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int32) int {
		return cmp.Or(cmp.Compare(x.ranks[a], x.ranks[b]), cmp.Compare(a, b))
	})
	for i, n := range numbers[1:] {
		x.spot(int(numbers[i])).next = n
	}
	lane.first, lane.last = numbers[0], numbers[len(numbers)-1]
}

func (x *index) spot(number int) *spot { return &x.chunks[number/chunk][number%chunk] }

// laneOf returns the lane of a job: those with other keys, with another priority or
// that are not to start yet must not hide it.
func (x *index) laneOf(j *Job) *shelf {
	key := append(append(append(x.key[:0], j.Host...), 0), j.Account...)
	for _, pool := range j.Pools {
		key = append(append(key, 0), pool...)
	}
	key = strconv.AppendBool(strconv.AppendInt(append(key, 0), j.Priority, 10), j.NotBefore.Set)
	x.key = key
	lane := x.lanes[string(key)]
	if lane == nil && len(x.lanes) >= maxLanes {
		key = key[:len(j.Host)]
		lane = x.lanes[j.Host]
	}
	if lane == nil {
		host := x.hosts[j.Host]
		if host == nil {
			host = &shelf{index: x, above: &x.all}
			x.hosts[j.Host] = host
		}
		lane = &shelf{index: x, above: host}
		x.lanes[string(key)] = lane
	}
	return lane
}

// fill orders the shelves, when all jobs are listed.
func (x *index) fill() {
	for _, lane := range x.lanes {
		if x.ranks != nil {
			x.sort(lane)
		}
		heap.Push(&lane.above.below, lane)
	}
	for _, host := range x.hosts {
		host.first = host.below[0].first
		heap.Push(&x.all.below, host)
	}
	x.lanes, x.hosts, x.ranks = nil, nil, nil
}

// take hands out the next job: its number, and the shelf it lay on; ok is false if
// none is left.
func (x *index) take() (number int, from *shelf, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &x.all
	for len(s.below) > 0 {
		s = s.below[0]
	}
	if s.left == 0 {
		return 0, nil, false
	}
	number = int(s.first)
	s.first = x.spot(number).next
	s.left--
	s.moveLocked(1)
	return number, s, true
}

// hidden reports whether any lane is.
func (x *index) hidden() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.hidden()
}
