package analysis

import (
	"encoding/json"
	"fmt"
	"sync"
)

// What is read of an analysis in a process that many share. Whoever measures in a namespace can write one there, and two bytes of JSON can
// ask for the room of a whole result.
const (
	// MostBytes bounds the JSON of an analysis, and mostRoom its memory after decoding.
	MostBytes = 16 << 20
	mostRoom  = 64 << 20
	// An element of a list takes at most elementRoom, as the largest of the results does, an object that is a member of another one
	// objectRoom, and a name with its value memberRoom.
	elementRoom, objectRoom, memberRoom = 512, 192, 64
)

// parsing lets one analysis be read at a time: together they would take several times the room of one.
var parsing sync.Mutex

// Parse reads an analysis that anybody may have written. How much room it takes is counted before any of it is made, and what none of ours
// says is refused.
func Parse(raw []byte) (*Analysis, error) {
	if len(raw) > MostBytes {
		return nil, fmt.Errorf("it has %d bytes and at most %d are read", len(raw), MostBytes)
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

// CheckRoom refuses JSON that would take more room than there is, before any of it is made.
func CheckRoom(raw []byte) error {
	if room := RoomOf(raw); room > mostRoom {
		return fmt.Errorf("its lists take some %d bytes when they are read and at most %d are allowed", room, mostRoom)
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
