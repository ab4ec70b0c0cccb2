package figures

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Published is the folder of the data of published figures, beside the files that define them.
const Published = "published"

// columns are those of the data of published figures. Numbers are as they were printed.
var columns = []string{"figure", "asked for", "value", "low", "high", "unit", "blocks", "when", "where"}

var (
	place      = regexp.MustCompile(`(?s)<!-- figures (\S+) -->\n(.*?)<!-- /figures (\S+) -->\n`)
	rowOfTable = regexp.MustCompile("^\\| `(\\S+)` \\| (.*?) ?\\| " +
		`(\S+) \\\[(\S+), (\S+)\\\] ?(\S*) \| (\d+) \| ([\d-]+), (.*) \|$`)
)

// Data returns the rows of the table of a document as CSV: the published figures as data, from which [Table] makes the table again.
func Data(document, name string) ([]byte, error) {
	for _, match := range place.FindAllStringSubmatch(document, -1) {
		if match[1] != name {
			continue
		}
		rows := [][]string{columns}
		for line := range strings.Lines(strings.TrimPrefix(match[2], head)) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			cells := rowOfTable.FindStringSubmatch(line)
			if cells == nil {
				return nil, fmt.Errorf("invalid row of figures %s: %q", name, line)
			}
			rows = append(rows, cells[1:])
		}
		var out bytes.Buffer
		if err := csv.NewWriter(&out).WriteAll(rows); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
	return nil, fmt.Errorf("the document has no line %q", fmt.Sprintf("<!-- figures %s -->", name))
}

// Table returns the table of published figures with its markers.
func Table(name string, data []byte) (string, error) {
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || len(rows) == 0 || len(rows[0]) != len(columns) {
		return "", fmt.Errorf("invalid figures %s: the columns are %s: %w", name, strings.Join(columns, ", "), err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "<!-- figures %s -->\n%s", name, head)
	for _, r := range rows[1:] {
		unit := r[5]
		if unit != "" {
			unit = " " + unit
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s \\[%s, %s\\]%s | %s | %s, %s |\n", r[0], r[1], r[2], r[3], r[4], unit, r[6], r[7], r[8])
	}
	return out.String() + fmt.Sprintf("<!-- /figures %s -->\n", name), nil
}

// Render replaces the tables of a document by those of the data that read returns for their names.
func Render(document string, read func(name string) ([]byte, error)) (string, error) {
	var problems []error
	out := place.ReplaceAllStringFunc(document, func(table string) string {
		name := place.FindStringSubmatch(table)[1]
		data, err := read(name)
		if err == nil {
			var rendered string
			if rendered, err = Table(name, data); err == nil {
				return rendered
			}
		}
		problems = append(problems, err)
		return table
	})
	return out, errors.Join(problems...)
}
