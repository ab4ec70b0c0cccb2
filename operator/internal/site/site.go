// Package site writes the history of a project as static pages: no script, nothing from a network, to be opened from a disk or hosted
// anywhere. It reads nothing and decides nothing; the same history gives the same pages.
package site

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/chart"
	"assay.dev/assay/operator/internal/report/html"
)

//go:embed site.css
var css string

//go:embed index.html.tmpl series.html.tmpl
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"day": day, "minute": minute, "count": quantity.Count}).
	ParseFS(files, "index.html.tmpl", "series.html.tmpl"))

// Confidence of the intervals of points.
const Confidence = 0.95

// Names of the files that are always there. Those of series begin with SeriesPrefix.
const (
	IndexName, StyleName, FeedName = "index.html", "style.css", "changes.atom"
	SeriesPrefix                   = "series-"
)

// Options are the settings of a site beyond its history.
type Options struct {
	// Title of the pages.
	Title string
	// Base is the address of the published pages for feeds, or "".
	Base string
	// Commit is the address of a commit, with points.Placeholder in the place of its revision; empty without one.
	Commit string
	// Reports are the addresses of the reports of runs, by the URL of their ledger. They are of a scheme that a browser may follow.
	Reports map[string]string
	// Every is how often a series should have a point, and Now the time at which that is judged; a series is never silent if it is 0.
	Every time.Duration
	Now   time.Time
}

// File of the site.
type File struct {
	Name    string
	Content []byte
}

// Pages are the files of a site: an index, a page for each series, the style sheet and the feeds.
func Pages(all []*series.Series, book change.Book, options Options) ([]File, error) {
	b := builder{options: options, book: book, names: report.NamesOf(all), points: map[string]map[int64]*series.Point{}}
	for _, s := range all {
		of := map[int64]*series.Point{}
		for _, segment := range s.Segments {
			for i := range segment.Points {
				of[segment.Points[i].Sequence] = &segment.Points[i]
			}
		}
		b.points[s.Key.ID()] = of
	}
	out := []File{{StyleName, []byte(html.Style() + css)}}
	add := func(name, template string, shown any) error {
		var page bytes.Buffer
		if err := pages.ExecuteTemplate(&page, template, shown); err != nil {
			return fmt.Errorf("page %s: %w", name, err)
		}
		out = append(out, File{name, []byte(report.Published(report.Visible(page.String())))})
		return nil
	}
	index := &indexPage{Title: options.Title, Feed: FeedName}
	for _, c := range b.shown(nil) {
		if row := b.change(c, ""); c.State.Ended() {
			index.Decided = append(index.Decided, row)
		} else {
			index.Open = append(index.Open, row)
		}
	}
	// Confirmed regressions precede suspected changes and improvements. Each group is ordered from newest to oldest.
	urgency := []string{classes[worse], classes[suspected], classes[better]}
	slices.SortStableFunc(index.Open, func(x, y changeRow) int {
		return cmp.Compare(slices.Index(urgency, x.Class), slices.Index(urgency, y.Class))
	})
	states := map[string]int{}
	for _, s := range all {
		shown := b.series(s)
		index.add(shown)
		states[shown.State]++
		if err := add(shown.File, "series.html.tmpl", shown); err != nil {
			return nil, err
		}
	}
	for _, state := range stateOrder {
		if number := states[state]; number > 0 {
			index.Counts = append(index.Counts, count{classes[state], state, number})
		}
	}
	if err := add(IndexName, "index.html.tmpl", index); err != nil {
		return nil, err
	}
	feed, err := b.feed(all)
	return append(out, File{FeedName, feed}), err
}

type builder struct {
	options Options
	book    change.Book
	names   report.Names
	// points are those of every series by its identity, by run.
	points map[string]map[int64]*series.Point
}

// indexPage shows all series at a glance.
type indexPage struct {
	Title, Feed string
	Benchmarks  []*benchmark
	Counts      []count
	// Open lists the changes that need a decision, and Decided those with one.
	Open, Decided []changeRow
}

