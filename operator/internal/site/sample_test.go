package site

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
)

var sampleFolder = flag.String("sample", "", "folder that the pages of the sample are written to, for a browser")

// commit is the name of a commit, as git writes it.
func commit(i int) string {
	digest := sha256.Sum256(fmt.Append(nil, "revision ", i))
	return hex.EncodeToString(digest[:20])
}

// invented is a series with the given levels; edit may make something else of a record.
func invented(t *testing.T, k series.Key, nights int, level func(night int) float64, edit func(*series.Record)) *series.Series {
	t.Helper()
	digest := sha256.Sum256([]byte(k.ID()))
	random := rand.New(rand.NewChaCha8(digest))
	var records []series.Record
	predecessor := ""
	for i := 1; i <= nights; i++ {
		se := 0.003 + 0.002*random.Float64()
		ratio := series.Estimate{LogRatio: math.Log(level(i)) + se*random.NormFloat64(), SE: se, DF: 9, Blocks: 10}
		r := series.Record{
			Kind: series.Measured, ID: fmt.Sprintf("nightly-%d", i), Analysis: 1, Schedule: "nightly", Sequence: int64(i),
			At: start.AddDate(0, 0, i), Head: commit(i), Anchor: commit(0), Ratio: ratio, Machine: "sha256:4ac7", Workload: "sha256:90b1",
			Ledger: fmt.Sprintf("s3://assay/nightly-%d", i),
		}
		if predecessor != "" {
			step := series.Estimate{LogRatio: math.Log(level(i)/level(i-1)) + se*random.NormFloat64(), SE: se, DF: 9, Blocks: 10}
			r.Predecessor, r.Step = predecessor, &step
		}
		if edit != nil {
			edit(&r)
		}
		if r.Kind == series.Measured {
			predecessor = r.Head
		}
		records = append(records, r)
	}
	s, err := series.Of(k, records)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// from is 1 before a night, and a ratio since.
func from(since int, ratio float64) func(int) float64 {
	return func(night int) float64 {
		if night >= since {
			return ratio
		}
		return 1
	}
}

// sampleHistory is an invented history of a project in which a page has everything that it can have.
func sampleHistory(t *testing.T) ([]*series.Series, change.Book, Options) {
	t.Helper()
	of := func(benchmark, metric, statistic string) series.Key {
		return series.Key{Project: "storage", Benchmark: benchmark, Metric: metric, Statistic: statistic}
	}
	const nights = 150
	lookup, tail, scan := of("lookup", "latency", "median"), of("lookup", "latency", "p99"), of("scan", "throughput", "mean")
	memory, insert := of("scan", "process.peakMemory", "max"), of("insert", "latency", "median")
	load := of("load", "process.wallTime", "median")
	all := []*series.Series{
		invented(t, lookup, nights, from(96, 1.062), func(r *series.Record) {
			if r.Sequence == 120 {
				r.Kind, r.Reason = series.Gap, "the image registry.example.org/storage@sha256:71cd could not be pulled"
			}
		}),
		invented(t, tail, nights, from(96, 1.055), nil),
		invented(t, scan, nights, from(71, 1.18), func(r *series.Record) {
			if r.Sequence > 40 {
				r.Machine = "sha256:e77a"
			}
		}),
		invented(t, memory, nights, from(nights-1, 1.04), nil),
		invented(t, insert, nights-30, func(int) float64 { return 1 }, nil),
		invented(t, load, 1, func(int) float64 { return 1 }, func(r *series.Record) { r.At = start.AddDate(0, 0, nights) }),
		invented(t, of("load", "process.cpuTime", "median"), 0, nil, nil),
	}
	at := func(night, hour int) time.Time {
		return start.AddDate(0, 0, night).Add(time.Duration(hour) * time.Hour)
	}
	effect := func(k series.Key, ratio float64, worse bool) change.Effect {
		return change.Effect{Series: k.ID(), LogRatio: math.Log(ratio), SE: 0.0021, Worse: worse}
	}
	alerted := at(100, 3)
	book := change.Book{Changes: []change.Change{
		{ID: "3f2a9c", Project: "storage", From: 96, First: 96, To: 96, State: change.Located, Alerted: &alerted, Culprits: []string{commit(96)},
			Effects: []change.Effect{effect(lookup, 1.062, true), effect(tail, 1.055, true)},
			History: []change.Event{
				{At: at(99, 1), Who: "nightly", Why: "the newest points differ from those before", To: change.Suspected},
				{At: at(100, 3), Who: "nightly-confirm-1", Why: "6 revisions after over 6 before, in 20 fresh blocks", To: change.Confirmed},
				{At: at(100, 4), Who: "nightly-bisect-1", Why: "4 revisions between the ends", To: change.Locating},
				{At: at(100, 5), Who: "nightly-bisect-1", Why: "over its parent on fresh blocks", To: change.Located},
			},
			Acknowledged: &change.Event{At: at(101, 5), Who: "ada", Person: true, Why: "looking at it"}},
		{ID: "77b0e1", Project: "storage", From: 70, First: 71, To: 72, State: change.Confirmed,
			Effects: []change.Effect{effect(scan, 1.18, false)},
			History: []change.Event{
				{At: at(73, 1), Who: "nightly", Why: "the newest points differ from those before", To: change.Suspected},
				{At: at(74, 3), Who: "nightly-confirm-1", Why: "6 revisions after over 6 before, in 20 fresh blocks", To: change.Confirmed},
			}},
		{ID: "c91d04", Project: "storage", From: nights - 2, First: nights - 1, To: nights, State: change.Suspected,
			Effects: []change.Effect{effect(memory, 1.04, true)},
			History: []change.Event{{At: at(nights, 1), Who: "nightly", Why: "the newest points differ from those before", To: change.Suspected}}},
		{ID: "05aa17", Project: "storage", From: 30, First: 31, To: 31, State: change.Accepted,
			Effects: []change.Effect{effect(insert, 1.01, true)},
			History: []change.Event{
				{At: at(33, 1), Who: "nightly", Why: "the newest points differ from those before", To: change.Suspected},
				{At: at(34, 3), Who: "nightly-confirm-1", Why: "6 revisions after over 6 before, in 20 fresh blocks", To: change.Confirmed},
				{At: at(35, 5), Who: "ada", Person: true, Why: "the price of checksums", To: change.Accepted},
			}},
	}}
	reports := map[string]string{}
	for i := 11; i <= nights; i++ {
		reports[fmt.Sprintf("s3://assay/nightly-%d", i)] = fmt.Sprintf("reports/nightly-%d.html", i)
	}
	return all, book, Options{
		Title: "Benchmarks of storage", Commit: "https://git.example.org/storage/commit/{revision}", Reports: reports, Every: 24 * time.Hour,
		Now: at(nights, 6),
	}
}

// The sample for the browser tests has every element that a page can have.
func TestSample_HasEveryElement(t *testing.T) {
	all, book, options := sampleHistory(t)
	pages := render(t, all, book, options)
	var whole strings.Builder
	// HTML writes some elements without an end.
	endless := regexp.MustCompile(`<(meta|link)\b([^>]*)>`)
	for name, page := range pages {
		whole.WriteString(page)
		if strings.HasSuffix(name, ".html") {
			if err := xml.Unmarshal([]byte(endless.ReplaceAllString(page, "<$1$2/>")), new(struct{ XMLName xml.Name })); err != nil {
				t.Errorf("%s: an element is not closed where it was opened: %v", name, err)
			}
		}
		if *sampleFolder != "" {
			err := cmp.Or(os.MkdirAll(*sampleFolder, 0o755), os.WriteFile(filepath.Join(*sampleFolder, name), []byte(page), 0o644))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, state := range stateOrder {
		if !strings.Contains(pages[IndexName], ">"+state+"</span>") {
			t.Errorf("no series is %s", state)
		}
	}
	// Regressions precede improvements.
	if index := pages[IndexName]; strings.Index(index, "change-3f2a9c") > strings.Index(index, "change-c91d04") ||
		strings.Index(index, "change-c91d04") > strings.Index(index, "change-77b0e1") {
		t.Error("open changes are not in the order of how much they matter")
	}
	for what, mark := range map[string]string{
		"a segment after the first":                         `class="border"`,
		"a run that measured nothing":                       `class="gap"`,
		"a mark of a change":                                `class="flag"`,
		"a culprit that leads somewhere":                    `<a href="https://git.example.org/storage/commit/` + commit(96) + `"`,
		"a commit in short, in full where it is pointed at": `title="` + commit(96) + `">` + commit(96)[:10] + `</a>`,
		"an acknowledgement":                                "acknowledged by ada",
		"a change that is over":                             "Accepted regression",
		"a point with a report":                             ">report</a>",
		"a point without one":                               "<code>s3://assay/nightly-1</code>",
		"a series of one point":                             " 1 point.",
	} {
		if !strings.Contains(whole.String(), mark) {
			t.Errorf("no page has %s: %s", what, mark)
		}
	}
}
