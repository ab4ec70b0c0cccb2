package main

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// CheckLinearizable reports whether all strong commands can be put into one order that keeps real time and explains what they read.
//
// Weak writes take part, because strong commands may read them. A weak write has its answer before the leader knows of it, so it may
// take effect later; but no later than the answer to a strong command that its client sent after it, for a connection keeps its
// order. Weak reads do not take part: they may be older.
func CheckLinearizable(history History, timeout time.Duration) error {
	var ops []porcupine.Operation
	for client, own := range history {
		latest := int64(math.MaxInt64)
		for i := len(own) - 1; i >= 0; i-- {
			op := own[i]
			if op.strong() {
				latest = min(latest, op.Return)
			} else if !op.put() {
				continue
			}
			returned := op.Return
			if !op.strong() {
				returned = latest
			}
			ops = append(ops, porcupine.Operation{
				ClientId: int(client), Input: op, Call: op.Invoke, Output: op.Value, Return: returned,
			})
		}
	}
	switch porcupine.CheckOperationsTimeout(register, ops, timeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("the strong commands are not linearizable%s", culprit(ops, timeout))
	default:
		return fmt.Errorf("whether the strong commands are linearizable was not decided within %v", timeout)
	}
}

// register is one key: it holds the value last written. Keys are independent of each other.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[uint64][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(*Operation).Key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if input.(*Operation).put() {
			return true, output
		}
		return state == output, state
	},
}

// culprit names the key that cannot be explained.
func culprit(ops []porcupine.Operation, timeout time.Duration) string {
	for _, part := range register.Partition(ops) {
		if porcupine.CheckOperationsTimeout(register, part, timeout) == porcupine.Illegal {
			return fmt.Sprintf(": key %d, %d commands", part[0].Input.(*Operation).Key, len(part))
		}
	}
	return ""
}
