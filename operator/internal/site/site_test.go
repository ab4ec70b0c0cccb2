package site

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/report"
)

var start = time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)

// evil has markup, an escape sequence in both encodings and a change of direction.
const evil = `<script>alert("x")</script>&'` + "\x1b[31m\u009b\u202e"

func estimate(ratio float64) series.Estimate {
	return series.Estimate{LogRatio: math.Log(ratio), SE: 0.004, DF: 7, Blocks: 8}
}

// nights is a series of n points, 5 % slower from its middle on.
func nights(t testing.TB, key series.Key, n int, edit func(*series.Record)) *series.Series {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var records []series.Record
	for i := range n {
		ratio := math.Exp(0.003 * random.NormFloat64())
		if i >= n/2 {
			ratio *= 1.05
		}
		r := series.Record{
			Kind: series.Measured, ID: fmt.Sprintf("run-%04d", i+1), Analysis: 1, Schedule: "nightly", Sequence: int64(i + 1),
			At: start.AddDate(0, 0, i), Head: fmt.Sprintf("%08x", 0xabc00000+i), Anchor: "abc00000", Ratio: estimate(ratio),
			Machine: "m1", Workload: "w1", Ledger: fmt.Sprintf("file:///ledgers/%d", i+1),
		}
		if i > 0 {
			step := estimate(1.001)
			r.Predecessor, r.Step = records[i-1].Head, &step
		}
		if edit != nil {
			edit(&r)
		}
		records = append(records, r)
	}
	s, err := series.Of(key, records)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(benchmark, metric string) series.Key {
	return series.Key{Project: "team", Benchmark: benchmark, Metric: metric, Statistic: "median"}
}

// slower is a change in the middle of a series.
func slower(k series.Key, state change.State, n int) change.Change {
	return change.Change{
		ID: "c0ffee", Project: k.Project, From: int64(n / 2), First: int64(n/2 + 1), To: int64(n/2 + 2), State: state,
		Effects: []change.Effect{{Series: k.ID(), LogRatio: math.Log(1.05), SE: 0.004, Worse: true}},
		History: []change.Event{
			{At: start.AddDate(0, 0, n/2+3), Who: "detector", Why: "the level moved", To: change.Suspected},
			{At: start.AddDate(0, 0, n/2+4), Who: "confirm-1", Why: "new over old", To: state},
		},
	}
}

func render(t testing.TB, all []*series.Series, book change.Book, options Options) map[string]string {
	t.Helper()
	files, err := Pages(all, book, options)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		if out[f.Name] != "" {
			t.Errorf("%s is written twice", f.Name)
		}
		out[f.Name] = string(f.Content)
	}
	return out
}