type benchmark struct {
	Name   string
	Series []*seriesPage
}

type count struct {
	Class, State string
	Number       int
}

func (p *indexPage) add(s *seriesPage) {
	name := s.Key.Project + " " + s.Key.Benchmark
	at := slices.IndexFunc(p.Benchmarks, func(b *benchmark) bool { return b.Name == name })
	if at < 0 {
		at = len(p.Benchmarks)
		p.Benchmarks = append(p.Benchmarks, &benchmark{Name: name})
	}
	p.Benchmarks[at].Series = append(p.Benchmarks[at].Series, s)
}

// seriesPage shows one series.
type seriesPage struct {
	*series.Series
	Site, File, Measure, State, Class string
	Points                            int
	When, Ratio                       string
	Newest, Anchor                    revision
	Spark, Plot                       template.HTML
	Confidence                        string
	Segments                          []segmentView
	Changes                           []changeRow
	Feed                              string
}

type segmentView struct {
	Class, Because, Machine, Workload string
	Anchor                            revision
	// Unpaired marks values without an anchor, and Dates are their changes, which no run can confirm.
	Unpaired bool
	Dates    []string
	Rows     []pointRow
	Key      template.HTML
}

type pointRow struct {
	*series.Point
	Revision    revision
	Report      template.URL
	Ratio, Step string
	Changed     *changeRow
}

type changeRow struct {
	*change.Change
	State, Class, Since, When, Who, Link string
	Effects                              []effectRow
	Culprits                             []revision
}

// effectRow is the effect of a change on a series. A page does not link to itself.
// effectRow is the effect of a change on a series. Step is its first revision over its predecessor, where that was measured.
type effectRow struct{ Name, File, Says, Step string }

// revision is one as it is shown: in short, with the name of a commit in full where it leads.
type revision struct {
	Name, Short string
	Commit      template.URL
}

func fileOf(identity string) string { return SeriesPrefix + identity + ".html" }

// states of a series, the ones to look at first.
const (
	worse, suspected, silent, better, empty, steady = "worse", "suspected", "silent", "better", "no points", "steady"
)

var (
	stateOrder = []string{worse, suspected, silent, better, empty, steady}
	classes    = map[string]string{worse: "nogo", suspected: "inconclusive", silent: "invalid", better: "go", empty: "none", steady: "none"}
)

// state returns the most urgent open change of a series. Decided changes are closed.
func (b *builder) state(s *series.Series) string {
	if s.Newest() == nil {
		return empty
	}
	states := []string{steady}
	for _, c := range b.shown(s) {
		for _, e := range c.Effects {
			switch {
			case e.Series != s.Key.ID() || c.State.Ended():
			case c.State == change.Suspected:
				states = append(states, suspected)
			case e.Worse:
				states = append(states, worse)
			default:
				states = append(states, better)
			}
		}
	}
	if b.options.Every > 0 && change.Silence(s.Key.String(), s.Last, b.options.Every, b.options.Now) != nil {
		states = append(states, silent)
	}
	return slices.MinFunc(states, func(x, y string) int { return cmp.Compare(slices.Index(stateOrder, x), slices.Index(stateOrder, y)) })
}

// shown are the changes that are shown, the newest first: not those that a run refuted. Of one series, or of all.
func (b *builder) shown(s *series.Series) []*change.Change {
	var out []*change.Change
	for i := range b.book.Changes {
		c := &b.book.Changes[i]
		concerns := s == nil || c.Project == s.Key.Project && c.Concerns(s.Key.ID())
		if concerns && (c.Known() || c.State == change.Suspected) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(x, y *change.Change) int {
		return cmp.Or(y.Latest().At.Compare(x.Latest().At), cmp.Compare(x.ID, y.ID))
	})
	return out
}

func classOf(c *change.Change) string {
	switch {
	case c.State == change.Suspected:
		return classes[suspected]
	case c.State.Ended():
		return classes[steady]
	case c.Regression():
		return classes[worse]
	default:
		return classes[better]
	}
}

