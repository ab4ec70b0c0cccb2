package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	// Embedded, because not every image of the operator contains the IANA database.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// Times generates the due times of a schedule.
type Times struct{ cron *cron.SpecSchedule }

// ParseTimes parses a cron expression for a time zone; empty means UTC.
func ParseTimes(expression, zone string) (Times, error) {
	zone = cmp.Or(zone, "UTC")
	// "Local" would depend on the operator's machine.
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		return Times{}, fmt.Errorf("invalid spec.timeZone %q: use a name of the IANA database such as Europe/Berlin, or UTC", zone)
	}
	switch {
	// The parser accepts time zones in the expression, and panics if no blank follows TZ=.
	case strings.Contains(expression, "TZ="):
		return Times{}, fmt.Errorf("invalid spec.schedule %q: set the time zone in spec.timeZone", expression)
	case strings.Contains(expression, "@every"):
		return Times{}, fmt.Errorf("invalid spec.schedule %q: @every has no fixed due times; use */30 * * * * for every half "+
			"hour", expression)
	}
	parsed, err := cron.ParseStandard("CRON_TZ=" + zone + " " + expression)
	if err != nil {
		return Times{}, fmt.Errorf("invalid spec.schedule %q: %w; use five fields such as 0 2 * * *, or @daily", expression, err)
	}
	of, ok := parsed.(*cron.SpecSchedule)
	// The parser accepts a field that consists of commas only.
	if !ok || of.Minute == 0 || of.Hour == 0 || of.Dom == 0 || of.Month == 0 || of.Dow == 0 {
		return Times{}, fmt.Errorf("invalid spec.schedule %q: a field has no value; use * for all values", expression)
	}
	return Times{of}, nil
}

// Next returns the first due time after a time, or an error if no date matches, as for 0 0 30 2 *.
//
// It does not use the parser's method, which returns the wrong day or skips it if a clock change moves 0:00 to 1:00.
func (t Times) Next(after time.Time) (time.Time, error) {
	at := after.In(t.cron.Location).Truncate(time.Minute).Add(time.Minute)
	for end := at.AddDate(5, 0, 0); at.Before(end); {
		nextHour := at.Add(time.Duration(60-at.Minute()) * time.Minute)
		switch {
		case !t.onDay(at):
			// Advance to the end of the day, which has 23 or 25 hours at a clock change.
			if later := at.Add(22 * time.Hour); later.Day() == at.Day() {
				at = later
			} else {
				at = nextHour
			}
		case !has(t.cron.Hour, at.Hour()):
			at = nextHour
		case !has(t.cron.Minute, at.Minute()):
			at = at.Add(time.Minute)
		default:
			return at.UTC(), nil
		}
	}
	return time.Time{}, errors.New("it matches no time within the next years")
}

// onDay reports whether the expression matches a day. If day of month or day of week is a star, both must match, otherwise one suffices
// (crontab(5)).
func (t Times) onDay(at time.Time) bool {
	const star = 63
	month, day, weekday := has(t.cron.Month, int(at.Month())), has(t.cron.Dom, at.Day()), has(t.cron.Dow, int(at.Weekday()))
	if has(t.cron.Dom, star) || has(t.cron.Dow, star) {
		return month && day && weekday
	}
	return month && (day || weekday)
}

func has(values uint64, value int) bool { return values>>value&1 != 0 }

// mostCounted bounds the due times that are counted individually to those of a week with one per minute.
const mostCounted = 7 * 24 * 60

// Passed returns the newest due time in the interval (after, until], or zero, and the number of due times there, up to mostCounted.
func (t Times) Passed(after, until time.Time) (newest time.Time, count int64) {
	for at, err := t.Next(after); err == nil && !at.After(until); at, err = t.Next(at) {
		if count == mostCounted {
			return t.newest(until), count
		}
		newest, count = at, count+1
	}
	return newest, count
}

// newest returns the last due time up to until. The caller ensures that there is one.
func (t Times) newest(until time.Time) time.Time {
	for back := time.Minute; ; back *= 2 {
		var newest time.Time
		for at, err := t.Next(until.Add(-back)); err == nil && !at.After(until); at, err = t.Next(at) {
			newest = at
		}
		if !newest.IsZero() {
			return newest
		}
	}
}

// Longest returns the longest interval between consecutive due times within a week from now, such as a weekend. For less frequent
// schedules it is the interval between the next two.
func (t Times) Longest(now time.Time) (time.Duration, error) {
	const week = 7 * 24 * time.Hour
	before, err := t.Next(now)
	if err != nil {
		return 0, err
	}
	longest := time.Duration(0)
	for longest == 0 || before.Before(now.Add(week)) {
		next, err := t.Next(before)
		if err != nil {
			return 0, err
		}
		longest, before = max(longest, next.Sub(before)), next
	}
	return longest, nil
}