func TestSite_SeriesHasStateOfOpenChange(t *testing.T) {
	k := key("sort", "latency")
	for name, tc := range map[string]struct {
		book    []change.Change
		options Options
		want    string
	}{
		"nothing happened":       {want: steady},
		"a suspicion":            {book: []change.Change{slower(k, change.Suspected, 40)}, want: suspected},
		"a confirmed regression": {book: []change.Change{slower(k, change.Confirmed, 40)}, want: worse},
		"one that is located":    {book: []change.Change{slower(k, change.Located, 40)}, want: worse},
		"an accepted one":        {book: []change.Change{slower(k, change.Accepted, 40)}, want: steady},
		"one of another series":  {book: []change.Change{slower(key("other", "x"), change.Confirmed, 40)}, want: steady},
		"a series without a point for three times a day": {options: Options{Every: 24 * time.Hour, Now: start.AddDate(0, 0, 60)}, want: silent},
		"one whose newest point is of yesterday":         {options: Options{Every: 24 * time.Hour, Now: start.AddDate(0, 0, 40)}, want: steady},
		"a regression goes before silence": {book: []change.Change{slower(k, change.Confirmed, 40)},
			options: Options{Every: 24 * time.Hour, Now: start.AddDate(0, 0, 60)}, want: worse},
	} {
		t.Run(name, func(t *testing.T) {
			s := nights(t, k, 40, nil)
			b := builder{options: tc.options, book: change.Book{Changes: tc.book}}
			if got := b.state(s); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			pages := render(t, []*series.Series{s}, change.Book{Changes: tc.book}, tc.options)
			if badge := `<span class="badge ` + classes[tc.want] + `">` + tc.want + `</span>`; !strings.Contains(pages[IndexName], badge) {
				t.Errorf("the index has no %s:\n%s", badge, pages[IndexName])
			}
		})
	}
	none, err := series.Of(k, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := (&builder{}).state(none); got != empty {
		t.Errorf("a series without points is %q", got)
	}
}

// Any two points are one click from their reports, however many points there are.
func TestSite_PointsLinkToReports(t *testing.T) {
	k := key("sort", "latency")
	s := nights(t, k, 500, nil)
	reports := map[string]string{}
	for _, p := range s.Current().Points {
		reports[p.Ledger] = "reports/" + p.ID + ".html"
	}
	page := render(t, []*series.Series{s}, change.Book{}, Options{Reports: reports})[fileOf(k.ID())]
	for _, p := range s.Current().Points {
		if !strings.Contains(page, `<a href="reports/`+p.ID+`.html">report</a>`) {
			t.Fatalf("run %s leads nowhere", p.ID)
		}
	}
	if newest := s.Newest(); !strings.Contains(page, `class="pick s0" href="reports/`+newest.ID+`.html"`) {
		t.Error("the newest mark in the plot leads nowhere")
	}
	without := render(t, []*series.Series{s}, change.Book{}, Options{})[fileOf(k.ID())]
	if !strings.Contains(without, "<code>500</code>") || strings.Contains(without, `">report</a>`) {
		t.Error("a point without a report does not name its ledger")
	}
}

func TestSite_NoScriptNoNetworkEscapedText(t *testing.T) {
	k := series.Key{Project: evil, Benchmark: evil, Point: evil, Metric: evil, Statistic: evil}
	s := nights(t, k, 20, func(r *series.Record) {
		r.Head, r.Machine, r.Ledger = r.Head+evil, evil, "javascript:alert(1)"
		if r.Sequence > 10 {
			r.Machine = "other" + evil
		}
		if r.Sequence == 5 {
			r.Kind, r.Reason = series.Gap, evil
		}
	})
	c := slower(k, change.Located, 20)
	c.Culprits, c.History[1].Why, c.History[1].Who = []string{evil}, evil, evil
	pages := render(t, []*series.Series{s}, change.Book{Changes: []change.Change{c}}, Options{
		Title: evil, Base: "https://bench.example.org", Commit: "https://git.example.org/commit/{revision}",
	})
	if len(pages) != 4 {
		t.Errorf("%d files", len(pages))
	}
	outward := regexp.MustCompile(`(?i)(src|href)="(https?:|//|javascript:|data:)[^"]*"|@import|url\(`)
	for name, page := range pages {
		if strings.Contains(page, "<script") {
			t.Errorf("%s: text became an element", name)
		}
		if at := strings.IndexFunc(page, func(r rune) bool { return r != '\n' && r != '\t' && !strconv.IsGraphic(r) }); at >= 0 {
			t.Errorf("%s: a character that is not shown: %q", name, page[max(at-40, 0):at+8])
		}
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: something is no number or no address", name)
		}
		if name == FeedName {
			continue
		}
		for _, got := range outward.FindAllString(page, -1) {
			if !strings.HasPrefix(got, `href="https://git.example.org/commit/`) {
				t.Errorf("%s: leads outward: %s", name, got)
			}
		}
	}
}

func TestSite_LinksResolve(t *testing.T) {
	a, b := key("sort", "latency"), key("scan", "throughput")
	c := slower(a, change.Confirmed, 60)
	c.Effects = append(c.Effects, change.Effect{Series: b.ID(), LogRatio: -0.04, SE: 0.004, Worse: true})
	both := []*series.Series{nights(t, a, 60, nil), nights(t, b, 60, nil)}
	pages := render(t, both, change.Book{Changes: []change.Change{c}}, Options{Title: "x"})
	links := regexp.MustCompile(`href="([^"#]*)(#[^"]*)?"`)
	for name, page := range pages {
		for _, got := range links.FindAllStringSubmatch(page, -1) {
			target, fragment := got[1], strings.TrimPrefix(got[2], "#")
			if target == "" {
				target = name
			}
			if pages[target] == "" {
				t.Errorf("%s leads to %q, which is no file of the site", name, target)
			} else if fragment != "" && !strings.Contains(pages[target], `id="`+fragment+`"`) {
				t.Errorf("%s leads to %s#%s, which is not there", name, target, fragment)
			}
		}
	}
	if strings.Count(pages[IndexName], `id="change-c0ffee"`) != 1 {
		t.Error("a change that two series show is not told once")
	}
}

