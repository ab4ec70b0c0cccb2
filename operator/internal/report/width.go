package report

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// defaultWidth is the width without a terminal or $COLUMNS, as in logs of pipelines.
const defaultWidth = 120

// minWidth is the narrowest a table is laid out for.
const minWidth = 20

// Width returns the number of columns of a terminal, else $COLUMNS, else 120.
func Width(w io.Writer) int {
	width := defaultWidth
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		width = columns
	}
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			width = columns
		}
	}
	return max(width, minWidth)
}

// Columns formats rows, the first of which is the header, in lines of at most width characters. The first keys cells identify a row. The
// other cells form groups of the size together, such as a value and its ratio, which are never separated. Groups that do not fit side by
// side are printed as further tables, or with one line per cell if a single group is too wide. No cell is lost.
func Columns(rows [][]string, keys, together, width int) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = Printable(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	taken := func(columns []int) int {
		sum := -gap
		for _, i := range columns {
			sum += widths[i] + gap
		}
		return sum
	}
	all := make([]int, len(widths))
	for i := range all {
		all[i] = i
	}
	names, groups := all[:keys], slices.Collect(slices.Chunk(all[keys:], together))
	if len(groups) == 0 {
		groups = [][]int{nil}
	}
	var tables [][]int
	for _, group := range groups {
		if last := len(tables) - 1; last >= 0 && taken(slices.Concat(tables[last], group)) <= width {
			tables[last] = append(tables[last], group...)
			continue
		}
		if taken(slices.Concat(names, group)) > width {
			return records(rows, keys, width)
		}
		tables = append(tables, slices.Concat(names, group))
	}
	var out []string
	for i, columns := range tables {
		if i > 0 {
			out = append(out, "")
		}
		for _, row := range rows {
			var line strings.Builder
			for _, at := range columns {
				line.WriteString(row[at] + strings.Repeat(" ", widths[at]-utf8.RuneCountInString(row[at])+gap))
			}
			out = append(out, strings.TrimRight(line.String(), " "))
		}
	}
	return out
}

// gap is the number of blanks between columns.
const gap = 2

// records prints one line per cell below a line that identifies the row.
func records(rows [][]string, keys, width int) []string {
	var out []string
	for _, row := range rows[1:] {
		var names []string
		for i := range keys {
			names = append(names, rows[0][i]+"="+row[i])
		}
		out = append(out, Wrap(strings.Join(names, "  "), width)...)
		for i := keys; i < len(row); i++ {
			out = append(out, Wrap("  "+rows[0][i]+"  "+row[i], width)...)
		}
	}
	return out
}

// Wrap breaks a line at blanks, or within a word that is longer than a line, and never between a number and its %. Continuation lines are
// indented by two more blanks.
func Wrap(line string, width int) []string {
	rest := []rune(line)
	indent := len(line) - len(strings.TrimLeft(line, " ")) + 2
	// The rest is not copied for every line, because untrusted warnings may have megabytes.
	var before string
	var out []string
	for len(before)+len(rest) > width {
		room := width - len(before)
		cut := room
		for i := room; i > max(0, indent-len(before)); i-- {
			if rest[i] == ' ' && (i+1 == len(rest) || rest[i+1] != '%') {
				cut = i
				break
			}
		}
		out = append(out, strings.TrimRight(before+string(rest[:cut]), " "))
		for rest = rest[cut:]; len(rest) > 0 && rest[0] == ' '; {
			rest = rest[1:]
		}
		before = strings.Repeat(" ", min(indent, width/2))
	}
	return append(out, before+string(rest))
}
