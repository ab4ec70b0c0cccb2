package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Operation is one command as observed by its client. Times are nanoseconds of one clock.
type Operation struct {
	Client uint32 `json:"client"`
	Seq    uint32 `json:"seq"`
	Kind   string `json:"kind"`
	Op     string `json:"op"`
	Key    uint64 `json:"key"`
	// Value written or read, named after its writer; empty if a read found none.
	Value  string `json:"value"`
	Invoke int64  `json:"invoke"`
	Return int64  `json:"return"`
}

func (o *Operation) put() bool    { return o.Op == "put" }
func (o *Operation) strong() bool { return o.Kind == "strong" }

func (o *Operation) String() string {
	value := o.Value
	if value == "" {
		value = "nothing"
	}
	return fmt.Sprintf("%s %s %d = %s (client %d, command %d)", o.Kind, o.Op, o.Key, value, o.Client, o.Seq)
}

// History is all commands by client, in the order in which each client sent them.
type History map[uint32][]*Operation

// Read reads JSON lines. A missing, repeated or invalid command is an error.
func Read(in io.Reader) (History, error) {
	history := History{}
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		op := &Operation{}
		if err := json.Unmarshal(lines.Bytes(), op); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		switch {
		case op.Kind != "strong" && op.Kind != "weak", op.Op != "get" && op.Op != "put":
			return nil, fmt.Errorf("line %d: a %q %q", number, op.Kind, op.Op)
		case op.Return < op.Invoke:
			return nil, fmt.Errorf("line %d: %v returned before it was sent", number, op)
		case op.put() && op.Value != fmt.Sprintf("%d:%d", op.Client, op.Seq):
			return nil, fmt.Errorf("line %d: %v writes a value that is not its own", number, op)
		}
		history[op.Client] = append(history[op.Client], op)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(history) == 0 {
		return nil, errors.New("the history is empty, so that there is nothing to check")
	}
	for client, ops := range history {
		slices.SortFunc(ops, func(a, b *Operation) int { return int(a.Seq) - int(b.Seq) })
		for i, op := range ops {
			if op.Seq != uint32(i+1) {
				return nil, fmt.Errorf("client %d: command %d is missing or came twice", client, i+1)
			}
		}
	}
	return history, nil
}
