package main

import (
	"fmt"
	"sort"
)

// CheckCausal reports the first read that violates causal consistency.
//
// When a session sends a command, it knows its own earlier writes (commands of a session keep their order), the values read by its
// answered commands, and everything that the writers of those values knew. Commands of a session that are in flight together are
// otherwise concurrent.
//
// There are two violations (after Bouajjani, Enea, Guerraoui and Hamza, "On verifying causal consistency", 2017): a read of a value
// that is older, in this order, than another known write of the key; and a cycle.
func CheckCausal(history History) error {
	c := &causality{history: history, known: map[*Operation]clock{}, state: map[*Operation]int{}, answered: map[uint32][]*Operation{}}
	for client, ops := range history {
		byReturn := append([]*Operation(nil), ops...)
		sort.Slice(byReturn, func(i, j int) bool { return byReturn[i].Return < byReturn[j].Return })
		c.answered[client] = byReturn
	}
	c.prefix = map[uint32][]clock{}
	for _, ops := range history {
		for _, op := range ops {
			if _, err := c.before(op); err != nil {
				return err
			}
		}
	}
	for _, ops := range history {
		for _, op := range ops {
			if !op.put() {
				if err := c.checkRead(op); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// clock has for every client its newest known write. A session's writes are ordered, so knowing one means
// knowing all before it.
type clock map[uint32]uint32

func (c clock) join(other clock) {
	for client, seq := range other {
		c[client] = max(c[client], seq)
	}
}

type causality struct {
	history History
	// answered has a client's commands in the order of their answers; prefix[i] is the merged knowledge of the first i.
	answered map[uint32][]*Operation
	prefix   map[uint32][]clock
	known    map[*Operation]clock
	state    map[*Operation]int
}

const (
	visiting = 1
	done     = 2
)

// before returns the knowledge when the command took effect, including the value it read but not the one it wrote.
func (c *causality) before(op *Operation) (clock, error) {
	switch c.state[op] {
	case done:
		return c.known[op], nil
	case visiting:
		return nil, fmt.Errorf("causality has a cycle through %v", op)
	}
	c.state[op] = visiting
	own := c.history[op.Client]
	known := clock{}
	// The session's own earlier writes and their knowledge.
	for i := int(op.Seq) - 2; i >= 0; i-- {
		if own[i].put() {
			if err := c.learn(known, own[i]); err != nil {
				return nil, err
			}
			break
		}
	}
	// The knowledge of the session's commands answered before this one was sent.
	byReturn := c.answered[op.Client]
	count := sort.Search(len(byReturn), func(i int) bool { return byReturn[i].Return >= op.Invoke })
	earlier, err := c.firstAnswers(op.Client, count)
	if err != nil {
		return nil, err
	}
	known.join(earlier)
	if !op.put() && op.Value != "" {
		writer, err := c.writer(op)
		if err != nil {
			return nil, err
		}
		if err := c.learn(known, writer); err != nil {
			return nil, err
		}
	}
	c.known[op], c.state[op] = known, done
	return known, nil
}

// learn adds a write and its knowledge.
func (c *causality) learn(known clock, write *Operation) error {
	before, err := c.before(write)
	if err != nil {
		return err
	}
	known.join(before)
	known[write.Client] = max(known[write.Client], write.Seq)
	return nil
}

// firstAnswers returns the merged knowledge of the first count answers of a client.
func (c *causality) firstAnswers(client uint32, count int) (clock, error) {
	if len(c.prefix[client]) == 0 {
		c.prefix[client] = []clock{{}}
	}
	for have := len(c.prefix[client]); have <= count; have = len(c.prefix[client]) {
		op := c.answered[client][have-1]
		before, err := c.before(op)
		if err != nil {
			return nil, err
		}
		// The recursion may have computed other answers of this client.
		if len(c.prefix[client]) != have {
			continue
		}
		next := clock{}
		next.join(c.prefix[client][have-1])
		next.join(before)
		c.prefix[client] = append(c.prefix[client], next)
	}
	return c.prefix[client][count], nil
}

func (c *causality) writer(read *Operation) (*Operation, error) {
	var client, seq uint32
	if _, err := fmt.Sscanf(read.Value, "%d:%d", &client, &seq); err != nil {
		return nil, fmt.Errorf("%v: invalid value", read)
	}
	ops := c.history[client]
	if seq == 0 || int(seq) > len(ops) || !ops[seq-1].put() || ops[seq-1].Key != read.Key {
		return nil, fmt.Errorf("%v: no client wrote that value to that key", read)
	}
	return ops[seq-1], nil
}

// checkRead compares, for every client, its newest write of the key that the read's session knew. If any known write came after the
// one that was read, one of these did.
func (c *causality) checkRead(read *Operation) error {
	known := c.known[read]
	for client, upTo := range known {
		write := newestWrite(c.history[client][:upTo], read.Key)
		if write == nil || write.Value == read.Value {
			continue
		}
		if read.Value == "" {
			return fmt.Errorf("%v: its session knew of %v", read, write)
		}
		seen, err := c.writer(read)
		if err != nil {
			return err
		}
		if c.known[write][seen.Client] >= seen.Seq {
			return fmt.Errorf("%v: its session knew of the newer %v", read, write)
		}
	}
	return nil
}

func newestWrite(ops []*Operation, key uint64) *Operation {
	for i := len(ops) - 1; i >= 0; i-- {
		if ops[i].put() && ops[i].Key == key {
			return ops[i]
		}
	}
	return nil
}