// change on a page, which is not linked from itself.
func (b *builder) change(c *change.Change, on string) changeRow {
	last := c.Latest()
	out := changeRow{
		Change: c, State: report.ChangeWord(c), Class: classOf(c), Since: report.ChangeRevisions(c, b.names), When: day(last.At), Who: last.Who,
		Link: "#change-" + c.ID,
	}
	for _, e := range c.Effects {
		row := effectRow{Name: b.names.Series(e.Series), Says: report.Effect(e)}
		if p := b.points[e.Series][c.First]; p != nil && p.Step != nil {
			row.Step = fmt.Sprintf("%s is %s of its predecessor %s", report.ShortRevision(p.Revision), text(*p.Step),
				report.ShortRevision(p.Predecessor))
		}
		if b.names.Has(e.Series) && fileOf(e.Series) != on {
			row.File = fileOf(e.Series)
		}
		out.Effects = append(out.Effects, row)
	}
	for _, name := range c.Culprits {
		out.Culprits = append(out.Culprits, b.revision(name))
	}
	return out
}

func (b *builder) series(s *series.Series) *seriesPage {
	state := b.state(s)
	out := &seriesPage{
		Series: s, Site: b.options.Title, File: fileOf(s.Key.ID()), Measure: measureOf(s.Key), State: state, Class: classes[state],
		Anchor: b.revision(s.Anchor), Confidence: report.Confidence(Confidence), Feed: FeedName,
	}
	plot := chart.Timeline{Title: s.Key.String(), XLabel: "revision, in the order of the runs", Neutral: 1, Y: times}
	at := map[int64]*changeRow{}
	for _, c := range b.shown(s) {
		row := b.change(c, out.File)
		out.Changes = append(out.Changes, row)
		if at[c.First] == nil {
			at[c.First] = &row
		}
		for _, e := range c.Effects {
			if e.Series == s.Key.ID() {
				plot.Marks = append(plot.Marks, chart.Mark{
					At: float64(c.First) - 0.5, Label: row.State + ", " + report.Effect(e), Class: row.Class, Link: row.Link,
				})
			}
		}
	}
	for i, segment := range s.Segments {
		view := segmentView{
			Class: chart.Class(i), Key: chart.Legend(i), Anchor: b.revision(segment.Anchor), Because: sentence(segment.Because),
			Machine: segment.Machine, Workload: segment.Workload, Unpaired: segment.Unpaired,
		}
		stretch := chart.Stretch{Label: segment.Because}
		for j := range segment.Points {
			p := &segment.Points[j]
			row := b.row(p, at[p.Sequence])
			view.Rows = append(view.Rows, row)
			ratio, low, high := Interval(p.Ratio)
			again := ""
			if p.Again {
				again = ", measured again"
			}
			stretch.Points = append(stretch.Points, chart.Point{
				X: float64(p.Sequence), Y: ratio, Low: &low, High: &high, Link: string(row.Report), Again: p.Again,
				Title: fmt.Sprintf("run %d, %s%s: %s of %s", p.Sequence, report.ShortRevision(p.Revision), again, row.Ratio,
					report.ShortRevision(segment.Anchor)),
			})
			out.Newest, out.When, out.Ratio = row.Revision, day(p.At), row.Ratio
		}
		if segment.Unpaired {
			for _, d := range watch.Dates(&segment) {
				view.Dates = append(view.Dates, fmt.Sprintf("%s at revision %s (of %s to %s)", times(series.Ratio(d.Shift)),
					report.ShortRevision(segment.Points[d.At].Revision), report.ShortRevision(segment.Points[d.From].Revision),
					report.ShortRevision(segment.Points[d.To].Revision)))
				plot.Marks = append(plot.Marks, chart.Mark{
					At: float64(segment.Points[d.At].Sequence) - 0.5, Label: "dated, " + times(series.Ratio(d.Shift)), Class: classes[suspected],
				})
			}
		}
		// The newest rows are first.
		slices.Reverse(view.Rows)
		out.Points += len(segment.Points)
		plot.Stretches = append(plot.Stretches, stretch)
		out.Segments = append(out.Segments, view)
	}
	slices.Reverse(out.Segments)
	for _, gap := range s.Gaps {
		plot.Gaps = append(plot.Gaps, float64(gap.Sequence))
	}
	plot.XTicks = places(s)
	out.Plot, out.Spark = plot.SVG(), plot.Spark(out.Class)
	return out
}

