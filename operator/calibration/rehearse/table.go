package rehearse

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/quantity"
)

// PerCentury returns a rate per hundred years of nights, with its 95 % limits (Garwood 1936, Biometrika 28:437).
func PerCentury(count, years int) (value, low, high float64) {
	scale := 100 / float64(years)
	if count > 0 {
		low = distuv.ChiSquared{K: 2 * float64(count)}.Quantile(0.025) / 2 * scale
	}
	return float64(count) * scale, low, distuv.ChiSquared{K: 2 * float64(count+1)}.Quantile(0.975) / 2 * scale
}

// RatioOfRates returns the ratio of two rates, counted over different numbers of years, with its 95 % limits. Given the total, the first
// count is binomial (Przyborowski, Wilenski 1940, Biometrika 31:313), with exact limits (Clopper, Pearson 1934, Biometrika 26:404). It is
// undefined if the second count is 0.
func RatioOfRates(count, years, other, otherYears int) (value, low, high float64, ok bool) {
	if other == 0 || years == 0 {
		return 0, 0, 0, false
	}
	scale := float64(otherYears) / float64(years)
	of := func(share float64) float64 { return share / (1 - share) * scale }
	if count > 0 {
		low = of(distuv.Beta{Alpha: float64(count), Beta: float64(other + 1)}.Quantile(0.025))
	}
	return float64(count) / float64(other) * scale, low, of(distuv.Beta{Alpha: float64(count + 1), Beta: float64(other)}.Quantile(0.975)), true
}

// Mean of values that were counted one by one.
type Mean struct {
	Of           int
	Sum, Squares float64
}

// Add adds a value.
func (m *Mean) Add(value float64) {
	m.Of, m.Sum, m.Squares = m.Of+1, m.Sum+value, m.Squares+value*value
}

// Limits returns the mean and its 95 % limits (Student 1908, Biometrika 6:1); with fewer than two values the limits are unknown.
func (m Mean) Limits() (value, low, high float64) {
	n := float64(m.Of)
	value = m.Sum / n
	if m.Of < 2 {
		return value, math.Inf(-1), math.Inf(1)
	}
	variance := max(0, m.Squares-n*value*value) / (n - 1)
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * math.Sqrt(variance/n)
	return value, value - half, value + half
}

// Table formats years as a Markdown table.
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
				mean, _, _ := y.Delay.Limits()
				delay = quantity.Decimals(mean, 2)
			}
		}
		fmt.Fprintf(&out, "| %s | %d | %s | %d | %s | %s | %s | %s | %d of %d |\n", y.Year.Name, y.Years,
			quantity.WithEnds(value, low, high, 2), y.Misdated, quantity.Decimals(float64(y.Confirmations)/float64(y.Years), 1), found, delay, dates,
			y.DatedFalse, y.Dated)
	}
	out.WriteString("\n")
	for _, y := range tallies {
		fmt.Fprintf(&out, "* `%s`: %s.\n", y.Year.Name, y.Year.Description)
	}
	return out.String()
}
