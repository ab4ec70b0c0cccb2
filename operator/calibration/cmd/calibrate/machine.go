package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// measuredHere returns date and machine for the heading of a table.
func measuredHere() string {
	return fmt.Sprintf("%s, on %s.\n\n", time.Now().UTC().Format("2006-01-02"), machine())
}

// machine describes the machine.
func machine() string {
	model, kernel := runtime.GOARCH, ""
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	if raw, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(raw))
	}
	return fmt.Sprintf("%s with %d CPUs%s", model, runtime.NumCPU(), kernel)
}