func (b *builder) row(p *series.Point, changed *changeRow) pointRow {
	out := pointRow{
		Point: p, Revision: b.revision(p.Revision), Ratio: text(p.Ratio), Changed: changed,
		Report: template.URL(b.options.Reports[p.Ledger]), //nolint:gosec // Options promise its scheme.
	}
	if p.Step != nil {
		out.Step = text(*p.Step)
	}
	return out
}

// commit returns the address of a revision. Revisions are untrusted and escaped as a path segment or a query value; "." and ".." are
// rejected. Ranges of revisions have no address.
func (b *builder) commit(revision string) template.URL {
	if b.options.Commit == "" || revision == "" || revision == "." || revision == ".." || strings.ContainsAny(revision, " \t\n") {
		return ""
	}
	address := strings.ReplaceAll(b.options.Commit, points.Placeholder, url.QueryEscape(revision))
	return template.URL(address) //nolint:gosec // Escaped.
}

// Interval of an estimate, with its ratio. From a million degrees of freedom on Student's distribution is the normal one, and of many more
// no quantile is computed.
func Interval(e series.Estimate) (ratio, low, high float64) {
	if e.DF <= 0 { // One value without an anchor has no error.
		ratio = series.Ratio(e.LogRatio)
		return ratio, ratio, ratio
	}
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: min(e.DF, 1e6)}.Quantile((1+Confidence)/2) * e.SE
	return series.Ratio(e.LogRatio), series.Ratio(e.LogRatio - half), series.Ratio(e.LogRatio + half)
}

func text(e series.Estimate) string {
	ratio, low, high := Interval(e)
	if e.DF <= 0 {
		return times(ratio)
	}
	return quantity.Interval(ratio, &low, &high, quantity.Times)
}

func times(v float64) string { return quantity.Short(v, quantity.Times) }

// measureOf formats the parts of a key that distinguish the series of a benchmark.
func measureOf(key series.Key) string {
	parts := []string{key.Metric + "." + key.Statistic, key.Arm, key.Point}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// places are some of the points, with their revisions, as labels of an axis.
func places(s *series.Series) []chart.Tick {
	const labels = 8
	var all []chart.Tick
	for _, segment := range s.Segments {
		for _, p := range segment.Points {
			all = append(all, chart.Tick{At: float64(p.Sequence), Label: tickOf(p.Revision)})
		}
	}
	every := max(1, (len(all)+labels-1)/labels)
	var out []chart.Tick
	for i := range all {
		// Counted from the newest, which always has one.
		if (len(all)-1-i)%every == 0 {
			out = append(out, all[i])
		}
	}
	return out
}

func (b *builder) revision(name string) revision {
	return revision{name, report.ShortRevision(name), b.commit(name)}
}

// sentence begins with a capital letter.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// said is how many characters of a revision have room at an axis.
const said = 10

// tickOf is a revision where there is little room. Names that people give, such as those of releases, differ in their ends.
func tickOf(name string) string {
	if r := []rune(report.ShortRevision(name)); len(r) > said {
		return "…" + string(r[len(r)-said+1:])
	}
	return report.ShortRevision(name)
}

// unknown is shown for the time of an imported value without one.
const unknown = "-"

func day(t time.Time) string {
	if t.Unix() == 0 {
		return unknown
	}
	return t.UTC().Format(time.DateOnly)
}

func minute(t time.Time) string {
	if t.Unix() == 0 {
		return unknown
	}
	return t.UTC().Format("2006-01-02 15:04")
}
