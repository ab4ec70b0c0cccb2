package clitest

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
)

// Hostile is a name, reason or warning as the untrusted writers of ledgers and histories could choose it.
const Hostile = "a\x1b[2J\x1b]0;b\a\u009bc\rd\u202ee\nfake"

// HostileKey returns the key of a series with hostile in each field.
func HostileKey() series.Key {
	return series.Key{Project: Hostile, Benchmark: Hostile, Point: Hostile, Metric: Hostile, Statistic: Hostile}
}

// CheckPrintable fails the test if print writes control characters, invalid UTF-8, or a line break of Hostile. Logs may have such line
// breaks.
func CheckPrintable(t *testing.T, print func(io.Writer) error, logs bool) {
	t.Helper()
	var out bytes.Buffer
	if err := print(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `a\x1b[2J`) {
		t.Errorf("output lacks the escaped form of %q:\n%q", Hostile, out.String())
	}
	if !logs && strings.Contains(out.String(), "\nfake") {
		t.Errorf("output has an unescaped line break from %q:\n%q", Hostile, out.String())
	}
	if !utf8.ValidString(out.String()) {
		t.Errorf("output is not valid UTF-8:\n%q", out.String())
	}
	for _, r := range out.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("output has the unprintable character %q:\n%q", r, out.String())
		}
	}
}

// HostileSeries returns a series and a change of it with Hostile in each text.
func HostileSeries(t *testing.T) (*series.Series, change.Change, time.Time) {
	t.Helper()
	when := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	key := HostileKey()
	estimate := series.Estimate{LogRatio: 0.1, SE: 0.01, DF: 5, Blocks: 6}
	found, err := series.Of(key, []series.Record{
		{Kind: series.Measured, ID: Hostile, Schedule: Hostile, Sequence: 1, At: when, Head: Hostile, Anchor: Hostile, Ratio: estimate,
			Predecessor: Hostile, Step: &estimate, Machine: Hostile, Workload: Hostile},
		{Kind: series.Gap, ID: Hostile + "2", Schedule: Hostile, Sequence: 2, At: when, Reason: Hostile},
		{Kind: series.Gap, ID: Hostile + "3", Schedule: Hostile, Sequence: 2, At: when.Add(-time.Hour), Reason: Hostile},
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, HostileChange(when), when
}

// HostileChange returns a change of the series of HostileKey with Hostile in each text.
func HostileChange(when time.Time) change.Change {
	return change.Change{
		ID: Hostile, Project: Hostile, First: 1, From: 1, To: 1, State: change.Confirmed,
		Effects: []change.Effect{{Series: HostileKey().ID(), LogRatio: 0.1}},
		History: []change.Event{{At: when, Who: Hostile, Person: true, Why: Hostile}},
	}
}
