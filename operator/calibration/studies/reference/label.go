package reference

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// found is the meaning of a label.
type found struct {
	cells []Cell
	// file is the file of the cells, below the root.
	file string
	// quoted reports whether the cells are quotations or settings, whose numbers the text repeats.
	quoted bool
	// holds reports whether the label ends in a condition. A condition that does not hold is an error.
	holds bool
	// share reports whether the cells are quotients, differences or a comparison with another arm.
	share bool
}

// ratioColumn matches columns of shares and ratios.
var ratioColumn = regexp.MustCompile(`against|share|speedup`)

var condition = regexp.MustCompile(`^(.*) (below|above|at least|at most|spans) (\S.*)$`)

// resolve finds the cells of a label and checks its condition.
func (l *Library) resolve(page Page, label string) (found, error) {
	out, asked, err := l.lookUp(page, label)
	if err != nil || asked == nil {
		return out, err
	}
	for _, cell := range out.cells {
		if !cell.Numeric || !holds(cell, asked.relation, asked.limit) {
			return found{}, fmt.Errorf("reference %q does not hold: the cell is %s", label, cell.Text)
		}
	}
	return out, nil
}

// asked is the condition that a label ends in.
type asked struct {
	relation string
	limit    float64
}

// lookUp finds the cells of a label, and its condition or nil.
func (l *Library) lookUp(page Page, label string) (found, *asked, error) {
	label = strings.Join(strings.Fields(label), " ")
	name, expression, ok := strings.Cut(label, ": ")
	if !ok {
		return found{}, nil, fmt.Errorf("invalid reference %q: write SOURCE: COLUMN, ROW", label)
	}
	from, err := l.source(page, name)
	if err != nil {
		return found{}, nil, fmt.Errorf("reference %q: %w", label, err)
	}
	out := found{file: from.file, quoted: isQuoted(name)}
	if name == "figures" {
		expression = "measured, " + strings.NewReplacer(" over ", " over measured, ", " minus ", " minus measured, ").Replace(expression)
	}
	var of *asked
	if match := condition.FindStringSubmatch(expression); match != nil {
		limit, ok := number(match[3])
		if !ok {
			return found{}, nil, fmt.Errorf("reference %q: invalid limit %q: write a number", label, match[3])
		}
		expression, out.holds, of = match[1], true, &asked{match[2], limit}
	}
	if out.cells, out.share, err = evaluate(from.table, expression); err != nil {
		return found{}, nil, fmt.Errorf("reference %q: %w", label, err)
	}
	return out, of, nil
}

// Decide reports whether the condition of a label holds for all of its cells. It is not decided if it neither holds for all nor fails for
// one of them over the whole interval. The error is [ErrNoResult] if the run has no result yet.
func (l *Library) Decide(page Page, label string) (holdsForAll, decided bool, err error) {
	out, of, err := l.lookUp(page, label)
	if err != nil {
		return false, false, err
	}
	if of == nil {
		return false, false, fmt.Errorf("reference %q has no condition: end it in at least, at most, below or above, and a number", label)
	}
	opposite := map[string]string{"below": "above", "above": "below"}
	holdsForAll = true
	for _, cell := range out.cells {
		if !cell.Numeric {
			return false, false, fmt.Errorf("reference %q: the cell %q is no number", label, cell.Text)
		}
		if holds(cell, of.relation, of.limit) {
			continue
		}
		holdsForAll = false
		if other, ok := opposite[of.relation]; !ok || holds(cell, other, of.limit) {
			return false, true, nil
		}
	}
	return holdsForAll, holdsForAll, nil
}

// isQuoted reports whether the text of a reference repeats numbers of a source, which is a document, a run's settings or a program.
func isQuoted(source string) bool {
	return filepath.Base(source) == "claims" || source == "code" || source == "flags" || strings.HasSuffix(source, ".yaml")
}

func holds(cell Cell, relation string, limit float64) bool {
	low, high := cell.Value, cell.Value
	if cell.HasInterval {
		low, high = cell.Low, cell.High
	}
	switch relation {
	case "below":
		return high < limit
	case "above":
		return low > limit
	case "at least":
		return cell.Value >= limit
	case "at most":
		return cell.Value <= limit
	default:
		return low <= limit && limit <= high
	}
}

// evaluate computes an expression of a table: a column with conditions, a difference, or a quotient of two of these. The operand after
// "over" or "minus" may omit the column or the row.
func evaluate(table *Table, expression string) (cells []Cell, share bool, err error) {
	for _, operator := range []string{" over ", " minus "} {
		first, second, ok := strings.Cut(expression, operator)
		if !ok {
			continue
		}
		a, _, err := evaluate(table, first)
		if err != nil {
			return nil, false, err
		}
		column, conditions, _ := table.column(strings.Split(first, " minus ")[0])
		if other, _, known := table.column(second); !known {
			second = column + ", " + second
		} else if other == second {
			second = strings.Join(append([]string{other}, conditions...), ", ")
		}
		b, _, err := evaluate(table, second)
		if err != nil {
			return nil, false, err
		}
		if len(b) != 1 && len(b) != len(a) {
			return nil, false, fmt.Errorf("%d cells%sof %d: name one cell, or as many", len(a), operator, len(b))
		}
		for i := range a {
			combined, err := combine(a[i], b[i%len(b)], operator)
			if err != nil {
				return nil, false, err
			}
			cells = append(cells, combined)
		}
		return cells, true, nil
	}
	column, conditions, known := table.column(expression)
	if !known {
		return nil, false, unknownColumn(table, expression)
	}
	cells, err = table.cells(column, conditions)
	share = column == "estimate" || ratioColumn.MatchString(column)
	return cells, share, err
}

func unknownColumn(table *Table, text string) error {
	const most = 40
	columns, more := table.columns, ""
	if len(columns) > most {
		columns, more = columns[:most], fmt.Sprintf("; and %d more", len(columns)-most)
	}
	return fmt.Errorf("no column begins %q: the columns are %s%s", text, strings.Join(columns, "; "), more)
}

func combine(a, b Cell, operator string) (Cell, error) {
	if !a.Numeric || !b.Numeric {
		return Cell{}, fmt.Errorf("%q%s%q: both have to be numbers", a.Text, operator, b.Text)
	}
	scale := 1.0
	if timeUnits[a.Unit] != 0 && timeUnits[b.Unit] != 0 {
		scale = timeUnits[b.Unit] / timeUnits[a.Unit]
	}
	if operator == " minus " {
		value := a.Value - b.Value*scale
		return Cell{Text: fmt.Sprint(value), Value: value, Numeric: true, Unit: a.Unit}, nil
	}
	if b.Value == 0 {
		return Cell{}, fmt.Errorf("the quotient of %q and 0", a.Text)
	}
	value := a.Value / (b.Value * scale)
	return Cell{Text: fmt.Sprint(value), Value: value, Numeric: true}, nil
}

// target is the link of a file from a page.
func target(page Page, file string) (string, error) {
	return filepath.Rel(filepath.Dir(page.Path), file)
}

// Holds checks a label that has to end in a condition.
func (l *Library) Holds(page Page, label string) error {
	of, err := l.resolve(page, label)
	if err == nil && !of.holds {
		err = fmt.Errorf("reference %q has no condition: end it in at least, at most, below, above or spans, and a number", label)
	}
	return err
}

// HasTest reports whether a workload has a test.
func (l *Library) HasTest(name string) bool {
	return strings.Contains(l.workloadTests(), "fn "+name+"(")
}
