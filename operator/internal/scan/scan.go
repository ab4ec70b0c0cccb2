// Package scan defines parameter scans: names in braces in command lines, and the values that they take (pure).
package scan

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/suggest"
)

// Axis is a parameter with its values.
type Axis struct {
	Name   string
	Values []string
	// Flag is the flag that defined it, for messages.
	Flag string
}

const (
	// MaxPoints is the largest number of combinations of values, and MaxAxes that of parameters.
	MaxPoints, MaxAxes = 256, 8
	// longestValue is the longest value in characters, a limit of the API.
	longestValue = 256
)

var (
	// axisName is the form of a parameter's name in the API.
	axisName = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)
	// placeholder is a name in braces. Doubled braces are literal ones, and so are variables of a shell.
	placeholder = regexp.MustCompile(`\$\{|\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}`)
	number      = regexp.MustCompile(`^[+-]?[0-9]{1,18}(\.[0-9]{1,9})?$`)
)

// Axes parses the parameters of lists, name=a,b,c, and of ranges, name=from:to[:step].
func Axes(lists, ranges []string) ([]Axis, error) {
	var out []Axis
	for _, text := range lists {
		name, values, found := strings.Cut(text, "=")
		axis := Axis{Name: name, Flag: "-L " + text}
		if axis.Values = strings.Split(values, ","); !found || values == "" {
			return nil, fmt.Errorf("invalid -L %q: write a name and its values, such as -L level=1,6,9", text)
		}
		out = append(out, axis)
	}
	for _, text := range ranges {
		name, limits, _ := strings.Cut(text, "=")
		axis := Axis{Name: name, Flag: "-P " + text}
		var err error
		if axis.Values, err = steps(limits); err != nil {
			return nil, fmt.Errorf("invalid -P %q: %w; write a name and a range, such as -P threads=1:8 or -P share=0.1:0.5:0.1", text, err)
		}
		out = append(out, axis)
	}
	return out, check(out)
}

// check reports axes that a run cannot have.
func check(axes []Axis) error {
	if len(axes) > MaxAxes {
		return fmt.Errorf("%d parameters: a run has at most %d; remove a -L or -P", len(axes), MaxAxes)
	}
	points, product := 1, ""
	for i, axis := range axes {
		if !axisName.MatchString(axis.Name) {
			return fmt.Errorf("invalid %s: %q is no name; use letters and digits, the first a lower-case letter, such as numThreads", axis.Flag,
				axis.Name)
		}
		if slices.ContainsFunc(axes[:i], func(other Axis) bool { return other.Name == axis.Name }) {
			return fmt.Errorf("invalid %s: %s has values already; give all of them at once", axis.Flag, axis.Name)
		}
		seen := map[string]bool{}
		for _, value := range axis.Values {
			switch {
			case value == "":
				return fmt.Errorf("invalid %s: it has an empty value; remove the comma", axis.Flag)
			case len(value) > longestValue:
				return fmt.Errorf("invalid %s: a value has %d bytes, allowed are %d", axis.Flag, len(value), longestValue)
			case strings.ContainsRune(value, 0):
				return fmt.Errorf("invalid %s: a value contains a NUL character", axis.Flag)
			case seen[value]:
				return fmt.Errorf("invalid %s: %q is there twice; remove one", axis.Flag, value)
			}
			seen[value] = true
		}
		if points *= len(axis.Values); points > MaxPoints {
			return fmt.Errorf("too many points: %s%d values of %s are more than %d combinations; scan fewer values, or in several runs", product,
				len(axis.Values), axis.Name, MaxPoints)
		}
		product += fmt.Sprintf("%d values of %s times ", len(axis.Values), axis.Name)
	}
	return nil
}

// steps returns the numbers of a range, both ends included, with the decimal places of its limits.
func steps(text string) ([]string, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q is no range", text)
	}
	if len(parts) == 2 {
		parts = append(parts, "1")
	}
	places, limits := 0, make([]*big.Rat, 0, len(parts))
	for _, part := range parts {
		value, ok := new(big.Rat).SetString(part)
		if !ok || !number.MatchString(part) {
			return nil, fmt.Errorf("%q is no decimal number", part)
		}
		_, decimals, _ := strings.Cut(part, ".")
		places, limits = max(places, len(decimals)), append(limits, value)
	}
	from, to, step := limits[0], limits[1], limits[2]
	switch {
	case step.Sign() == 0:
		return nil, errors.New("its step is 0")
	case to.Cmp(from)*step.Sign() < 0:
		return nil, fmt.Errorf("a step of %s never leads from %s to %s", parts[2], parts[0], parts[1])
	}
	var out []string
	for value := from; to.Cmp(value)*step.Sign() >= 0; value = new(big.Rat).Add(value, step) {
		if out = append(out, value.FloatString(places)); len(out) > MaxPoints {
			return nil, fmt.Errorf("it has more than %d values", MaxPoints)
		}
	}
	return out, nil
}

// Points returns the combinations of the values, the last parameter fastest; one without values for no axes.
func Points(axes []Axis) []map[string]string {
	out := []map[string]string{{}}
	for _, axis := range axes {
		var next []map[string]string
		for _, point := range out {
			for _, value := range axis.Values {
				with := map[string]string{axis.Name: value}
				for name, other := range point {
					with[name] = other
				}
				next = append(next, with)
			}
		}
		out = next
	}
	return out
}

// Part is a part of a word: literal text, or the name of a parameter.
type Part struct {
	Text string
	Name string
}

// Parts splits a word into literal texts and names. Doubled braces become single ones. Texts without characters are left out.
func Parts(word string) []Part {
	var out []Part
	text := ""
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(word, -1) {
		text += word[end:at[0]]
		if end = at[1]; at[2] < 0 {
			if token := word[at[0]:at[1]]; token == "${" {
				text += token
			} else {
				text += token[:1]
			}
			continue
		}
		if text != "" {
			out, text = append(out, Part{Text: text}), ""
		}
		out = append(out, Part{Name: word[at[2]:at[3]]})
	}
	if text += word[end:]; text != "" {
		out = append(out, Part{Text: text})
	}
	return out
}

// Fill replaces the names in a word by the values of a point. Names without a value are an error.
func Fill(word string, point map[string]string) (string, error) {
	var out strings.Builder
	for _, part := range Parts(word) {
		value, known := point[part.Name]
		if part.Name != "" && !known {
			return "", unknown(part.Name, slices.Sorted(keys(point)))
		}
		out.WriteString(part.Text + value)
	}
	return out.String(), nil
}

func keys(of map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range of {
			if !yield(name) {
				return
			}
		}
	}
}

func unknown(name string, known []string) error {
	return fmt.Errorf("unknown parameter {%s}: %s; give its values with -L or -P, or write {{%s}} for the text itself", name,
		suggest.Allowed(name, known), name)
}

// CheckUse reports names in texts, such as commands and steps, that are no parameter, and parameters that no text uses.
func CheckUse(axes []Axis, texts []string) error {
	var known []string
	used := map[string]bool{}
	for _, axis := range axes {
		known = append(known, axis.Name)
	}
	for _, text := range texts {
		for _, part := range Parts(text) {
			if part.Name != "" && !slices.Contains(known, part.Name) {
				return fmt.Errorf("%q: %w", text, unknown(part.Name, known))
			}
			used[part.Name] = true
		}
	}
	for _, axis := range axes {
		if !used[axis.Name] {
			return fmt.Errorf("unused %s: no command and no step has {%s}; write it where the value belongs, or remove the flag", axis.Flag,
				axis.Name)
		}
	}
	return nil
}
