package experiment

import (
	"regexp"
	"slices"
	"strings"
)

// A metric's unit is free text and determines how its figures are treated: a time comes from a clock with a resolution, is not negative
// and is no longer than its trial; a timeout limits times from above and rates from below. The tables list common names of times and
// rates.

// times are units of time in seconds by their symbols, and timeWords by words in lower case.
var (
	times = map[string]float64{
		"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600,
	}
	timeWords = func() map[string]float64 {
		out := map[string]float64{}
		add := func(scale float64, words ...string) {
			for _, word := range words {
				out[word], out[word+"s"] = scale, scale
			}
		}
		add(1, "sec", "second")
		add(1e-3, "msec", "millisec", "millisecond")
		add(1e-6, "usec", "microsec", "microsecond")
		add(1e-9, "nsec", "nanosec", "nanosecond")
		add(1e-12, "psec", "picosec", "picosecond")
		add(60, "min", "minute")
		add(3600, "hr", "hour")
		add(86400, "day")
		out["millis"], out["micros"], out["nanos"] = 1e-3, 1e-6, 1e-9
		return out
	}()
	// rates are units that name a rate without naming the time, in lower case.
	rates = []string{"hz", "khz", "mhz", "ghz", "rps", "qps", "tps", "fps", "iops", "bps", "kbps", "mbps", "gbps"}
)

// InSeconds returns the length of a unit of time in seconds; false for any other unit.
func InSeconds(unit string) (seconds float64, ok bool) {
	if seconds, ok = times[unit]; ok {
		return seconds, true
	}
	seconds, ok = timeWords[strings.ToLower(unit)]
	return seconds, ok
}

// PerTime reports whether a unit is a rate in time: queries/s, MB/ms, requests per second, rps.
func PerTime(unit string) bool {
	_, per := perUnit(unit)
	_, ok := InSeconds(per)
	return ok || slices.Contains(rates, strings.ToLower(unit))
}

// ByClock reports whether a clock measures metrics of a unit: a time, a time per item, or a rate. Counts and sizes may be exact.
func ByClock(unit string) (is, rate bool) {
	if _, is = InSeconds(unit); is {
		return true, false
	}
	of, per := perUnit(unit)
	if per == "" {
		is = PerTime(unit)
		return is, is
	}
	if is, _ = ByClock(of); is {
		return true, false
	}
	is, _ = ByClock(per)
	return is, is
}

// exact matches units in which figures are counted or computed.
var exact = regexp.MustCompile(`(?i)^(1|%|[kmgt]?i?(b|by|bytes?|bits?)|count|alloc(ation)?|call|cycle|error|event|fault|instruction|item|miss|` +
	`op(eration)?|page|quer(y|ie)|request|row|switch|syscall)?(s|es)?$`)

// Exact reports whether figures in a unit are counted or computed, such as allocations, allocs/op, a size or a share. Any other unit that
// no clock measures may be rounded.
func Exact(unit string) bool {
	of, per := perUnit(unit)
	return !PerTime(unit) && exact.MatchString(of) && exact.MatchString(per)
}

// ClockUnit returns the unit of the clock reading in seconds: the time itself or, for a rate, the time in its denominator; 0 if the unit
// does not specify it.
func ClockUnit(unit string) float64 {
	of, per := perUnit(unit)
	for _, one := range []string{unit, of, per} {
		if seconds, ok := InSeconds(one); ok {
			return seconds
		}
	}
	return 0
}

// perUnit splits a unit at its first "/" or "per".
func perUnit(unit string) (of, per string) {
	for _, between := range []string{"/", " per "} {
		if of, per, ok := strings.Cut(unit, between); ok {
			return strings.TrimSpace(of), strings.TrimSpace(per)
		}
	}
	return unit, ""
}

// timeLike matches common spellings of times and rates, supported or not.
var timeLike = regexp.MustCompile(`(?i)^([mµμunpf]|milli|micro|nano|pico)?(s|secs?|seconds?)$|^(milli|micro|nano|pico)s$|` +
	`^(minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|years?|jiffy|jiffies|ticks?|time|duration|latency)$|` +
	`^[a-z]{0,3}([rqtfb]p[smh]|iops|hz|flops)$|^[kmg]ops$`)

var words = regexp.MustCompile(`\pL+`)

// isUnknownTime reports whether a unit looks like a time or a rate and is not in the tables.
func isUnknownTime(unit string) bool {
	is, _ := ByClock(unit)
	return !is && slices.ContainsFunc(words.FindAllString(unit, -1), timeLike.MatchString)
}

// The units of the figures of other tools that the runner converts, as its table in runner/adapters/src/unit.rs. A test compares them.
var (
	sourceTimes = []string{"s", "sec", "second", "seconds", "ms", "us", "µs", "μs", "ns", "ps", "min", "h"}
	sourceBytes = []string{"B", "By", "byte", "bytes", "bit", "kbit", "Mbit", "Gbit", "kB", "KB", "kBy", "MB", "MBy", "GB", "GBy", "TB", "KiB",
		"KiBy", "MiB", "MiBy", "GiB", "GiBy"}
)

// sourceDimension returns the dimension of a unit as the runner reads it: a time, a size or a count of something, "" for a plain number,
// optionally per second.
func sourceDimension(unit string) (of string, perSecond bool) {
	unit = strings.TrimSpace(unit)
	for _, suffix := range []string{"/op", "/iter"} {
		if rest, ok := strings.CutSuffix(unit, suffix); ok {
			unit = rest
			break
		}
	}
	for _, suffix := range []string{"/s", "/sec"} {
		if rest, ok := strings.CutSuffix(unit, suffix); ok {
			unit, perSecond = rest, true
			break
		}
	}
	switch {
	case slices.Contains(sourceTimes, unit):
		return "time", perSecond
	case slices.Contains(sourceBytes, unit):
		return "size", perSecond
	case unit == "" || unit == "1" || unit == "%":
		return "", perSecond
	}
	return "count of " + unit, perSecond
}

// convertible reports whether the runner converts figures of one unit to another.
func convertible(from, to string) bool {
	one, onePerSecond := sourceDimension(from)
	other, otherPerSecond := sourceDimension(to)
	counts := one != "time" && one != "size" && other != "time" && other != "size"
	return onePerSecond == otherPerSecond && (one == other || counts && (one == "" || other == ""))
}

// sourceUnits lists the units whose figures the runner converts to a unit.
func sourceUnits(to string) string {
	of, perSecond := sourceDimension(to)
	names := []string{to}
	switch of {
	case "time":
		names = sourceTimes
	case "size":
		names = sourceBytes
	}
	names = slices.Clone(names)
	if perSecond {
		for i, name := range names {
			if _, rate := sourceDimension(name); !rate {
				names[i] = name + "/s"
			}
		}
	}
	return strings.Join(names, ", ")
}
