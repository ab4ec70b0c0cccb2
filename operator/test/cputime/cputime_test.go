package cputime

import (
	"testing"
	"time"
)

func TestStart_WorkIsCountedAndWaitingIsNot(t *testing.T) {
	used := Start()
	time.Sleep(200 * time.Millisecond)
	if took := used(); took > 100*time.Millisecond {
		t.Errorf("a sleep of 200 ms took %s", took)
	}
	const work = 20 * time.Millisecond
	for end := time.Now().Add(time.Minute); used() < work; {
		if time.Now().After(end) {
			t.Fatalf("work of a minute took %s", used())
		}
	}
}
