package reference

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/calibration/figures"
)

// link is a reference link in a text: its bounds, its text and its label.
type link struct {
	from, to    int
	text, label string
}

// links finds the reference links of a text whose labels have a colon. Brackets in the text of a link are balanced.
func links(text string) []link {
	var out []link
	for at := 0; ; {
		middle := strings.Index(text[at:], "][")
		if middle < 0 {
			return out
		}
		middle += at
		at = middle + 2
		end := strings.Index(text[at:], "]")
		if end < 0 {
			return out
		}
		label := text[at : at+end]
		begin, depth := middle-1, 1
		for ; begin >= 0; begin-- {
			if text[begin] == ']' {
				depth++
			}
			if text[begin] == '[' {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if begin >= 0 && strings.Contains(label, ":") {
			out = append(out, link{begin, at + end + 1, text[begin+1 : middle], label})
			at += end + 1
		}
	}
}

const (
	definitions    = "<!-- references -->\n"
	endDefinitions = "<!-- /references -->\n"
)

// withoutDefinitions cuts the definitions off that Render appended.
func withoutDefinitions(page string) string {
	before, rest, ok := strings.Cut(page, definitions)
	if !ok {
		return page
	}
	_, after, _ := strings.Cut(rest, endDefinitions)
	return strings.TrimRight(before, "\n") + "\n" + after
}

// Render returns a page with the text of every reference written anew, and the definitions of their labels at its end.
func (l *Library) Render(page Page) (string, error) {
	text := withoutDefinitions(page.Text)
	if runsPlace.MatchString(text) {
		table, err := l.runsTable(filepath.Dir(page.Path))
		if err != nil {
			return "", err
		}
		text = runsPlace.ReplaceAllLiteralString(text, table)
	}
	text, err := figures.Render(text, func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(l.root, "workflows", "figures", figures.Published, name+".csv"))
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", page.Path, err)
	}
	var problems []error
	text = parametersPlace.ReplaceAllStringFunc(text, func(place string) string {
		table, err := l.parametersTable(parametersPlace.FindStringSubmatch(place)[1])
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", page.Path, err))
		}
		return table
	})
	var out strings.Builder
	files := map[string]string{}
	at := 0
	for _, link := range links(text) {
		label := strings.Join(strings.Fields(link.label), " ")
		rendered := link.text
		of, err := l.resolve(page, label)
		if err == nil {
			if rendered, err = render(link.text, of); err != nil {
				err = fmt.Errorf("reference %q: %w", label, err)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", page.Path, 1+strings.Count(text[:link.from], "\n"), err))
			continue
		}
		if files[label], err = target(page, of.file); err != nil {
			return "", err
		}
		out.WriteString(text[at:link.from])
		out.WriteString("[" + rendered + "][" + link.label + "]")
		at = link.to
	}
	if len(problems) > 0 {
		return "", errors.Join(problems...)
	}
	out.WriteString(text[at:])
	if len(files) == 0 {
		return out.String(), nil
	}
	var labels []string
	for label := range files {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	out.WriteString("\n" + definitions)
	for _, label := range labels {
		fmt.Fprintf(&out, "[%s]: %s\n", label, files[label])
	}
	out.WriteString(endDefinitions)
	return out.String(), nil
}

var (
	slotPattern = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	// pair is an interval in a text.
	pair = regexp.MustCompile(`\[-?\d[\d,.]*,\s-?\d[\d,.]*\]`)
	// inName is a text before a number that is a part of a name. A minus sign is not.
	inName = regexp.MustCompile(`[A-Za-z^]$|[^ \[\n]-$`)
	// between is in a range.
	between = regexp.MustCompile(`\sto\s`)
	// unitAfter is the unit after a number.
	unitAfter = regexp.MustCompile(`^\s*(ns|µs|us|ms|s|%(?:\s+(?:less|fewer|lower|shorter|more|longer|higher|larger|above|below))?|times|x|million|thousand)(?:[^\w]|$)`)
)

// slot is a number in a text: its bounds, and whether it is the lower or the upper limit of an interval.
type slot struct {
	from, to  int
	low, high bool
	unit      string
}

func slotsOf(text string) []slot {
	pairs := pair.FindAllStringIndex(text, -1)
	var out []slot
	for _, at := range slotPattern.FindAllStringIndex(text, -1) {
		s := slot{from: at[0], to: at[1]}
		for strings.HasSuffix(text[s.from:s.to], ",") {
			s.to--
		}
		if inName.MatchString(text[:s.from]) {
			continue // A part of a name, such as p95.
		}
		for _, p := range pairs {
			if s.from > p[0] && s.to <= p[1] {
				s.low = !strings.Contains(text[p[0]:s.from], ",")
				s.high = !s.low
			}
		}
		if unit := unitAfter.FindStringSubmatch(text[s.to:]); unit != nil {
			s.unit = strings.Join(strings.Fields(unit[1]), " ")
		}
		out = append(out, s)
	}
	// A number without a unit has that of the next number.
	for i := len(out) - 2; i >= 0; i-- {
		if out[i].unit == "" {
			out[i].unit = out[i+1].unit
		}
	}
	// Limits have that of their value.
	for i := 1; i < len(out); i++ {
		if (out[i].low || out[i].high) && out[i].unit == "" {
			out[i].unit = out[i-1].unit
		}
	}
	return out
}

// render writes the text of a reference with the values of its cells.
func render(text string, of found) (string, error) {
	slots := slotsOf(text)
	if of.quoted {
		return text, repeats(text, slots, of.cells)
	}
	isText := !slices.ContainsFunc(of.cells, func(cell Cell) bool { return cell.Numeric })
	if len(slots) == 0 || isText {
		return renderWords(text, of)
	}
	values, err := assign(text, slots, of.cells)
	if err != nil {
		return "", err
	}
	out := text
	for i := len(slots) - 1; i >= 0; i-- {
		s := slots[i]
		written, err := format(values[i], text[s.from:s.to])
		if err != nil {
			return "", err
		}
		out = out[:s.from] + written + out[s.to:]
	}
	return out, nil
}

// assign returns the value of every number of a text.
func assign(text string, slots []slot, cells []Cell) ([]float64, error) {
	for _, cell := range cells {
		if !cell.Numeric {
			return nil, fmt.Errorf("the cell %q is no number", cell.Text)
		}
	}
	var plain []int
	for i, s := range slots {
		if !s.low && !s.high {
			plain = append(plain, i)
		}
	}
	owner := make([]Cell, len(slots))
	switch {
	case len(plain) <= 1 && len(cells) == 1:
		for i := range owner {
			owner[i] = cells[0]
		}
	case len(plain) == 2 && between.MatchString(text[slots[plain[0]].to:slots[plain[1]].from]):
		byValue := slices.SortedFunc(slices.Values(cells), func(a, b Cell) int {
			switch va, vb := convert(a, a.Value, slots[plain[0]].unit), convert(b, b.Value, slots[plain[0]].unit); {
			case va < vb:
				return -1
			case va > vb:
				return 1
			}
			return 0
		})
		owner[plain[0]], owner[plain[1]] = byValue[0], byValue[len(byValue)-1]
	case len(plain) == len(cells):
		next := 0
		for i := range owner {
			if next < len(plain)-1 && i > plain[next] && !slots[i].low && !slots[i].high {
				next++
			}
			owner[i] = cells[next]
		}
	default:
		return nil, fmt.Errorf("%d numbers for %d cells: name one row for each, or write A to B", len(plain), len(cells))
	}
	out := make([]float64, len(slots))
	for i, s := range slots {
		cell := owner[i]
		value := cell.Value
		if timeUnits[cell.Unit] != 0 && timeUnits[s.unit] == 0 {
			return nil, fmt.Errorf("%s has no unit of time, and the cell is in %s: write the unit into the reference", text[s.from:s.to], cell.Unit)
		}
		if s.low || s.high {
			if !cell.HasInterval {
				return nil, fmt.Errorf("the cell %q has no interval", cell.Text)
			}
			a, b := convert(cell, cell.Low, s.unit), convert(cell, cell.High, s.unit)
			out[i] = min(a, b)
			if s.high {
				out[i] = max(a, b)
			}
			continue
		}
		out[i] = convert(cell, value, s.unit)
	}
	return out, nil
}

// convert returns a value of a cell in the unit of a text.
func convert(cell Cell, value float64, unit string) float64 {
	word := strings.TrimPrefix(unit, "% ")
	switch {
	case timeUnits[unit] != 0 && timeUnits[cell.Unit] != 0:
		return value * timeUnits[cell.Unit] / timeUnits[unit]
	case unit == "%" || strings.HasPrefix(unit, "% "):
		if cell.Unit != "%" {
			value *= 100
		}
		switch word {
		case "less", "fewer", "lower", "shorter", "below":
			return 100 - value
		case "more", "longer", "higher", "larger", "above":
			return value - 100
		}
		return value
	case unit == "times" && value < 1 && value > 0:
		return 1 / value
	case unit == "million":
		return value / 1e6
	case unit == "thousand":
		return value / 1e3
	}
	return value
}

// format writes a value as a number was written: as many decimals, and commas if it had some.
func format(value float64, as string) (string, error) {
	_, decimals, _ := strings.Cut(as, ".")
	out := strconv.FormatFloat(math.Abs(value), 'f', len(decimals), 64)
	if rounded, _ := number(out); math.Abs(rounded-math.Abs(value)) > 0.06*math.Abs(value) {
		return "", fmt.Errorf("%s has too few digits for %.4g", as, value)
	}
	whole, fraction, _ := strings.Cut(out, ".")
	if strings.Contains(as, ",") || len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole, nil
}

// repeats checks that every number of a text is in a quotation or a setting.
func repeats(text string, slots []slot, cells []Cell) error {
	for _, s := range slots {
		if !slices.ContainsFunc(cells, func(cell Cell) bool { return quotes(cell.Text, text[s.from:s.to], s.unit) }) {
			return fmt.Errorf("%s is not in %q", text[s.from:s.to], cells[0].Text)
		}
	}
	for _, word := range numberWords(text) {
		if !slices.ContainsFunc(cells, func(cell Cell) bool { return quotesWord(cell.Text, word) }) {
			return fmt.Errorf("%q is not in %q", word, cells[0].Text)
		}
	}
	return nil
}

// quotes reports whether a quotation has a number, also in another unit.
func quotes(quotation, written, unit string) bool {
	value, _ := number(written)
	_, decimals, _ := strings.Cut(written, ".")
	half := 0.5 * math.Pow(10, -float64(len(decimals))) * (1 + 1e-9)
	for _, exact := range slotPattern.FindAllString(quotation, -1) {
		other, ok := number(strings.TrimRight(exact, ","))
		if !ok {
			continue
		}
		candidates := []float64{other, other * 1e3, other * 1e6, other / 1e3, other / 1e6, other / 1e9}
		if strings.HasPrefix(unit, "%") {
			candidates = append(candidates, other*100, 100-other*100, other*100-100)
		}
		if unit == "times" && other != 0 {
			candidates = append(candidates, 1/other)
		}
		for _, candidate := range candidates {
			if math.Abs(candidate-value) <= half {
				return true
			}
		}
	}
	return false
}

func quotesWord(quotation, word string) bool {
	if regexp.MustCompile(`(?i)\b` + word + `\b`).MatchString(quotation) {
		return true
	}
	value := words[strings.ToLower(word)]
	return slices.ContainsFunc(slotPattern.FindAllString(quotation, -1), func(exact string) bool {
		other, _ := number(strings.TrimRight(exact, ","))
		return other == value || other == 100*value
	})
}

// renderWords checks the words of a text without digits, or replaces it by the cell's text.
func renderWords(text string, of found) (string, error) {
	if of.holds {
		return text, nil
	}
	if said := numberWords(text); len(said) > 0 && of.cells[0].Numeric {
		if len(said) != len(of.cells) && len(said) != 1 {
			return "", fmt.Errorf("%d numbers in words for %d cells", len(said), len(of.cells))
		}
		for i, cell := range of.cells {
			value, want := cell.Value, words[strings.ToLower(said[min(i, len(said)-1)])]
			if cell.Unit == "%" {
				value /= 100
			}
			if want >= 2 && value > 0 && value < 1 {
				value = 1 / value
			}
			if !cell.Numeric || math.Abs(value-want) > 0.1*want {
				return "", fmt.Errorf("%q is not within 10 %% of the cell, %s", said[min(i, len(said)-1)], cell.Text)
			}
		}
		return text, nil
	}
	for _, cell := range of.cells {
		if cell.Numeric {
			return "", fmt.Errorf("the cell %s is a number, and the text %q has none: add a condition, such as below 1", cell.Text, text)
		}
		if cell.Text != of.cells[0].Text {
			return "", fmt.Errorf("the cells differ: %s, %s", of.cells[0].Text, cell.Text)
		}
	}
	if strings.Join(strings.Fields(text), " ") == of.cells[0].Text {
		return text, nil // As it is broken into lines.
	}
	return of.cells[0].Text, nil
}
