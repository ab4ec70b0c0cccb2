package experiment

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestByClock_SpellingsOfTimesAndRates(t *testing.T) {
	const time, rate, neither, refused = "a time", "a rate", "neither", "refused"
	for unit, want := range map[string]string{
		"s": time, "ms": time, "us": time, "µs": time, "μs": time, "ns": time, "ps": time, "min": time, "h": time,
		"sec": time, "secs": time, "second": time, "seconds": time, "Seconds": time, "msec": time, "msecs": time, "millis": time,
		"millisecond": time, "milliseconds": time, "Milliseconds": time, "usec": time, "microseconds": time, "nsec": time, "nanos": time,
		"nanoseconds": time, "minutes": time, "hours": time, "hrs": time, "days": time, "ns/op": time, "us/op": time, "ms per query": time,
		"milliseconds/op": time,
		"queries/s":       rate, "By/s": rate, "MB/ms": rate, "1/s": rate, "1/min": rate, "Hz": rate, "GHz": rate, "rps": rate, "RPS": rate, "qps": rate, "tps": rate,
		"IOPS": rate, "Mbps": rate, "requests per second": rate, "ops/sec": rate, "requests / second": rate,
		"By": neither, "1": neither, "m": neither, "allocs": neither, "ratio": neither, "x": neither, "steps": neither, "ops": neither,
		"milli": neither, "op": neither, "allocs/op": neither, "cycles": neither, "instructions": neither, "percent": neither, "KiB": neither, "": neither,
		"MS": refused, "s^-1": refused, "Ksec": neither, "CPU-seconds": refused, "weeks": refused, "kqps": refused, "jiffies": refused,
		"time (ms)": refused, "S": refused, "core·s": refused, "fs": refused, "time": refused, "latency": refused, "duration": refused,
		"clock ticks": refused, "ticks": refused, "wk": refused, "rpm": refused, "kops": refused, "Mops": refused, "GFLOPS": refused, "flops": refused,
		"flop/s": rate, "timeouts": neither, "tickets": neither,
	} {
		is, isRate := ByClock(unit)
		got := neither
		switch {
		case isUnknownTime(unit):
			got = refused
		case isRate:
			got = rate
		case is:
			got = time
		}
		if got != want {
			t.Errorf("%q is %s, want %s", unit, got, want)
		}
	}
	for unit, want := range map[string]float64{
		"msec": 1e-3, "Milliseconds": 1e-3, "usecs": 1e-6, "nanos": 1e-9, "hrs": 3600, "Sec": 1, "days": 86400,
	} {
		if got, ok := InSeconds(unit); !ok || math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%q has %g seconds, want %g", unit, got, want)
		}
	}
}

func TestClockUnit_OfTimesAndRates(t *testing.T) {
	for unit, want := range map[string]float64{
		"s": 1, "ms": 1e-3, "nanoseconds": 1e-9, "us/op": 1e-6, "s per query": 1, "queries/s": 1, "MB/ms": 1e-3, "requests per second": 1,
		"GHz": 0, "rps": 0, "bytes": 0, "": 0,
	} {
		if got := ClockUnit(unit); got != want {
			t.Errorf("%q: %g s, want %g", unit, got, want)
		}
	}
}

func TestConvertible_UnitsOfOneDimension(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		want     bool
	}{
		"a time":                       {"ms", "s", true},
		"a misspelt time":              {"mss", "s", false},
		"a time per operation":         {"ns/op", "s", true},
		"a size":                       {"MiB", "By", true},
		"a size and a time":            {"MiB", "s", false},
		"bandwidth":                    {"MB/s", "By/s", true},
		"a size and a bandwidth":       {"MB", "By/s", false},
		"a count of the same":          {"queries/s", "queries/s", true},
		"a count of other things":      {"rows/s", "queries/s", false},
		"a number":                     {"1", "queries", true},
		"a share":                      {"%", "1", true},
		"a number for a time":          {"1", "s", false},
		"a time that the runner lacks": {"ms", "millis", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := convertible(c.from, c.to); got != c.want {
				t.Errorf("%s to %s: %v, want %v", c.from, c.to, got, c.want)
			}
		})
	}
	if got := sourceUnits("By/s"); !strings.Contains(got, "MiB/s, ") || strings.Contains(got, "ms") {
		t.Error(got)
	}
}

// The runner converts exactly the units that a plan accepts.
func TestSourceUnits_EqualTableOfRunner(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "runner", "adapters", "src", "unit.rs"))
	if err != nil {
		t.Fatal(err)
	}
	table := func(name string) (out []string) {
		_, rest, _ := strings.Cut(string(raw), "const "+name+":")
		rest, _, _ = strings.Cut(rest, "\n];")
		for _, match := range regexp.MustCompile(`\("([^"]+)",`).FindAllStringSubmatch(rest, -1) {
			out = append(out, strings.NewReplacer(`\u{b5}`, "\u00b5", `\u{3bc}`, "\u03bc").Replace(match[1]))
		}
		return out
	}
	if got := table("TIMES"); !slices.Equal(got, sourceTimes) {
		t.Errorf("times %q, want %q", sourceTimes, got)
	}
	if got := table("BYTES"); !slices.Equal(got, sourceBytes) {
		t.Errorf("sizes %q, want %q", sourceBytes, got)
	}
}
