// Package lru implements a size-bounded LRU cache. It is pure.
package lru

import (
	"container/list"
	"sync"
)

// Map is an LRU cache. It is safe for concurrent use, and the zero value is empty and ready.
type Map[K comparable, V any] struct {
	mutex sync.Mutex
	used  int
	// order has the most recently used value in front.
	order list.List
	known map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// Get returns the value of a key and whether the cache has it, and marks it as used.
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

// Put stores a value with its size in bytes, and evicts the least recently used others until the sum is at most the given bound. The new
// value itself is never evicted, even if it is larger than the bound.
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

// Delete removes a value.
func (m *Map[K, V]) Delete(key K) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.remove(key)
}

// Used returns the sum of the sizes of all values, in bytes.
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
