package main

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// CheckLinearizable reports an error unless the strong commands have a linearization.
//
// Weak writes are included, because strong commands may read them. A weak write is answered before the leader knows it, so that it may
// take effect later, but no later than the answer to a later strong command of its client, because connections are ordered. Weak reads
// are excluded, because they may be stale.
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

// register models one key, whose state is the last value written. Keys are independent.
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

// culprit names the key without a linearization.
func culprit(ops []porcupine.Operation, timeout time.Duration) string {
	for _, part := range register.Partition(ops) {
		if porcupine.CheckOperationsTimeout(register, part, timeout) == porcupine.Illegal {
			return fmt.Sprintf(": key %d, %d commands", part[0].Input.(*Operation).Key, len(part))
		}
	}
	return ""
}
