package record

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// If the runner wrote an attempt that the keeper rejects, its block would be lost.
func TestMostAttempt_EqualsTheRunners(t *testing.T) {
	source, err := os.ReadFile("../../../runner/schema/src/attempt.rs")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`pub const MOST_ATTEMPT: usize = (\d+) << (\d+);`).FindSubmatch(source)
	if found == nil {
		t.Fatal("attempt.rs has no MOST_ATTEMPT of the form N << M")
	}
	number, _ := strconv.Atoi(string(found[1]))
	shift, _ := strconv.Atoi(string(found[2]))
	if number<<shift != MostAttempt {
		t.Errorf("MostAttempt is %d, and MOST_ATTEMPT of attempt.rs %d", MostAttempt, number<<shift)
	}
}
