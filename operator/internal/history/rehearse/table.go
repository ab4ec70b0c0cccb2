package rehearse

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/quantity"
)

// PerCentury is how often something happens in a hundred years of nights, with its 95 % limits (Garwood 1936, Biometrika 28:437).
func PerCentury(count, years int) (value, low, high float64) {
	scale := 100 / float64(years)
	if count > 0 {
		low = distuv.ChiSquared{K: 2 * float64(count)}.Quantile(0.025) / 2 * scale
	}
	return float64(count) * scale, low, distuv.ChiSquared{K: 2 * float64(count+1)}.Quantile(0.975) / 2 * scale
}

// MeanDelay is how many runs after the change it is alerted, on average over the changes that are found, the confirming run counted in.
func (y Tally) MeanDelay() float64 {
	if y.Found == 0 {
		return math.NaN()
	}
	return float64(y.Delay) / float64(y.Found)
}

// Table of years in Markdown.
func Table(tallies []Tally) string {
	var out strings.Builder
	out.WriteString("| year | years | false alerts per 100 years | misdated | confirming runs a year | " +
		"changes told within a month | after runs | dates | dates of none |\n")
	out.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, y := range tallies {
		value, low, high := PerCentury(y.False, y.Years)
		found, delay, dates := "-", "-", "-"
		if y.Changes > 0 {
			found, dates = fmt.Sprintf("%d of %d", y.Found, y.Changes), fmt.Sprintf("%d of %d", y.Dates, y.Changes)
			if y.Found > 0 {
				delay = quantity.Decimals(y.MeanDelay(), 2)
			}
		}
		fmt.Fprintf(&out, "| %s | %d | %s | %d | %s | %s | %s | %s | %d of %d |\n", y.Year.Name, y.Years,
			quantity.WithEnds(value, low, high, 2), y.Misdated, quantity.Decimals(float64(y.Confirmations)/float64(y.Years), 1), found, delay, dates,
			y.DatedFalse, y.Dated)
	}
	out.WriteString("\n")
	for _, y := range tallies {
		fmt.Fprintf(&out, "* `%s`: %s.\n", y.Year.Name, y.Year.What)
	}
	return out.String()
}
