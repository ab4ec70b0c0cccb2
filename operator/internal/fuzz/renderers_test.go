package fuzz

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/export"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/ci"
	"assay.dev/assay/operator/internal/report/html"
)

// told has everything that a renderer reads.
type told struct {
	Exp      *experiment.Experiment
	Found    *analysis.Analysis
	Evidence record.Evidence
}

func (s told) ci() *ci.Result {
	out := ci.From(report.RunName(s.Exp), s.Exp, s.Found)
	out.File, out.Report = s.Exp.Run.Name+".yaml", "https://example.org/report.html"
	return out
}

// renderer writes a run in one form, of which it returns the structure: an input with other texts must have the same. The error is of a
// form that cannot be read.
type renderer struct {
	write     func(told) ([]byte, error)
	structure func([]byte) ([]string, error)
}

var renderers = map[string]renderer{
	"HTML report": {
		func(s told) ([]byte, error) { return html.Render(s.Exp, s.Found, s.Evidence) },
		func(raw []byte) ([]string, error) { return tags.FindAllString(string(raw), -1), nil },
	},
	"report.md": {func(s told) ([]byte, error) { return report.Markdown(s.Exp, s.Found), nil }, markdownStructure},
	"terminal": {func(s told) ([]byte, error) {
		var out bytes.Buffer
		err := report.Terminal(&out, s.Exp, s.Found)
		return out.Bytes(), err
	}, nil},
	"brief":     {func(s told) ([]byte, error) { return []byte(strings.Join(report.Brief(s.Exp, s.Found), "\n")), nil }, nil},
	"CSV":       {func(s told) ([]byte, error) { return report.CSV(s.Exp, s.Found), nil }, csvStructure},
	"benchstat": {func(s told) ([]byte, error) { return export.Benchstat(s.Exp, s.Found, s.Evidence) }, nil},
	"manifest":  {func(s told) ([]byte, error) { return report.Manifest(s.Exp) }, nil},

	"comment on a pull request": {func(s told) ([]byte, error) { return []byte(s.ci().Markdown()), nil }, markdownStructure},
	"marker of a comment": {func(s told) ([]byte, error) { return []byte(s.ci().Marker()), nil },
		func(raw []byte) ([]string, error) { return tags.FindAllString(string(raw), -1), nil }},
	"commands of a workflow": {func(s told) ([]byte, error) { return []byte(s.ci().Commands()), nil }, commandStructure},
	"annotations":            {func(s told) ([]byte, error) { return asJSON(s.ci().Annotations(), nil) }, nil},
	"code quality":           {func(s told) ([]byte, error) { return decoded(s.ci().CodeQuality()) }, nil},
	"JUnit":                  {func(s told) ([]byte, error) { return s.ci().JUnit() }, xmlStructure},
	"badge":                  {func(s told) ([]byte, error) { return s.ci().Badge(), nil }, xmlStructure},
	"badge of shields.io":    {func(s told) ([]byte, error) { return decoded(s.ci().Shields()) }, nil},
}

func markdownStructure(raw []byte) ([]string, error) {
	return tags.FindAllString(withoutCode(string(raw)), -1), nil
}

// commandStructure has the command of every line: a text that made another line could give any.
func commandStructure(raw []byte) (out []string, err error) {
	for line := range strings.Lines(string(raw)) {
		command, _, ok := strings.Cut(strings.TrimPrefix(line, "::"), " ")
		if !ok || !strings.HasPrefix(line, "::") {
			err = fmt.Errorf("line %q is no command", line)
		}
		out = append(out, command)
	}
	return out, err
}

// csvStructure has the number of fields of each row. No field may be a formula of a spreadsheet.
func csvStructure(raw []byte) (out []string, err error) {
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	for _, row := range rows {
		out = append(out, strconv.Itoa(len(row)))
		for _, cell := range row {
			if _, notNumber := strconv.ParseFloat(cell, 64); notNumber != nil && strings.ContainsAny(cell[:min(1, len(cell))], "=+-@|%") {
				err = errors.Join(err, fmt.Errorf("cell %q is a formula", cell))
			}
		}
	}
	return out, err
}

// xmlStructure has the elements, with the names of their attributes.
func xmlStructure(raw []byte) (out []string, err error) {
	for in := xml.NewDecoder(bytes.NewReader(raw)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if element, ok := token.(xml.StartElement); ok {
			names := element.Name.Local
			for _, attribute := range element.Attr {
				names += " " + attribute.Name.Local
			}
			out = append(out, names)
		}
	}
}

// decoded returns the texts of JSON, one a line, because JSON itself hides their characters.
func decoded(raw []byte, err error) ([]byte, error) {
	var value any
	if err := errors.Join(err, json.Unmarshal(raw, &value)); err != nil {
		return nil, err
	}
	return []byte(strings.Join(slices.Sorted(maps.Keys(textsOf(value))), "\n")), nil
}

func asJSON(value any, err error) ([]byte, error) {
	raw, err2 := json.Marshal(value)
	return decoded(raw, errors.Join(err, err2))
}

