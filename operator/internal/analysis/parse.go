package analysis

import (
	"encoding/json"
	"fmt"
	"sync"
)

// Limits of an untrusted analysis in a shared process. Any holder of a key of the namespace can write one, and two bytes of JSON can
// allocate the memory of a whole result.
const (
	// MostBytes bounds the JSON of an analysis, and mostRoom its memory after decoding.
	MostBytes = 16 << 20
	mostRoom  = 64 << 20
	// elementRoom bounds the memory of a list element (the largest of the results), objectRoom that of an object inside of an object, and
	// memberRoom that of a name with its value.
	elementRoom, objectRoom, memberRoom = 512, 192, 64
)

// parsing serializes the decoding of analyses, because concurrent decodings would add up their memory.
var parsing sync.Mutex

// Parse decodes an untrusted analysis. It returns an error for one that would take too much memory, before the allocation, and for one
// that fails Validate.
func Parse(raw []byte) (*Analysis, error) {
	if len(raw) > MostBytes {
		return nil, fmt.Errorf("the analysis has %d bytes, and at most %d are allowed", len(raw), MostBytes)
	}
	if err := CheckRoom(raw); err != nil {
		return nil, err
	}
	parsing.Lock()
	defer parsing.Unlock()
	var out Analysis
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return &out, nil
}

// CheckRoom returns an error for JSON that would take more than the allowed memory after decoding.
func CheckRoom(raw []byte) error {
	if room := RoomOf(raw); room > mostRoom {
		return fmt.Errorf("the analysis would take about %d bytes of memory, and at most %d are allowed", room, mostRoom)
	}
	return nil
}

// RoomOf returns an upper bound, in bytes, of the memory that decoded JSON takes; 0 for text that is not JSON.
func RoomOf(raw []byte) int {
	room, lists := len(raw), []bool{}
	inList := func() bool { return len(lists) > 0 && lists[len(lists)-1] }
	for i := 0; i < len(raw) && room <= mostRoom; i++ {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '[':
			lists = append(lists, true)
			room += elementRoom
		case '{':
			if !inList() {
				room += objectRoom
			}
			lists = append(lists, false)
		case ']', '}':
			lists = lists[:max(0, len(lists)-1)]
		case ',':
			if inList() {
				room += elementRoom
			} else {
				room += memberRoom
			}
		}
	}
	return room
}
