package lru

import (
	"math/rand/v2"
	"testing"
)

func TestMap_FullEvictsLeastRecentlyUsed(t *testing.T) {
	m := &Map[string, int]{}
	m.Put("a", 1, 4, 10)
	m.Put("b", 2, 4, 10)
	if _, ok := m.Get("a"); !ok {
		t.Fatal("a was evicted though there is room")
	}
	m.Put("c", 3, 4, 10)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := m.Get(key); ok != want {
			t.Errorf("%s is present: %v, want %v", key, ok, want)
		}
	}
	m.Put("huge", 4, 100, 10)
	if value, ok := m.Get("huge"); !ok || value != 4 || m.Used() != 100 {
		t.Errorf("an oversized value must be the only one: %d, %v, %d bytes", value, ok, m.Used())
	}
	m.Delete("huge")
	if m.Used() != 0 {
		t.Errorf("an empty cache uses %d bytes", m.Used())
	}
}

// After any sequence of puts and deletes, Used is within the bound and equals the sum of the sizes of the values present.
func TestMap_SizesStayWithinTheBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := &Map[int, int]{}
	for range 10000 {
		key, bytes := random.IntN(50), random.IntN(200)
		switch random.IntN(3) {
		case 0:
			m.Delete(key)
		case 1:
			m.Get(key)
		default:
			m.Put(key, bytes, bytes, 1000)
		}
		sum := 0
		for key := range 50 {
			if element, ok := m.known[key]; ok {
				sum += element.Value.(entry[int, int]).value
			}
		}
		if sum != m.Used() || sum > 1000 || len(m.known) != m.order.Len() {
			t.Fatalf("Used is %d bytes, want %d, with %d values", m.Used(), sum, m.order.Len())
		}
	}
}
