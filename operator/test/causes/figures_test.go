package causes

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/operator/calibration/figures"
)

var figuresFile = flag.String("figures", "", "file for the figures of the causes, one JSON line each")

// counts are the ways to break a run that the tests of this package tried, by kind.
type counts struct {
	mutex   sync.Mutex
	kinds   map[string]int
	tried   int
	told    int
	slowest time.Duration
}

var counted = counts{kinds: map[string]int{}}

// add counts a way. After is the time until all views told its cause, and missing are the views that did not.
func (c *counts) add(t *testing.T, kind string, after time.Duration, missing []string) {
	t.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.kinds[kind]++
	c.tried++
	if len(missing) == 0 {
		c.told++
	}
	c.slowest = max(c.slowest, after)
	if limit := time.Minute; after > limit {
		t.Errorf("the cause is told after %s, want at most %s", after, limit)
	}
}

// kinds are the kinds of ways to break a run, each of which the tests try in at least three ways.
var kinds = []string{"image", "program", "arguments", "output", "unit", "parity", "memory", "disk", "time", "rights", "store", "node",
	"policy", "schedule", "admission"}

// TestMain checks the number of ways after all tests, and writes the figures.
func TestMain(m *testing.M) {
	code := m.Run()
	if selected := flag.Lookup("test.run"); code == 0 && (selected == nil || selected.Value.String() == "") {
		for _, kind := range kinds {
			if counted.kinds[kind] < 3 {
				fmt.Printf("%d ways of kind %s, want at least 3\n", counted.kinds[kind], kind)
				code = 1
			}
		}
		if len(counted.kinds) != len(kinds) || counted.tried < 45 {
			fmt.Printf("%d ways of %d kinds, want at least 45 of %d\n", counted.tried, len(counted.kinds), len(kinds))
			code = 1
		}
	}
	if err := counted.write(*figuresFile); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// write writes the figures to a file; none for an empty name. The value of causes.told is a share of all ways, and its samples are their
// number.
func (c *counts) write(name string) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	share, slowest := float64(c.told)/float64(max(c.tried, 1)), c.slowest.Seconds()
	for _, figure := range []figures.Figure{
		{Figure: "causes.told", Value: share, Unit: "1", Low: share, High: share, Samples: c.tried},
		{Figure: "causes.slowest_s", Value: slowest, Unit: "s", Low: slowest, High: slowest, Samples: c.tried},
	} {
		if err := figure.Write(file); err != nil {
			return err
		}
	}
	return file.Close()
}