// textsOf returns every text of a JSON value: values, and names of fields.
func textsOf(value any) map[string]bool {
	out := map[string]bool{}
	switch value := value.(type) {
	case string:
		out[value] = true
	case []any:
		for _, one := range value {
			maps.Copy(out, textsOf(one))
		}
	case map[string]any:
		for name, one := range value {
			out[name] = true
			maps.Copy(out, textsOf(one))
		}
	}
	return out
}

// attempt calls a renderer. Text in the place of a reference gives an experiment that no reader accepts, and a renderer may fail with it.
func (r renderer) attempt(s told) (raw []byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return r.write(s)
}

// placesOf adds a text for each path of a JSON value: equal elements of a list are rendered by the same code.
func placesOf(value any, path string, into map[string]string) {
	switch value := value.(type) {
	case string:
		if _, known := into[path]; !known && value != "" {
			into[path] = value
		}
	case []any:
		for _, one := range value {
			placesOf(one, path+"[]", into)
		}
	case map[string]any:
		for name, one := range value {
			placesOf(one, path+"."+name, into)
		}
	}
}

// word matches texts that stand in others too, such as the name of an arm in a message.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./-]{4,}$`)

// with appends a text to a word wherever it stands, or to all texts that equal it.
func with(t testing.TB, raw []byte, at, text string) (told, bool) {
	t.Helper()
	var out told
	quoted := bytes.Trim(marshal(t, at), `"`)
	longer := bytes.Trim(marshal(t, at+text), `"`)
	if !word.MatchString(at) {
		quoted, longer = marshal(t, at), marshal(t, at+text)
	}
	err := json.Unmarshal(bytes.ReplaceAll(raw, quoted, longer), &out)
	return out, err == nil && out.Exp != nil && out.Found != nil
}

// obeyed returns the first character that a terminal, a browser or an editor would obey in place of showing it. Markdown breaks mentions by
// a space without width.
func obeyed(raw []byte) (rune, bool) {
	for _, r := range strings.ReplaceAll(string(raw), "@\u200b", "@") {
		if r != '\n' && r != '\t' && !strconv.IsGraphic(r) {
			return r, true
		}
	}
	return 0, false
}

// hostileTexts have an escape sequence in both encodings, changes of direction, invisible characters, ends of lines, and markup of every
// form.
var hostileTexts = []string{
	"\x1b[31m\x1b]8;;https://evil.example.org\x07\u009b2J",
	"\u202eabc\u2066def\u200f\u061c",
	"\x00\x08\x7f\u200b\ufeff\u2028\u2029\r",
	"<script>alert(1)</script><!-- ' \" & ]]> </text> <img src=x onerror=e>",
	"\n::error::x\n# a | b\n[c](javascript:d) `e` @team\n=1+1",
}

// Every text of an experiment, an analysis or an attempt reaches each form of a report as text: no character of it controls a terminal or
// the direction of a text, and no markup of it is markup of the report.
func FuzzRenderers(f *testing.F) {
	exp := scan(f)
	wave, err := fixture.Wave(exp, 0, 0, 2)
	if err != nil {
		f.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 7, Noise: fixture.Noise{Block: 0.03, Trial: 0.005}, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	last := &attempts[len(attempts)-1]
	last.Outcome, last.Result, last.Message, last.StderrTail = record.Failed, nil, "spoken", "spoken"
	evidence := record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}
	result := analyze.Evidence(exp, evidence, 0)
	result.Warnings = append(result.Warnings, "spoken")
	raw := marshal(f, told{exp, result, evidence})
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		f.Fatal(err)
	}
	byPath := map[string]string{}
	placesOf(value, "", byPath)
	places := slices.Compact(slices.Sorted(maps.Values(byPath)))
	for name, r := range renderers {
		out, err := r.write(told{exp, result, evidence})
		if err == nil && r.structure != nil {
			_, err = r.structure(out)
		}
		if err != nil || len(out) == 0 {
			f.Fatalf("%s: %d bytes, %v", name, len(out), err)
		}
	}
	f.Logf("%d texts of %d fields", len(places), len(byPath))
	for i := range places {
		f.Add(uint16(i), strings.Join(hostileTexts, ""))
	}
	f.Fuzz(func(t *testing.T, place uint16, text string) {
		at := places[int(place)%len(places)]
		story, ok := with(t, raw, at, text)
		plain, ok2 := with(t, raw, at, strings.Repeat("x", len([]rune(text))))
		if !ok || !ok2 {
			t.Skip("another text cannot stand here")
		}
		for name, r := range renderers {
			out, err := r.attempt(story)
			plainly, refused := r.attempt(plain)
			if err != nil {
				if refused == nil {
					t.Errorf("%s with %q after %q: %v", name, text, at, err)
				}
				continue
			}
			if found, ok := obeyed(out); ok {
				t.Errorf("%s with %q after %q has the character %U", name, text, at, found)
			}
			if r.structure == nil {
				continue
			}
			got, err := r.structure(out)
			if want, _ := r.structure(plainly); err != nil || !slices.Equal(want, got) {
				t.Errorf("%s with %q after %q: %v, difference %q", name, text, at, err, difference(want, got))
			}
		}
	})
}
