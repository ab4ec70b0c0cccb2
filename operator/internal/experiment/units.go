package experiment

import (
	"regexp"
	"slices"
	"strings"
)

// A metric's unit is free text, and yet decides what is known of its figures: a time is read from a clock, which has steps, is never
// negative and no longer than its trial; a timeout bounds times, and rates from the other side. So what people call times and rates is in
// tables here.

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
	// rates are those whose names do not say by which time, in lower case.
	rates = []string{"hz", "khz", "mhz", "ghz", "rps", "qps", "tps", "fps", "iops", "bps", "kbps", "mbps", "gbps"}
)

// InSeconds is how many seconds a unit of time has; false for a unit of anything else.
func InSeconds(unit string) (seconds float64, ok bool) {
	if seconds, ok = times[unit]; ok {
		return seconds, true
	}
	seconds, ok = timeWords[strings.ToLower(unit)]
	return seconds, ok
}

// PerTime reports whether a unit is of a rate in time: queries/s, MB/ms, requests per second, rps.
func PerTime(unit string) bool {
	_, per := perUnit(unit)
	_, ok := InSeconds(per)
	return ok || slices.Contains(rates, strings.ToLower(unit))
}

// ByClock reports whether a metric of a unit is measured by a clock: a time, also for each of something, or a rate that is made of one.
// Counts and sizes are not, and may be known without any error.
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

// ClockUnit is how many seconds a unit of what a clock reads has, of a rate that of the time which it is per; 0 where the unit does not
// say.
func ClockUnit(unit string) float64 {
	of, per := perUnit(unit)
	for _, one := range []string{unit, of, per} {
		if seconds, ok := InSeconds(one); ok {
			return seconds
		}
	}
	return 0
}

// perUnit takes a unit apart at its first "/" or "per".
func perUnit(unit string) (of, per string) {
	for _, between := range []string{"/", " per "} {
		if of, per, ok := strings.Cut(unit, between); ok {
			return strings.TrimSpace(of), strings.TrimSpace(per)
		}
	}
	return unit, ""
}

// timeLike are words in which people write times and rates, known or not.
var timeLike = regexp.MustCompile(`(?i)^([mµμunpf]|milli|micro|nano|pico)?(s|secs?|seconds?)$|^(milli|micro|nano|pico)s$|` +
	`^(minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|years?|jiffy|jiffies|ticks?|time|duration|latency)$|` +
	`^[a-z]{0,3}([rqtfb]p[smh]|iops|hz|flops)$|^[kmg]ops$`)

var words = regexp.MustCompile(`\pL+`)

// isUnknownTime reports whether a unit looks like a time or a rate and is none that is known.
func isUnknownTime(unit string) bool {
	is, _ := ByClock(unit)
	return !is && slices.ContainsFunc(words.FindAllString(unit, -1), timeLike.MatchString)
}
