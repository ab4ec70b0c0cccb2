package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reservedCPU is the one that kubelet's static CPU manager keeps back for system work: with less than one CPU reserved it
// takes the first.
const reservedCPU = 0

// StayOnReservedCPU pins the calling thread, and the program it executes, to the reserved CPU. With one CPU there is nothing to
// keep apart.
func StayOnReservedCPU() error {
	var allowed, reserved unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("reading the CPU affinity: %w", err)
	}
	if allowed.Count() < 2 || !allowed.IsSet(reservedCPU) {
		return nil
	}
	reserved.Set(reservedCPU)
	if err := unix.SchedSetaffinity(0, &reserved); err != nil {
		return fmt.Errorf("staying on CPU %d: %w", reservedCPU, err)
	}
	return nil
}
