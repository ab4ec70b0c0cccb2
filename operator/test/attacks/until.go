package attacks

import (
	"testing"
	"time"
)

const patience = time.Minute

// until waits for a condition, and fails the test with the condition's last error.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); ; {
		if err = check(); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for: %s; last: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
