package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// passage is a paragraph or an item of a list, with the comments below it.
type passage struct {
	text     string
	line     int
	comments []string
}

// passages are those of a page without its tables, code and headings.
func passages(page string) []passage {
	var out []passage
	var lines []string
	begin := 0
	end := func() {
		if text := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); text != "" {
			out = append(out, passage{text: text, line: begin})
		}
		lines = nil
	}
	for i, line := range strings.Split(Prose(page), "\n") {
		line = strings.TrimSpace(line)
		item := strings.HasPrefix(line, "* ")
		switch {
		case strings.HasPrefix(line, "<!--"):
			end()
			if last := len(out) - 1; last >= 0 {
				out[last].comments = append(out[last].comments, strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(line, "<!--"), "-->")))
			}
			continue
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|"):
			end()
			continue
		case item:
			end()
		}
		if len(lines) == 0 {
			begin = i + 1
		}
		lines = append(lines, strings.TrimPrefix(line, "* "))
	}
	end()
	return out
}

var (
	// causal are the words by which a sentence explains another.
	causal = regexp.MustCompile(`\b(because|due to|owing to|thanks to|therefore|hence|thus|caused? by|is the cause|why|reasons?|bottleneck|` +
		`dominates?|explains?|stems? from|results? from|accounts? for|responsible for|it is the \w+ that)\b|` +
		`[,;:] so (it|its|the|they|their|what|no|nothing|an?)\b|, (for (it|its|they|their|all of|none of)|by what|since)\b|` +
		`, as (it|its|the \w+|they|their|all|both|each|every|no) (\w+ )?(is|are|was|were|has|have|had|leaves?|loaded|makes?|answers?|takes?)\b`)
	// open are sentences that ask or suppose, or repeat the document's words.
	open = regexp.MustCompile(`(?i)\b(if|whether|would|may|might|asks?|asked|and why)\b|\?$|\]\[(?:[\w-]+/)?claims: `)
	bold = regexp.MustCompile(`\*\*[^*]+\*\*`)
)

// Explanations lists the causal sentences without a computed share, and the passages with a claim in bold without a figure.
//
// A causal sentence has a reference to a share, a ratio or a condition; or the comment <!-- shown by LABEL --> is below its passage, with a
// label that ends in a condition; or <!-- shown by test NAME -->, a test of a workload. A passage with a claim in bold has a reference to a
// run or a figure, or <!-- no figure: REASON --> is below it.
func (l *Library) Explanations(page Page) []string {
	var out []string
	for _, p := range passages(page.Text) {
		at := func(format string, args ...any) {
			out = append(out, fmt.Sprintf("%s:%d: ", page.Path, p.line)+fmt.Sprintf(format, args...))
		}
		shown, optedOut := false, false
		for _, comment := range p.comments {
			if reason, ok := strings.CutPrefix(comment, "no figure: "); ok && strings.TrimSpace(reason) != "" {
				optedOut = true
			}
			by, ok := strings.CutPrefix(comment, "shown by ")
			if !ok {
				continue
			}
			if name, ok := strings.CutPrefix(by, "test "); ok {
				if shown = strings.Contains(l.workloadTests(), "fn "+name+"("); !shown {
					at("shown by test %q, which does not exist", name)
				}
				continue
			}
			of, err := l.resolve(page, by)
			switch {
			case err != nil:
				at("shown by: %v", err)
			case !of.holds:
				at("shown by %q has no condition: end it in at least, at most, below, above or spans, and a number", by)
			default:
				shown = true
			}
		}
		if bold.MatchString(p.text) && !optedOut && !shown && !l.hasFigure(page, p.text, func(of found) bool { return !of.quoted }) {
			at("a claim in bold without a figure: refer to a cell, or write <!-- no figure: REASON --> below the paragraph: %.80s", p.text)
		}
		for _, sentence := range sentences(p.text) {
			if causal.MatchString(sentence) && !open.MatchString(sentence) && !shown &&
				!l.hasFigure(page, sentence, func(of found) bool { return of.share || of.holds }) {
				at("an explanation without a share: refer to a share or a ratio of a run, or write <!-- shown by RUN: COLUMN, ROW over … at least N "+
					"--> below the paragraph, or state only the measurement: %q", sentence)
			}
		}
	}
	return out
}

// workloadTests is the source of all workloads and their tests.
func (l *Library) workloadTests() string {
	if l.tests == nil {
		var source strings.Builder
		for _, pattern := range []string{"workloads/*/*/src/*.rs", "workloads/*/*/src/*/*.rs", "workloads/*/*/tests/*.rs"} {
			files, _ := filepath.Glob(filepath.Join(l.root, pattern)) // The patterns are valid.
			for _, file := range files {
				text, _ := os.ReadFile(file) // A test in a file that cannot be read is not found, which is reported.
				source.Write(text)
			}
		}
		text := source.String()
		l.tests = &text
	}
	return *l.tests
}

func (l *Library) hasFigure(page Page, text string, counts func(found) bool) bool {
	for _, link := range links(text) {
		if of, err := l.resolve(page, link.label); err == nil && counts(of) {
			return true
		}
	}
	return false
}

// sentences cuts a text at the ends of its sentences.
func sentences(text string) []string {
	var out []string
	from := 0
	for i := 0; i+1 < len(text); i++ {
		if strings.ContainsRune(".?!", rune(text[i])) && text[i+1] == ' ' {
			out, from = append(out, text[from:i+1]), i+2
		}
	}
	return append(out, text[from:])
}
