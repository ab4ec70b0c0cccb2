// Package cputime measures the CPU time of a test's process. A test that must not take long bounds it instead of the elapsed time, which
// depends on the other work of the machine.
package cputime

import (
	"syscall"
	"time"
)

// Start returns a function that returns the CPU time that all threads of the process have used since Start.
func Start() func() time.Duration {
	began := used()
	return func() time.Duration { return used() - began }
}

func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // Only invalid arguments are an error.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
