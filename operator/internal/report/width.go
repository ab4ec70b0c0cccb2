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

// usualWidth is taken where there is neither a terminal nor $COLUMNS: the logs of pipelines show as much in a line.
const usualWidth = 120

// leastWidth is the narrowest a table is laid out for.
const leastWidth = 20

// Width is how many columns a writer has: those of its terminal, else of $COLUMNS, else 120.
func Width(w io.Writer) int {
	width := usualWidth
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		width = columns
	}
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			width = columns
		}
	}
	return max(width, leastWidth)
}

// Columns lays out rows, of which the first is the header, in lines of at most width characters. The first keys cells name a row; the
// others belong together in groups of so many, such as a figure and its ratio. What does not fit beside each other is set below each
// other with the names again, and what does not fit even so as one line for each cell: nothing is left out.
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

// gap is how many blanks there are between columns.
const gap = 2

// records has a line for every cell, below one that names the row.
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

// Wrap breaks a line at blanks, or within a word that is longer than a line, and never between a number and its %; what follows is indented
// by two more blanks.
func Wrap(line string, width int) []string {
	rest := []rune(line)
	indent := len(line) - len(strings.TrimLeft(line, " ")) + 2
	// What is left is not copied from line to line: others wrote what is shown, and a warning may have megabytes.
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
