// Package lru holds what can be read again, within a number of bytes in all: what was used longest ago goes first. It is pure.
package lru

import (
	"container/list"
	"sync"
)

// Map is safe for concurrent use. The zero value is empty and ready.
type Map[K comparable, V any] struct {
	mutex sync.Mutex
	used  int
	// order has the value that was used last in front.
	order list.List
	known map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// Get returns a value, and whether it is there.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	element, ok := m.known[key]
	if !ok {
		return value, false
	}
	m.order.MoveToFront(element)
	return element.Value.(entry[K, V]).value, true
}

// Put keeps a value that takes so many bytes, and forgets others until all together take at most as many as given. It stays itself
// whatever it takes.
func (m *Map[K, V]) Put(key K, value V, bytes, most int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.remove(key)
	if m.known == nil {
		m.known = map[K]*list.Element{}
	}
	m.known[key] = m.order.PushFront(entry[K, V]{key, value, bytes})
	m.used += bytes
	for m.used > most && m.order.Len() > 1 {
		m.remove(m.order.Back().Value.(entry[K, V]).key)
	}
}

// Delete forgets a value.
func (m *Map[K, V]) Delete(key K) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.remove(key)
}

// Used is what all values take.
func (m *Map[K, V]) Used() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.used
}

func (m *Map[K, V]) remove(key K) {
	if element, ok := m.known[key]; ok {
		m.used -= m.order.Remove(element).(entry[K, V]).bytes
		delete(m.known, key)
	}
}
