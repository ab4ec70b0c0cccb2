// Package pairs writes one page that lists runs and compares any two of them. The reader selects the two; the page works without scripts.
package pairs

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/html"
)

// Limits of a page: it has a comparison for every ordered pair of runs.
const (
	MostRuns = 24
	mostRows = 50_000
)

// Run is one of the runs.
type Run struct {
	compare.Run
	// Where is the ledger as the user named it.
	Where string
	// Began is the time of the first trial; zero if it is unknown.
	Began time.Time
}

// listed is a run in the list.
type listed struct {
	Number                           int
	Name, Where, Began, Machine      string
	Verdict, Class, Headline, Trials string
}

// pair is the comparison of two runs, in this order.
type pair struct {
	A, B         int
	NameA, NameB string
	compare.Comparison
	Rows []row
	// Refused is the reason if the two cannot be compared.
	Refused string
	// Apart counts the rows whose interval of the ratio does not contain 1, and Compared those with such an interval.
	Apart, Compared int
}

// row is one figure of both runs.
type row struct {
	Point, Arm, Metric, A, B, Ratio string
	Apart                           bool
}

//go:embed pairs.html.tmpl
var text string

//go:embed pairs.css
var style string

var page = template.Must(template.New("pairs").Funcs(template.FuncMap{
	"beginning": func() template.HTML { return template.HTML(html.Beginning) },         //nolint:gosec // A constant.
	"style":     func() template.CSS { return template.CSS(html.Style() + style) },     //nolint:gosec // Our own files.
	"shows":     func(a, b int) template.CSS { return template.CSS(selectorOf(a, b)) }, //nolint:gosec // Two numbers.
	"interval":  report.Interval, "count": quantity.Count, "confidence": report.Confidence,
}).Parse(text))

// Page renders the page of two or more runs, in their order.
func Page(runs []Run) ([]byte, error) {
	if len(runs) < 2 || len(runs) > MostRuns {
		return nil, fmt.Errorf("invalid number of runs %d: a page compares 2 to %d", len(runs), MostRuns)
	}
	var shown struct {
		Runs  []listed
		Pairs []pair
	}
	rows := 0
	names := namesOf(runs)
	for i := range runs {
		shown.Runs = append(shown.Runs, list(i, names[i], &runs[i]))
		for j := range runs {
			if i == j {
				continue
			}
			one := compared(i, j, &runs[i], &runs[j])
			one.NameA, one.NameB = names[i], names[j]
			if rows += len(one.Rows); rows > mostRows {
				return nil, fmt.Errorf("the comparisons of %d runs have more than %d rows: name fewer runs", len(runs), mostRows)
			}
			shown.Pairs = append(shown.Pairs, one)
		}
	}
	var out bytes.Buffer
	if err := page.Execute(&out, shown); err != nil {
		return nil, fmt.Errorf("page of %d runs: %w", len(runs), err)
	}
	return []byte(report.Published(report.Visible(out.String()))), nil
}

// selectorOf selects the comparison of two runs, or the note that they are one, while both are selected.
func selectorOf(a, b int) string {
	shown := fmt.Sprintf("#pair-%d-%d", a, b)
	if a == b {
		shown = ".same"
	}
	return fmt.Sprintf("main:has(#a%d:checked):has(#b%d:checked) %s", a, b, shown)
}

// namesOf returns the names of the runs, with their ledgers where several runs have one name.
func namesOf(runs []Run) []string {
	out, times := make([]string, len(runs)), map[string]int{}
	for i := range runs {
		out[i] = compare.Name(runs[i].Analysis)
		times[out[i]]++
	}
	for i := range runs {
		if times[out[i]] > 1 {
			out[i] = fmt.Sprintf("%s in %s", out[i], runs[i].Where)
		}
	}
	return out
}

func list(number int, name string, run *Run) listed {
	found := run.Analysis
	out := listed{
		Number: number, Name: name, Where: run.Where, Machine: report.Machine(found),
		Verdict: string(cmp.Or(found.Verdict, "No verdict")), Class: html.VerdictClass(found.Verdict),
		Headline: report.Headline(run.Experiment, found), Trials: report.Trials(found),
	}
	if !run.Began.IsZero() {
		out.Began = run.Began.UTC().Format("2006-01-02 15:04")
	}
	return out
}

func compared(i, j int, a, b *Run) pair {
	out := pair{A: i, B: j}
	found, err := compare.Runs(a.Run, b.Run)
	if err != nil {
		out.Refused = err.Error()
		return out
	}
	out.Comparison = found
	for _, of := range found.Rows {
		one := row{
			Point: of.Point, Arm: of.Arm, Metric: analysis.StatisticName(of.Metric, of.Statistic),
			A: analysis.Describe(&of.A), B: analysis.Describe(&of.B),
		}
		if ratio := of.Ratio; ratio != nil {
			one.Ratio = analysis.Describe(ratio)
			if ratio.Low != nil && ratio.High != nil {
				out.Compared++
				if one.Apart = *ratio.Low > 1 || *ratio.High < 1; one.Apart {
					out.Apart++
				}
			}
		}
		out.Rows = append(out.Rows, one)
	}
	return out
}
