package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// words are the numbers that pages write in words. Ordinals from a third on are shares.
var words = map[string]float64{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
	"fifteen": 15, "sixteen": 16, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000, "million": 1e6,
	"billion": 1e9, "half": 0.5, "twice": 2, "double": 2, "thrice": 3, "quarter": 0.25, "third": 1. / 3, "fifth": 0.2, "sixth": 1. / 6,
	"tenth": 0.1, "dozen": 12, "thirds": 2. / 3, "quarters": 0.75,
}

var (
	wordPattern = regexp.MustCompile(`(?i)\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|sixteen|twenty|thirty|forty|` +
		`fifty|hundreds?|thousands?|millions?|billions?|half|twice|double|thrice|quarters?|thirds?|fifth|sixth|tenth|dozen)\b`)
	digits     = regexp.MustCompile(`(^|[^\w.^-])(-?\d[\d,]*(?:\.\d+)?)`)
	machines   = regexp.MustCompile(`\b(Xeon|EPYC|Intel|AMD|Zen|Graviton|Emerald Rapids)\b`)
	verdicts   = regexp.MustCompile(`\b(Go|NoGo|Inconclusive|Invalid)\b`)
	comparison = regexp.MustCompile(`(?i)\b(faster|slower|quicker|cheaper|dearer|as (?:fast|slow|long|much|many) as|much the same|the same ` +
		`(?:time|rate|speed|throughput|latency)|no difference)\b`)
	fence       = regexp.MustCompile("(?ms)^```.*?^```$")
	marked      = regexp.MustCompile(`(?s)<!-- (table|figures|runs|parameters)\b[^>]*-->\n.*?<!-- /(table|figures|runs|parameters)[^>]*-->`)
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	code        = regexp.MustCompile("`[^`]*`")
	inline      = regexp.MustCompile(`(?s)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)`)
	fileName    = regexp.MustCompile(`[\w./-]+\.(yaml|rs|go|md|py|sh|c|h|txt|csv|json|zst)\b`)
	listNumber  = regexp.MustCompile(`(?m)^\s*\d+\. `)
	onlyNumber  = regexp.MustCompile("^`[^`A-Za-z_]*`$|^`[\\d.,]+ ?(?:%|x|ms|us|µs|ns|s)`$")
	numberInURL = regexp.MustCompile(`\d[\d,.]*\d|\d`)
)

func numberWords(text string) []string { return wordPattern.FindAllString(text, -1) }

// Prose returns a page without code, without the tables between markers and without definitions. Lines keep their places.
func Prose(page string) string {
	text := withoutDefinitions(page)
	for _, pattern := range []*regexp.Regexp{marked, fence} {
		text = pattern.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	}
	return text
}

// Unreferenced lists the numbers, machines, verdicts and comparisons of a page that are no references, as LINE: TEXT. The text of a link
// to another site is a reference, as is that of a link to a file of the repository with that number; a table outside the markers counts
// for every row.
func (l *Library) Unreferenced(page Page) []string {
	text := Prose(page.Text)
	blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) + " " }
	all := links(text)
	for i := len(all) - 1; i >= 0; i-- {
		text = text[:all[i].from] + blank(text[all[i].from:all[i].to]) + text[all[i].to:]
	}
	text = comment.ReplaceAllStringFunc(text, blank)
	text = inline.ReplaceAllStringFunc(text, func(s string) string {
		match := inline.FindStringSubmatch(s)
		if strings.HasPrefix(match[2], "http") || l.has(page, match[2], match[1]) {
			return blank(s)
		}
		return match[1]
	})
	for _, pattern := range []*regexp.Regexp{code, fileName} {
		text = pattern.ReplaceAllStringFunc(text, func(s string) string {
			if onlyNumber.MatchString(s) {
				return s // As code a number would need no reference.
			}
			return blank(s)
		})
	}
	text = listNumber.ReplaceAllString(text, "")
	var out []string
	for i, line := range strings.Split(text, "\n") {
		at := func(what string) { out = append(out, fmt.Sprintf("%d: %s", i+1, what)) }
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			at("a row of a table outside the markers")
			continue
		}
		for _, match := range digits.FindAllStringSubmatch(line, -1) {
			at(match[2])
		}
		for _, pattern := range []*regexp.Regexp{wordPattern, machines, verdicts, comparison} {
			if pattern == comparison && strings.HasPrefix(line, "#") && strings.HasSuffix(line, "?") {
				continue // A title that asks compares nothing.
			}
			for _, match := range pattern.FindAllString(line, -1) {
				at(match)
			}
		}
	}
	return out
}

// has reports whether a file of the repository has all numbers of a text.
func (l *Library) has(page Page, file, text string) bool {
	numbers := numberInURL.FindAllString(text, -1)
	if len(numbers) == 0 {
		return false
	}
	file, _, _ = strings.Cut(file, "#")
	raw, err := os.ReadFile(filepath.Join(l.root, filepath.Dir(page.Path), file))
	if err != nil {
		return false
	}
	found := numberInURL.FindAllString(strings.NewReplacer("_", "", ",", "").Replace(string(raw)), -1)
	return !slices.ContainsFunc(numbers, func(n string) bool {
		return !slices.Contains(found, strings.ReplaceAll(n, ",", ""))
	})
}
