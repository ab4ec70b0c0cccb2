package reference

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Cell is a value of a table.
type Cell struct {
	// Text is the cell as written.
	Text string
	// Value is its number; Numeric reports whether it has one.
	Value   float64
	Numeric bool
	// Low and High are its interval; HasInterval reports whether it has one.
	Low, High   float64
	HasInterval bool
	// Unit is ns, us, ms, s, %, or empty.
	Unit string
}

// Table is a table of a run.
type Table struct {
	columns []string
	rows    []map[string]Cell
}

var (
	unitOfColumn = regexp.MustCompile(`\((ns|us|ms|s)\)|^(ns|us|ms)(?: per |/)|\b(ns|us|ms)$`)
	numeral      = regexp.MustCompile(`^-?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?`)
	unitOnly     = regexp.MustCompile(`^\[|^x? ?\S+$`)
	confidence   = regexp.MustCompile(`\[[^\]]*%\]`)
	escaped      = strings.NewReplacer(`\[`, "[", `\]`, "]", "`", "")
	bracketed    = regexp.MustCompile(`\s*\[(-?[\d.e+-]+), (-?[\d.e+-]+)\]`)
)

// timeUnits are the lengths of units of time in seconds.
var timeUnits = map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1}

func unitOf(column string) string {
	if column == "share of ceiling" || column == "share" {
		return "%"
	}
	match := unitOfColumn.FindStringSubmatch(column)
	if match == nil {
		return ""
	}
	return cmp.Or(match[1], match[2], match[3])
}

// number parses a number as pages and tables write it.
func number(text string) (float64, bool) {
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	return value, err == nil
}

// parseCell parses a cell such as "0.9921x \[0.9412, 1.046\]".
func parseCell(text, unit string) Cell {
	text = escaped.Replace(strings.TrimSpace(text))
	cell := Cell{Text: text, Unit: unit}
	found := numeral.FindString(text)
	if found == "" {
		return cell
	}
	rest := strings.TrimSpace(text[len(found):])
	if match := bracketed.FindStringSubmatch(text); match != nil {
		cell.Low, cell.HasInterval = number(match[1])
		cell.High, _ = number(match[2])
		rest = strings.TrimSpace(strings.Replace(text[len(found):], match[0], "", 1))
	}
	switch {
	case rest == "" || rest == "x":
	case rest == "%" || timeUnits[rest] != 0:
		cell.Unit = rest
	case unitOnly.MatchString(rest):
	default:
		return cell // A text that begins with a number.
	}
	cell.Value, cell.Numeric = number(found)
	return cell
}

// readCSV reads a table that assay results wrote: a column and its limits are NAME, "NAME low" and "NAME high".
func readCSV(raw []byte) (*Table, error) {
	records, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading a table: %w", err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("reading a table: it has no header")
	}
	out := &Table{}
	header := records[0]
	isLimit := func(name string) bool {
		base, low := strings.CutSuffix(name, " low")
		if !low {
			base, low = strings.CutSuffix(name, " high")
		}
		return low && slices.Contains(header, base)
	}
	for _, name := range header {
		if !isLimit(name) {
			out.columns = append(out.columns, name)
		}
	}
	for _, record := range records[1:] {
		row, limits := map[string]Cell{}, map[string]string{}
		for i, text := range record {
			if isLimit(header[i]) {
				limits[header[i]] = text
			} else {
				row[header[i]] = parseCell(text, unitOf(header[i]))
			}
		}
		for name, cell := range row {
			low, hasLow := number(limits[name+" low"])
			high, hasHigh := number(limits[name+" high"])
			cell.Low, cell.High, cell.HasInterval = low, high, hasLow && hasHigh
			row[name] = cell
		}
		out.rows = append(out.rows, row)
	}
	return out, nil
}

// readMarkdown reads the first table below each heading of a page, by the headings in lower case.
func readMarkdown(page string) map[string]*Table {
	out := map[string]*Table{}
	heading, further := "", false
	var columns []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			heading, columns = strings.ToLower(strings.TrimLeft(line, "# ")), nil
		case !strings.HasPrefix(line, "|"):
			columns = nil
		case columns == nil:
			for _, name := range cellsOf(line) {
				columns = append(columns, strings.TrimSpace(confidence.ReplaceAllString(escaped.Replace(name), "")))
			}
			if further = out[heading] != nil; !further {
				out[heading] = &Table{columns: columns}
			}
		case further || strings.Trim(line, "|-: ") == "":
		default:
			row := map[string]Cell{}
			for i, text := range cellsOf(line) {
				if i < len(columns) {
					row[columns[i]] = parseCell(text, unitOf(columns[i]))
				}
			}
			out[heading].rows = append(out[heading].rows, row)
		}
	}
	return out
}

// cellsOf splits a row of a table of Markdown.
func cellsOf(line string) []string {
	var out []string
	for _, cell := range strings.Split(strings.Trim(line, "|"), " | ") {
		out = append(out, strings.TrimSpace(cell))
	}
	return out
}

// column returns the column that a text begins with, and the conditions after it.
func (t *Table) column(text string) (name string, conditions []string, ok bool) {
	for _, candidate := range t.columns {
		rest, found := strings.CutPrefix(text, candidate)
		if found && len(candidate) > len(name) && (rest == "" || strings.HasPrefix(rest, ", ")) {
			name, ok, conditions = candidate, true, nil
			if rest != "" {
				conditions = strings.Split(rest[2:], ", ")
			}
		}
	}
	return name, conditions, ok
}

// cells returns the cells of a column in the rows that meet all conditions, in the order of the alternatives of a condition, or of the
// table.
func (t *Table) cells(column string, conditions []string) ([]Cell, error) {
	rows := slices.Clone(t.rows)
	for _, condition := range conditions {
		key, values, named := strings.Cut(condition, "=")
		if !named || !slices.Contains(t.columns, key) {
			key, values = "", condition
		}
		var kept []map[string]Cell
		for value := range strings.SplitSeq(values, "|") {
			before := len(kept)
			for _, row := range rows {
				if t.has(row, key, value) {
					kept = append(kept, row)
				}
			}
			if len(kept) == before {
				return nil, fmt.Errorf("no row has %q", value)
			}
		}
		rows = kept
	}
	var out []Cell
	for _, row := range rows {
		if row[column].Text != "" {
			out = append(out, row[column])
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("column %q is empty in the rows with %q", column, conditions)
	}
	return out, nil
}

func (t *Table) has(row map[string]Cell, key, value string) bool {
	for _, name := range t.columns {
		text := strings.TrimSuffix(row[name].Text, " (advisory)")
		if (key == "" || key == name) && (text == value || name == "when and where" && strings.Contains(text, value)) {
			return true
		}
	}
	return false
}
