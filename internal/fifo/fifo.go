// Copyright The Weir Authors.
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Package fifo is the order of those who wait: first come, first served, and whoever
// gives up leaves at once, wherever it stands.
package fifo

// Links are embedded in what waits. The zero value stands in no list.
type Links[T any] struct {
	prev, next *T
	queued     bool
}

func (l *Links[T]) links() *Links[T] { return l }

// Queued reports whether it stands in a list.
func (l *Links[T]) Queued() bool { return l.queued }

// Next is who stands behind, nil for nobody.
func (l *Links[T]) Next() *T { return l.next }

// linked is a pointer to what has Links.
type linked[T any] interface {
	*T
	links() *Links[T]
}

// List is a doubly linked list without memory of its own. The zero value is empty. It
// is guarded by whoever has it.
type List[T any, P linked[T]] struct {
	head, tail *T
	n          int64
}

// Head is the first, nil for nobody.
func (l *List[T, P]) Head() *T { return l.head }

// Len is the number of those in the list.
func (l *List[T, P]) Len() int64 { return l.n }

// Push puts w at the end. It must not stand in a list.
func (l *List[T, P]) Push(w *T) {
	at := P(w).links()
	at.prev, at.queued = l.tail, true
	if l.tail == nil {
		l.head = w
	} else {
		P(l.tail).links().next = w
	}
	l.tail = w
	l.n++
}

// Remove takes w out. It must stand in this list.
func (l *List[T, P]) Remove(w *T) {
	at := P(w).links()
	if at.prev == nil {
		l.head = at.next
	} else {
		P(at.prev).links().next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		P(at.next).links().prev = at.prev
	}
	*at = Links[T]{}
	l.n--
}
