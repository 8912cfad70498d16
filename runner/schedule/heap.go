package schedule

// heap is a binary heap whose items know their place in it, so that one in the
// middle can be moved or taken out. An item is in at most one place of a heap;
// place returns where the item keeps its index, which is -1 while it is out.
// (container/heap calls four methods of an interface for each step; this one is
// on the path of every job.)
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	place  func(T) *int32
}

func (h *heap[T]) len() int { return len(h.items) }

// top returns the first item; the heap must not be empty.
func (h *heap[T]) top() T { return h.items[0] }

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	h.up(len(h.items)-1, item)
}

// fix restores the order after item's rank has changed, pushing it if it is out.
func (h *heap[T]) fix(item T) {
	i := *h.place(item)
	if i < 0 {
		h.push(item)
		return
	}
	if h.up(int(i), item) == int(i) {
		h.down(int(i), item)
	}
}

// remove takes item out, if it is in.
func (h *heap[T]) remove(item T) {
	i := int(*h.place(item))
	if i < 0 {
		return
	}
	*h.place(item) = -1
	last := len(h.items) - 1
	moved := h.items[last]
	var zero T
	h.items[last] = zero
	h.items = h.items[:last]
	if i < last && h.up(i, moved) == i {
		h.down(i, moved)
	}
}

// up puts item, meant for place i, as far up as it belongs, and returns where.
func (h *heap[T]) up(i int, item T) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.items[parent]) {
			break
		}
		h.set(i, h.items[parent])
		i = parent
	}
	h.set(i, item)
	return i
}

// down puts item, meant for place i, as far down as it belongs.
func (h *heap[T]) down(i int, item T) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], item) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, item)
}

func (h *heap[T]) set(i int, item T) {
	h.items[i] = item
	*h.place(item) = int32(i)
}