// A book is untrusted. A change without events has a page.
func TestSite_ChangeWithoutEvents(t *testing.T) {
	k := key("sort", "latency")
	s := nights(t, k, 60, nil)
	c := slower(k, change.Confirmed, 30)
	c.History = nil
	if pages := render(t, []*series.Series{s}, change.Book{Changes: []change.Change{c}}, Options{}); pages[FeedName] == "" {
		t.Error("there is no feed")
	}
}

func TestSite_IsDeterministic(t *testing.T) {
	k := key("sort", "latency")
	book := change.Book{Changes: []change.Change{slower(k, change.Confirmed, 30)}}
	first := render(t, []*series.Series{nights(t, k, 30, nil)}, book, Options{Title: "x"})
	if diff := cmp.Diff(first, render(t, []*series.Series{nights(t, k, 30, nil)}, book, Options{Title: "x"})); diff != "" {
		t.Error(diff)
	}
}

// RFC 4287 has requirements of a feed (4.1.1) and of its entries (4.1.2).
func TestFeed_EachChangeOnce(t *testing.T) {
	type entry struct {
		Title   string `xml:"title"`
		ID      string `xml:"id"`
		Updated string `xml:"updated"`
		Link    []struct {
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Content string `xml:"content"`
	}
	read := func(t *testing.T, options Options, changes ...change.Change) (out struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Title   string   `xml:"title"`
		ID      string   `xml:"id"`
		Updated string   `xml:"updated"`
		Author  struct {
			Name string `xml:"name"`
		} `xml:"author"`
		Entries []entry `xml:"entry"`
	}) {
		t.Helper()
		k := key("sort", "latency")
		pages := render(t, []*series.Series{nights(t, k, 30, nil)}, change.Book{Changes: changes}, options)
		if err := xml.NewDecoder(bytes.NewBufferString(pages[FeedName])).Decode(&out); err != nil {
			t.Fatalf("%v:\n%s", err, pages[FeedName])
		}
		return out
	}
	k := key("sort", "latency")
	suspicion := slower(k, change.Suspected, 30)
	refuted := slower(k, change.Invalid, 30)
	refuted.ID = "0ff"
	feed := read(t, Options{Title: "x"}, suspicion, refuted)
	if len(feed.Entries) != 0 || feed.Title == "" || feed.Updated == "" || feed.Author.Name == "" {
		t.Errorf("a suspicion is told, or the feed lacks something: %+v", feed)
	}
	confirmed := slower(k, change.Confirmed, 30)
	first := read(t, Options{Title: "x", Base: "https://bench.example.org/"}, confirmed)
	if len(first.Entries) != 1 || first.Entries[0].Link[0].Href != "https://bench.example.org/index.html#change-c0ffee" ||
		!strings.Contains(first.Entries[0].Title, "Confirmed regression: team sort latency.median worse: 1.05x") {
		t.Fatalf("%+v", first)
	}
	accepted, err := confirmed.Move(change.Event{At: start.AddDate(1, 0, 0), Who: "ada", Person: true, Why: "checksums", To: change.Accepted})
	if err != nil {
		t.Fatal(err)
	}
	second := read(t, Options{Title: "x", Base: "https://elsewhere.example.org"}, accepted)
	if second.Entries[0].ID != first.Entries[0].ID || second.ID != first.ID || second.Entries[0].Updated <= first.Entries[0].Updated ||
		second.Updated != second.Entries[0].Updated {
		t.Errorf("a reader would show it again, or never that it was decided:\n%+v\n%+v", first, second)
	}
}

