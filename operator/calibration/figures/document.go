package figures

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/quantity"
)

// Measured is a figure with its context.
type Measured struct {
	Figure
	// When and Where are day and machine of the measurement.
	When, Where string
}

const head = "| figure | asked for | measured | blocks | when and where |\n|---|--:|--:|--:|---|\n"

// Publish inserts figures into the table between the lines <!-- figures NAME --> and <!-- /figures NAME --> of a document. Rows of other
// runs and of other machines are unchanged, because figures depend on the machine.
func Publish(document, name string, measured []Measured) (string, error) {
	begin, end := fmt.Sprintf("<!-- figures %s -->\n", name), fmt.Sprintf("<!-- /figures %s -->\n", name)
	before, rest, ok := strings.Cut(document, begin)
	if !ok {
		return "", fmt.Errorf("the document has no line %q", strings.TrimSpace(begin))
	}
	table, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("the document has no line %q after %q", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	rows := slices.Collect(strings.Lines(strings.TrimPrefix(table, head)))
	// An empty table contains a placeholder row.
	rows = slices.DeleteFunc(rows, func(line string) bool { return !strings.HasPrefix(line, "|") })
	for _, figure := range measured {
		at := len(rows)
		for i, row := range rows {
			if !strings.HasPrefix(row, figure.key()) {
				continue
			}
			if at = i + 1; strings.HasSuffix(row, figure.where()) {
				at = i
				rows = slices.Delete(rows, i, i+1)
				break
			}
		}
		rows = slices.Insert(rows, at, figure.row())
	}
	return before + begin + head + strings.Join(rows, "") + end + after, nil
}

// Machine describes the machine of an analysis by the properties that kernel performance depends on most.
func Machine(result *analysis.Analysis) string {
	words := []string{fmt.Sprint(result.Environment["cpuModel"])}
	if family, number := result.Environment["cpuFamily"], result.Environment["cpuModelNumber"]; family != nil && number != nil {
		words[0] += fmt.Sprintf(" (family %v, model %v)", family, number)
	}
	has := strings.Split(fmt.Sprint(result.Environment["isa"]), ",")
	for _, set := range []struct{ feature, name string }{{"avx512f", "AVX-512"}, {"avx2", "AVX2"}, {"asimd", "NEON"}} {
		if slices.Contains(has, set.feature) {
			words = append(words, set.name)
			break
		}
	}
	if slices.Contains(has, "gfni") {
		words = append(words, "GFNI")
	}
	return strings.Join(words, ", ")
}

// key is the prefix of the row of a figure.
func (m Measured) key() string { return "| `" + m.Figure.Figure + "` | " }

// where is its suffix.
func (m Measured) where() string { return ", " + m.Where + " |\n" }

func (m Measured) row() string {
	unit := ""
	if m.Unit != "1" {
		unit = " " + m.Unit
	}
	return fmt.Sprintf("%s%s | %s \\[%s, %s\\]%s | %d | %s%s", m.key(), m.Target, quantity.Digits(m.Value), quantity.Digits(m.Low),
		quantity.Digits(m.High), unit, m.Samples, m.When, m.where())
}
