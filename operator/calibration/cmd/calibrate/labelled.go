package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/calibration/labelled"
	"assay.dev/assay/operator/calibration/rehearse"
	"assay.dev/assay/operator/internal/quantity"
)

// forms are the two forms of a labelled series: with the errors of builds that were measured several times, and without.
var forms = []struct {
	name string
	of   func(labelled.Series) labelled.Series
}{
	{"builds with errors", func(s labelled.Series) labelled.Series { return s }},
	{"bare values", labelled.Series.Bare},
}

// judgeLabelled scores the policy of schedules, and the peer if there is one, on labelled series.
func (o *historyOptions) judgeLabelled(log io.Writer) ([]calibrate.Figure, string, error) {
	all, err := labelled.Hana()
	if o.labelled != "" {
		all, err = labelled.Read(os.DirFS(o.labelled))
	}
	if err != nil {
		return nil, "", err
	}
	started := time.Now()
	totals := make([]labelled.Score, len(forms))
	rows := make([][]string, len(forms))
	for f, form := range forms {
		scores := make([]labelled.Score, len(all))
		rehearse.Parallel(len(all), o.parallel, func(i int) { scores[i] = labelled.Judge(form.of(all[i])) })
		for i := range scores {
			totals[f].Add(scores[i])
		}
		rows[f] = []string{fmt.Sprintf("| Assay, %s | defaults | %s | %s per 100 builds |", form.name, dates(totals[f]),
			quantity.Decimals(perHundred(totals[f]), 2))}
	}
	if peer := o.peerProgram(); peer != nil {
		values := make([][]float64, len(all))
		for i, s := range all {
			for _, b := range s.Builds {
				values[i] = append(values[i], b.Y)
			}
		}
		answers, err := rehearse.AskPeer(peer, values)
		if err != nil {
			return nil, "", err
		}
		for _, a := range answers {
			var total labelled.Score
			for i, s := range all {
				total.Add(s.Compare(a.Dates[i]))
			}
			settings := "p " + a.Threshold
			if a.Threshold == otavaDefault {
				settings += ", its default"
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], fmt.Sprintf("| Otava 0.8.0, bare values | %s | %s | - |", settings, dates(total)))
		}
	}
	fmt.Fprintf(log, "labelled: %d series in %s\n", len(all), quantity.Duration(time.Since(started), time.Millisecond))
	with, bare := totals[0], totals[1]
	count := func(name string, value, of int, note string) calibrate.Figure {
		v := float64(value)
		return calibrate.Figure{Figure: name, Value: v, Unit: "1", Low: v, High: v, Samples: of, Note: note}
	}
	figures := []calibrate.Figure{
		count("history.labelled.found", min(with.Found, bare.Found), with.Changes,
			fmt.Sprintf("changes dated to within one build, of %d; the fewer of the two forms", with.Changes)),
		count("history.labelled.false_dates", with.False, with.Quiet, "dates in series without a change"),
		count("history.labelled.bare_false_dates", bare.False, bare.Quiet, "the same without the errors of builds"),
		{Figure: "history.labelled.suspicions_per_100_builds", Unit: "1", Value: max(perHundred(with), perHundred(bare)),
			Low: min(perHundred(with), perHundred(bare)), High: max(perHundred(with), perHundred(bare)), Samples: with.Builds,
			Note: "builds added one by one; the limits are the two forms, and the value is the larger"},
	}
	table := "| dates of | settings | changes found | other dates in these | series without a change | dates in these | suspicions |\n" +
		"| --- | --- | --: | --: | --: | --: | --: |\n"
	for _, lines := range rows {
		table += strings.Join(lines, "\n") + "\n"
	}
	// The table shows a peer only if it was asked, so without one the last table stays.
	if o.otava == "" || o.labelled != "" {
		table = ""
	}
	return figures, table, nil
}

// otavaDefault is the default of Otava's max_pvalue.
const otavaDefault = "0.001"

// dates formats the counts of dates as cells.
func dates(s labelled.Score) string {
	return fmt.Sprintf("%d of %d | %d | %d | %d", s.Found, s.Changes, s.Extra, s.Quiet, s.False)
}

func perHundred(s labelled.Score) float64 { return 100 * float64(s.Suspicions) / float64(s.Builds) }

// watchUnpaired returns the table of simulated histories of values.
func (o *historyOptions) watchUnpaired(log io.Writer) string {
	var out, described strings.Builder
	fmt.Fprintf(&out, "`calibrate history --years %d --seed %d`.\n\n", o.years, o.seed)
	out.WriteString("| history | series | changes found | other dates in these | dates of none per 100 series | " +
		"suspicions per 100 builds | the same, bare values |\n| --- | --: | --: | --: | --: | --: | --- |\n")
	for _, kind := range rehearse.UnpairedKinds() {
		started := time.Now()
		with, bare := rehearse.WatchUnpaired(kind, o.years, o.parallel, o.seed)
		cells := func(s labelled.Score) []string {
			if s.Changes > 0 {
				return []string{fmt.Sprintf("%d of %d", s.Found, s.Changes), fmt.Sprint(s.Extra), "-", quantity.Decimals(perHundred(s), 2)}
			}
			value, low, high := rehearse.PerCentury(s.False, s.Quiet)
			return []string{"-", "-", quantity.WithEnds(value, low, high, 1), quantity.Decimals(perHundred(s), 2)}
		}
		fmt.Fprintf(&out, "| %s | %d | %s | %s |\n", kind.Name, with.Series, strings.Join(cells(with), " | "), strings.Join(cells(bare), ", "))
		fmt.Fprintf(&described, "* `%s`: %s.\n", kind.Name, kind.Description)
		fmt.Fprintf(log, "unpaired, %s: %d series in %s\n", kind.Name, with.Series, quantity.Duration(time.Since(started), time.Millisecond))
	}
	return out.String() + "\n" + described.String()
}