// Histories are untrusted, and each point names its anchor. A name of a megabyte must not make a page of hundreds of megabytes.
func TestSite_LongAnchorNameIsBounded(t *testing.T) {
	k := key("sort", "latency")
	anchor := strings.Repeat("long", 1<<18)
	all := []*series.Series{nights(t, k, 300, func(r *series.Record) { r.Anchor = anchor })}
	page := render(t, all, change.Book{}, Options{})[fileOf(k.ID())]
	if most := 8 * len(anchor); len(page) > most {
		t.Errorf("%d KiB", len(page)>>10)
	}
}

// A page of a thousand points stays small enough for a phone.
func TestSite_ThousandPoints(t *testing.T) {
	k := key("sort", "latency")
	page := render(t, []*series.Series{nights(t, k, 1000, nil)}, change.Book{}, Options{})[fileOf(k.ID())]
	const most = 512 << 10
	if len(page) > most {
		t.Errorf("%d KiB", len(page)>>10)
	}
}

// A change by two commits, of which one is known by its neighbours only.
func TestSite_InvalidRevisionHasNoLink(t *testing.T) {
	k := key("sort", "latency")
	c := slower(k, change.Located, 30)
	c.Culprits = []string{"feature/4f2a", "one of 3 revisions after 1234 up to 5678"}
	pages := render(t, []*series.Series{nights(t, k, 30, nil)}, change.Book{Changes: []change.Change{c}},
		Options{Commit: "https://git.example.org/commit/{revision}"})
	for _, name := range []string{IndexName, fileOf(k.ID())} {
		for _, part := range []string{
			`<a href="https://git.example.org/commit/feature%2F4f2a">feature/4f2a</a>`, "<code>one of 3 revisions after 1234 up to 5678</code>",
			", by <a", "</a> and <code>",
		} {
			if !strings.Contains(pages[name], part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}

// The recorder of a point chooses the text of its revision. The address of a commit is valid, or there is no link.
func TestSite_RevisionIsOnePathElement(t *testing.T) {
	for _, address := range []string{
		"https://git.example.org/acme/sort/commit/{revision}", "https://git.example.org/commit/?h=main&id={revision}",
	} {
		before, _, _ := strings.Cut(address, "{revision}")
		base, err := url.Parse("https://bench.example.org/pages/index.html")
		if err != nil {
			t.Fatal(err)
		}
		b := builder{options: Options{Commit: address}}
		for _, revision := range []string{
			"4f2a", "feature/4f2a", "..", ".", "../..", "../../../login?next=x", "4f2a&id=other", "4f2a=b", "4f2a#top", "4f2a?x", "a+b", "%2e%2e",
			"v1.2+meta", "ä", "a;b", "@", "//evil.example.org", "a\\b", "\u00a0", "..;",
		} {
			link := string(b.commit(revision))
			if link == "" {
				if revision != "." && revision != ".." {
					t.Errorf("%q has no address", revision)
				}
				continue
			}
			leads, err := base.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			got := leads.Query().Get("id")
			if leads.RawQuery == "" {
				got = strings.TrimPrefix(leads.Path, "/acme/sort/commit/")
			}
			if got != revision || leads.Fragment != "" || !strings.HasPrefix(link, before) || len(leads.Query()) > 2 {
				t.Errorf("%q leads to %s, which is of %q", revision, leads, got)
			}
		}
	}
}

func TestSite_RevisionIsShortened(t *testing.T) {
	full := strings.Repeat("4f2a", 10)
	for what, tc := range map[string]struct{ name, short, tick string }{
		"a commit":                      {full, "4f2a4f2a4f", "4f2a4f2a4f"},
		"a commit by SHA-256":           {strings.Repeat("4f2a", 16), "4f2a4f2a4f", "4f2a4f2a4f"},
		"a commit that is short":        {"4f2a", "4f2a", "4f2a"},
		"a digest that is no commit":    {full + "0", full + "0", "…4f2a4f2a0"},
		"releases differ in their ends": {"release-2026-03-01", "release-2026-03-01", "…026-03-01"},
		"a name that fits":              {"v1.10.0-rc", "v1.10.0-rc", "v1.10.0-rc"},
		"letters count and not bytes":   {"größenmaß1", "größenmaß1", "größenmaß1"},
		"a range in words":              {"one of 3 revisions", "one of 3 revisions", "…revisions"},
		"none":                          {"", "", ""},
	} {
		if report.ShortRevision(tc.name) != tc.short || tickOf(tc.name) != tc.tick {
			t.Errorf("%s: %q and %q, want %q and %q", what, report.ShortRevision(tc.name), tickOf(tc.name), tc.short, tc.tick)
		}
	}
}

// Texts of records and of people may name ledgers in folders. No published page does.
func TestSite_NamesNoFileOfThisMachine(t *testing.T) {
	const local = `file:///home/ada/secret/a%20b&c="x"/point-3.tar.zst`
	k := key("sort", "latency")
	s := nights(t, k, 40, func(r *series.Record) {
		r.Ledger, r.Machine = local, local
		if r.Sequence == 7 {
			r.Kind, r.Reason = series.Gap, "the ledger "+local+" is unreadable"
		}
	})
	s.Problems = append(s.Problems, series.Problem{ID: local, What: local})
	changed := slower(k, change.Confirmed, 40)
	changed.History[1].Who, changed.History[1].Why = local, "as "+local+", says"
	changed.Acknowledged = &change.Event{Who: local, Why: local}
	for name, page := range render(t, []*series.Series{s}, change.Book{Changes: []change.Change{changed}}, Options{Title: local}) {
		if at := strings.Index(strings.ToLower(page), "file:/"); at >= 0 || strings.Contains(page, "/home/ada") {
			t.Errorf("%s has %s", name, page[max(0, at):min(len(page), max(0, at)+200)])
		}
	}
}

// The revision that changed shows its ratio to its predecessor, and a change names revisions instead of runs.
func TestSite_ChangeNamesRevisionsAndTheStep(t *testing.T) {
	k := key("sort", "latency")
	s := nights(t, k, 40, nil)
	pages := render(t, []*series.Series{s}, change.Book{Changes: []change.Change{slower(k, change.Confirmed, 40)}}, Options{})
	for name, says := range map[string]string{
		IndexName:      "Since revision abc00014 (of abc00013 to abc00015)",
		FeedName:       "with revision abc00014 (of abc00013 to abc00015)",
		fileOf(k.ID()): "abc00014 is 1.001x [0.9916, 1.011] of its predecessor abc00013",
	} {
		if !strings.Contains(pages[name], says) {
			t.Errorf("%s lacks %q", name, says)
		}
	}
}

// A revision that is measured again is marked in the table and in the plot.
func TestSite_RepeatedRevisionIsMarked(t *testing.T) {
	k := key("sort", "latency")
	page := render(t, []*series.Series{nights(t, k, 40, func(r *series.Record) {
		if r.Sequence == 21 {
			r.Head = "abc00013"
		}
	})}, change.Book{}, Options{})[fileOf(k.ID())]
	if strings.Count(page, "(again)") != 1 || strings.Count(page, "mark again s0") != 1 ||
		!strings.Contains(page, "run 21, abc00013, measured again") {
		t.Error("the point of run 21 is not marked as measured again")
	}
}

// Imported values are marked, a single value has no interval, and their changes are dated.
func TestSite_UnpairedValuesAreMarked(t *testing.T) {
	k := key("imported", "value")
	s := nights(t, k, 40, func(r *series.Record) {
		level := r.Ratio.LogRatio
		*r = series.Record{
			Kind: series.Unpaired, ID: r.ID, Analysis: 1, Schedule: "import", Sequence: r.Sequence, At: time.Unix(0, 0).UTC(), Head: r.Head,
			Machine: "unknown", Workload: "imported", Ratio: series.Estimate{LogRatio: 3 + level, Blocks: 1},
		}
	})
	page := render(t, []*series.Series{s}, change.Book{}, Options{})[fileOf(k.ID())]
	for _, says := range []string{`>unpaired</span>`, "Dated: the level changed by 1.05", "at revision abc00014", "<td>1x</td>"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page lacks %q", says)
		}
	}
	if strings.Contains(page, "1970-01-01") || strings.Contains(page, "NaN") {
		t.Error("the page has a time or a number that is unknown")
	}
}
