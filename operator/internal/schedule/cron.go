package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	// Of every image that the operator is put into: not all have the IANA database.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// Times are the due times of a schedule.
type Times struct{ cron *cron.SpecSchedule }

// ParseTimes reads an expression of cron in a time zone; none is UTC.
func ParseTimes(expression, zone string) (Times, error) {
	zone = cmp.Or(zone, "UTC")
	// Local is that of whatever machine the operator happens to be on.
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		return Times{}, fmt.Errorf("invalid spec.timeZone %q: write a name of the IANA database such as Europe/Berlin, or UTC", zone)
	}
	switch {
	// The parser would take both from the expression, the first one with a panic where no blank follows.
	case strings.Contains(expression, "TZ="):
		return Times{}, fmt.Errorf("invalid spec.schedule %q: write the time zone into spec.timeZone", expression)
	case strings.Contains(expression, "@every"):
		return Times{}, fmt.Errorf("invalid spec.schedule %q: @every has no times of its own; write */30 * * * * for every half hour", expression)
	}
	parsed, err := cron.ParseStandard("CRON_TZ=" + zone + " " + expression)
	if err != nil {
		return Times{}, fmt.Errorf("invalid spec.schedule %q: %w; write five fields such as 0 2 * * *, or @daily", expression, err)
	}
	of, ok := parsed.(*cron.SpecSchedule)
	// The parser takes commas alone for a field.
	if !ok || of.Minute == 0 || of.Hour == 0 || of.Dom == 0 || of.Month == 0 || of.Dow == 0 {
		return Times{}, fmt.Errorf("invalid spec.schedule %q: a field names no value; write * for all of them", expression)
	}
	return Times{of}, nil
}

// Next is the first due time after another one. An expression such as 0 0 30 2 * has none.
//
// It is not the parser's own: where a clock is put from 0:00 to 1:00, that one takes the day for the one before, or leaves it out.
func (t Times) Next(after time.Time) (time.Time, error) {
	at := after.In(t.cron.Location).Truncate(time.Minute).Add(time.Minute)
	for end := at.AddDate(5, 0, 0); at.Before(end); {
		nextHour := at.Add(time.Duration(60-at.Minute()) * time.Minute)
		switch {
		case !t.onDay(at):
			// To the end of the day, of which a change of the clock makes 23 hours or 25.
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
	return time.Time{}, errors.New("no time of the next years fits it")
}

// onDay reports whether a day is one of the schedule's: of the days of the month and of the week, both count where either is a star, and
// else one of them is enough (crontab(5)).
func (t Times) onDay(at time.Time) bool {
	const star = 63
	month, day, weekday := has(t.cron.Month, int(at.Month())), has(t.cron.Dom, at.Day()), has(t.cron.Dow, int(at.Weekday()))
	if has(t.cron.Dom, star) || has(t.cron.Dow, star) {
		return month && day && weekday
	}
	return month && (day || weekday)
}

func has(values uint64, value int) bool { return values>>value&1 != 0 }

// mostCounted bounds how many due times are counted one by one: those of a week, if every minute is one.
const mostCounted = 7 * 24 * 60

// Passed is the newest due time after one moment and until another, and how many there are, up to mostCounted. The zero time is none.
func (t Times) Passed(after, until time.Time) (newest time.Time, count int64) {
	for at, err := t.Next(after); err == nil && !at.After(until); at, err = t.Next(at) {
		if count == mostCounted {
			return t.newest(until), count
		}
		newest, count = at, count+1
	}
	return newest, count
}

// newest is the last due time until a moment that is known to have one before it.
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

// Longest is the longest time between two due times that follow each other within a week of a moment, such as that over a weekend; of a
// schedule that is due less often, the time between its next two.
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
