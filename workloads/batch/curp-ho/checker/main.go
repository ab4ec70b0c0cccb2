// Command checker checks a recorded history of batch-curp-ho: strong commands must be linearizable, all commands causally consistent,
// sessions must read their own writes, and no command may be lost.
package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

const usage = "usage: checker check FILE"

// Exit codes.
const (
	kept   = 0
	broken = 1
	misuse = 2
)

// patience is the timeout of the search for a linearization.
const patience = 2 * time.Minute

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(arguments []string, out, errors io.Writer) int {
	if len(arguments) != 2 || arguments[0] != "check" {
		fmt.Fprintln(errors, usage)
		return misuse
	}
	file, err := os.Open(arguments[1])
	if err != nil {
		fmt.Fprintln(errors, err)
		return misuse
	}
	defer file.Close()
	history, err := Read(file)
	if err == nil {
		err = Check(history)
	}
	if err != nil {
		fmt.Fprintf(errors, "%s: %v\n", arguments[1], err)
		return broken
	}
	commands := 0
	for _, ops := range history {
		commands += len(ops)
	}
	fmt.Fprintf(out, "%d commands of %d sessions: linearizable where strong, causal throughout, none lost\n", commands, len(history))
	return kept
}

// Check runs all checks.
func Check(history History) error {
	if err := CheckCausal(history); err != nil {
		return err
	}
	return CheckLinearizable(history, patience)
}
