package docs

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A study explains its measurements. An explanation that no run shows is the mistake that the studies are about, and a number that was
// copied by hand may no longer be that of its report. These tests hold the prose of every study against its runs and reports.

// passage is a paragraph or an item of a list.
type passage struct {
	heading, text string
	// shown are the names in the comments below it: <!-- shown by run-cause.yaml: gain-of-3 -->, or <!-- shown by test NAME -->.
	shown []string
}

// aboutTheDocument matches the beginning of a paragraph about a document's statements, as opposed to measurements.
var aboutTheDocument = regexp.MustCompile(`^(\*\*(The document'?s?|Its prediction|Conditions for the claim|The result)|Its reading:)`)

// passages are those of a page that are not about the document. Tables, blocks of code and headings are excluded.
func passages(page string) []passage {
	var out []passage
	var lines []string
	heading, inside, table := "", false, false
	end := func() {
		if text := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); text != "" {
			out = append(out, passage{heading: heading, text: text})
		}
		lines = nil
	}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		fence := strings.HasPrefix(line, "```")
		inside = inside != fence
		switch {
		case fence || inside || strings.HasPrefix(line, "|") || line == "":
			end()
		case strings.HasPrefix(line, "#"):
			end()
			if !table { // Its title does not begin a section.
				heading = strings.TrimLeft(line, "# ")
			}
		case strings.HasPrefix(line, "<!-- shown by "):
			end()
			if last := len(out) - 1; last >= 0 {
				out[last].shown = append(out[last].shown, strings.TrimSuffix(strings.TrimPrefix(line, "<!-- shown by "), " -->"))
			}
		case strings.HasPrefix(line, "<!--"):
			end()
			table = strings.HasPrefix(line, "<!-- table ") || table && line != "<!-- /table -->"
		case strings.HasPrefix(line, "* "):
			end()
			lines = []string{line[2:]}
		default:
			lines = append(lines, line)
		}
	}
	end()
	return slices.DeleteFunc(out, func(p passage) bool { return aboutTheDocument.MatchString(p.text) })
}

var (
	// causal are the words by which a sentence explains another.
	causal = regexp.MustCompile(`\b(because|due to|owing to|thanks to|therefore|hence|thus|caused? by|why|reasons?|bottleneck|dominates?)\b|` +
		`[,;:] so (it|its|the|they|their|what|no|nothing|an?)\b|, (for (it|its|they|their|all of|none of)|by what)\b`)
	// open are sentences that ask or suppose.
	open = regexp.MustCompile(`(?i)\b(if|whether|would|may|might|asks?|asked|and why)\b|\?$`)
)

// unshown are the sentences that explain without a comment below their passage that names the evidence.
func unshown(page string) []string {
	var out []string
	for _, p := range passages(page) {
		for _, sentence := range split(p.text) {
			if len(p.shown) == 0 && causal.MatchString(sentence) && !open.MatchString(sentence) {
				out = append(out, sentence)
			}
		}
	}
	return out
}

// split cuts a text at the ends of sentences, and leaves numbers and names of files whole.
func split(text string) []string {
	var out []string
	from := 0
	for i := 0; i+1 < len(text); i++ {
		if strings.ContainsRune(".?!", rune(text[i])) && text[i+1] == ' ' {
			out, from = append(out, text[from:i+1]), i+2
		}
	}
	return append(out, text[from:])
}

// named are the names of gates, arms, tables, metrics and columns of a run.
var named = regexp.MustCompile(`(?m)\{(?:name|title): ([^,}]+)|\bmetric: ([^,}\n]+)|^ *- name: (.+)$`)

func namesOf(run string) []string {
	var out []string
	for _, match := range named.FindAllStringSubmatch(run, -1) {
		out = append(out, strings.Trim(cmp.Or(match[1], match[2], match[3]), `" `))
	}
	return out
}

// numbers of a page or a report: ratios such as 0.7458x, of which a page may say that it is 1.3 times as fast, and intervals such as
// [0.7318, 0.7601].
var (
	ratio    = regexp.MustCompile(`\b(\d[\d,]*(?:\.\d+)?)(x| times)\b`)
	interval = regexp.MustCompile(`\[(-?\d+(?:\.\d+)?), (-?\d+(?:\.\d+)?)\\?\]`)
	gates    = regexp.MustCompile(`(?s)## (?:Gates|Controls)\n(.*?)\n## `)
	verdict  = regexp.MustCompile(`\b(Go|NoGo|Inconclusive|Invalid)\b`)
	// outcome is the verdict in a report's title, of a candidate, or of a gate.
	outcome = regexp.MustCompile(`(?m)^(?:# .*: |\| [^|\n]+ \| |\| )(Go|NoGo|Inconclusive|Invalid)(?:$| \|.*)`)
	// ofNoFigure is in the rows of gates on outputs and on completion, which hold for an arm whose times are not decided.
	ofNoFigure = regexp.MustCompile(`\| (?:the outputs agree|at least [0-9.]+% of its trials complete) \|`)
)

// number is one as it is written.
func number(written string) float64 {
	value, err := strconv.ParseFloat(strings.ReplaceAll(written, ",", ""), 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

// rounds reports whether a number as it is written is another one, rounded to as many digits.
func rounds(written string, exact float64) bool {
	_, decimals, _ := strings.Cut(written, ".")
	return math.Abs(number(written)-exact) <= 0.5*math.Pow(10, -float64(len(decimals)))*(1+1e-9)
}

// unfound are the ratios and intervals of a page that none of the reports has. An interval of a gate, or at its confidence, has to be one
// of a report's gates.
func unfound(page string, reports []string) []string {
	all := strings.Join(reports, "\n")
	var ofGates strings.Builder
	for _, report := range reports {
		for _, section := range gates.FindAllString(report, -1) {
			ofGates.WriteString(section)
		}
	}
	var out []string
	for _, p := range passages(page) {
		for _, written := range ratio.FindAllStringSubmatch(p.text, -1) {
			if !slices.ContainsFunc(ratio.FindAllStringSubmatch(all, -1), func(exact []string) bool {
				value := number(exact[1])
				return rounds(written[1], value) || written[2] == " times" && rounds(written[1], 1/value)
			}) {
				out = append(out, written[0])
			}
		}
		for _, sentence := range split(p.text) {
			from := all
			if strings.Contains(sentence, "gate") || strings.Contains(sentence, "99.5 %") {
				from = ofGates.String()
			}
			from = strings.ReplaceAll(from, `\[`, "[")
			for _, written := range interval.FindAllStringSubmatch(sentence, -1) {
				if !slices.ContainsFunc(interval.FindAllStringSubmatch(from, -1), func(exact []string) bool {
					return rounds(written[1], number(exact[1])) && rounds(written[2], number(exact[2]))
				}) {
					out = append(out, written[0])
				}
			}
		}
	}
	return out
}

// outcomes are the verdicts of a report, of its candidates and of its gates on figures. Messages such as "this is not yet Go" have the
// words too, and do not count.
func outcomes(report string) []string {
	var out []string
	for _, found := range outcome.FindAllStringSubmatch(report, -1) {
		if !ofNoFigure.MatchString(found[0]) {
			out = append(out, found[1])
		}
	}
	return out
}

// contradicted are the verdicts that a section gives and that none of the reports it links has.
func contradicted(page string, report func(link string) string) []string {
	links := regexp.MustCompile(`\]\((results/[^)]+/report\.md)\)`)
	reports := map[string][]string{}
	for _, p := range passages(page) {
		for _, link := range links.FindAllStringSubmatch(p.text, -1) {
			reports[p.heading] = append(reports[p.heading], outcomes(report(link[1]))...)
		}
	}
	var out []string
	for _, p := range passages(page) {
		from, linked := reports[p.heading]
		for _, word := range verdict.FindAllString(p.text, -1) {
			if linked && !slices.Contains(from, word) {
				out = append(out, p.heading+": "+word)
			}
		}
	}
	return out
}

// study is a folder of workflows/studies: its page, its runs by their names, and the content of its reports.
type study struct {
	folder, page string
	runs         map[string]string
	reports      []string
}

// refers reports whether the numbers of a page are references, which the tests of operator/calibration/studies/reference check instead.
func (s study) refers() bool { return strings.Contains(s.page, "<!-- references -->") }

func studies(t *testing.T) []study {
	t.Helper()
	glob := func(pattern ...string) []string {
		paths, err := filepath.Glob(filepath.Join(append([]string{root, "workflows", "studies"}, pattern...)...))
		if err != nil || len(paths) == 0 {
			t.Fatalf("nothing at %v: %v", pattern, err)
		}
		return paths
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var out []study
	for _, path := range glob("*", "README.md") {
		s := study{folder: filepath.Dir(path), page: read(path), runs: map[string]string{}}
		name := filepath.Base(s.folder)
		for _, run := range glob(name, "*.yaml") {
			s.runs[filepath.Base(run)] = read(run)
		}
		for _, report := range glob(name, "results", "*", "*", "report.md") {
			s.reports = append(s.reports, read(report))
		}
		out = append(out, s)
	}
	return out
}

func TestStudies_CausalSentencesNameARun(t *testing.T) {
	var tests string
	for _, path := range glob(t, "workloads/*/*/src/*.rs", "workloads/*/*/src/*/*.rs", "workloads/*/*/tests/*.rs") {
		tests += textOf(t, path)
	}
	for _, s := range studies(t) {
		if s.refers() {
			continue
		}
		for _, sentence := range unshown(s.page) {
			t.Errorf("%s/README.md explains without a run: %q: name the evidence below the paragraph, as <!-- shown by run.yaml: GATE -->, "+
				"or state only the measurement", s.folder, sentence)
		}
		for _, p := range passages(s.page) {
			for _, shown := range p.shown {
				if test, ok := strings.CutPrefix(shown, "test "); ok {
					if !strings.Contains(tests, "fn "+test+"(") {
						t.Errorf("%s/README.md is shown by test %q, which is not there", s.folder, test)
					}
					continue
				}
				file, name, _ := strings.Cut(shown, ": ")
				if run, ok := s.runs[file]; !ok || !slices.Contains(namesOf(run), name) {
					t.Errorf("%s/README.md is shown by %q: name a run of the study and a gate, an arm or a column of it", s.folder, shown)
				}
			}
		}
	}
}

func TestStudies_NameAllTheirRuns(t *testing.T) {
	for _, s := range studies(t) {
		for name, run := range s.runs {
			if name != "smoke.yaml" && !strings.Contains(s.page, "]("+name+")") {
				t.Errorf("%s/README.md does not describe %s", s.folder, name)
			}
			_, reported, _ := strings.Cut(run, "\n  report:")
			for _, table := range regexp.MustCompile(`<!-- table local/`+strings.TrimSuffix(name, ".yaml")+`/(\S+) -->`).FindAllStringSubmatch(s.page, -1) {
				if !strings.Contains(reported, "- name: "+table[1]+"\n") {
					t.Errorf("%s/README.md has a place for the table %s, which %s has not", s.folder, table[1], name)
				}
			}
		}
	}
}

// A heading over nothing is a promise that no reader can tell from a mistake.
func TestStudies_TablePlaceholdersAreFilledOrExplained(t *testing.T) {
	pages := glob(t, "workflows/studies/*/README.md", "workloads/*/*/README.md")
	if len(pages) == 0 {
		t.Fatal("no page found")
	}
	for _, page := range pages {
		for _, place := range regexp.MustCompile(`<!-- (?:table|figures) (\S+) -->\n<!-- /`).FindAllStringSubmatch(textOf(t, page), -1) {
			t.Errorf("%s: the place for %s is empty: measure it, or write \"Not measured yet.\" there", page, place[1])
		}
	}
}

// A table without the attempts behind it can be believed and not judged again.
func TestStudies_PublishedRunNamesItsArchive(t *testing.T) {
	digest := regexp.MustCompile(`^([0-9a-f]{64})  \S+\.tar\.zst\n$`)
	for _, s := range studies(t) {
		reports, err := filepath.Glob(filepath.Join(s.folder, "results", "*", "*", "report.md"))
		if err != nil || len(reports) == 0 {
			t.Fatalf("no run of %s is published: %v", s.folder, err)
		}
		for _, path := range reports {
			report, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			named, err := os.ReadFile(filepath.Join(filepath.Dir(path), "ledger.sha256"))
			if err != nil {
				t.Errorf("%s: %v; hack/studies.sh writes it when it measures the run", filepath.Dir(path), err)
				continue
			}
			if found := digest.FindSubmatch(named); found == nil || !bytes.Contains(report, found[1]) {
				t.Errorf("%s: the report does not name the archive of ledger.sha256, %q", filepath.Dir(path), named)
			}
		}
	}
}

// Results within the last-level cache do not apply beyond it.
func TestStudies_OneRunExceedsTheLastLevelCache(t *testing.T) {
	beyond := regexp.MustCompile(`(?i)beyond\s+the\s+last-level\s+cache`)
	for _, s := range studies(t) {
		linked := false
		// An item, a row or a paragraph that links the run.
		for part := range strings.SplitSeq(regexp.MustCompile(`\n(\n|\* |\| )`).ReplaceAllString(s.page, "\x00"), "\x00") {
			linked = linked || beyond.MatchString(part) && regexp.MustCompile(`\]\(run[a-z0-9-]*\.yaml\)`).MatchString(part)
		}
		if !linked {
			t.Errorf("%s/README.md links no run that is said to be beyond the last-level cache", s.folder)
		}
	}
}

// A figure above a limit shows that the limit is wrong, or that the machine changed: the page has to explain it.
func TestStudies_SharesAboveALimitAreDiscussed(t *testing.T) {
	for _, s := range studies(t) {
		for _, share := range unspoken(s.page) {
			t.Errorf("%s/README.md has %s of a ceiling in a table without an explanation: find the cause, and write the share into the text",
				s.folder, share)
		}
	}
}

// unspoken are the shares of ceilings in the tables of a page that are more than the error of a probe allows and are not in its text.
func unspoken(page string) (out []string) {
	const most = 102 // As in the warning of a report.
	tables, text := lines(page)
	for _, share := range regexp.MustCompile(`\| ([0-9.]+) % \| \w+ \(`).FindAllStringSubmatch(tables, -1) {
		value, err := strconv.ParseFloat(share[1], 64)
		if shown := share[1] + " %"; (err != nil || value > most) && !strings.Contains(text, shown) {
			out = append(out, shown)
		}
	}
	return out
}

// lines are those of the tables of a page, and the others.
func lines(page string) (tables, text string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") {
			tables += line
		} else {
			text += line
		}
	}
	return tables, text
}

func TestShares_UndiscussedAboveTheLimitAreFound(t *testing.T) {
	const table = "| loop | 103.5 % | reads (1 thread) |\n| scan | 101.9 % | reads (1 thread) |\n"
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"a share of more than the limit":     {table, []string{"103.5 %"}},
		"one that the text speaks of":        {table + "\nThe loop has 103.5 % of it.\n", nil},
		"a share of something else":          {"| loop | 250 % |\n", nil},
		"another table does not speak of it": {table + "\n| 103.5 % |\n", []string{"103.5 %"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unspoken(tc.page); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Two CPUs are those of a small machine.
func TestStudies_OneRunUsesMoreThanTwoCPUs(t *testing.T) {
	for _, s := range studies(t) {
		many := func(run string) bool { return regexp.MustCompile(`placement: \{cpus: ([3-9]|\d\d)`).MatchString(run) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.runs)), many) {
			t.Errorf("%s has no run for more than two CPUs", s.folder)
		}
	}
}

func TestStudies_NumbersAreThoseOfTheReports(t *testing.T) {
	for _, s := range studies(t) {
		if s.refers() {
			continue
		}
		for _, number := range unfound(s.page, s.reports) {
			t.Errorf("%s/README.md says %s, and none of its reports does", s.folder, number)
		}
		for _, word := range contradicted(s.page, func(link string) string {
			text, err := os.ReadFile(filepath.Join(s.folder, link))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}) {
			t.Errorf("%s/README.md, %s: no report of the section says so", s.folder, word)
		}
	}
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			out = append(out, strings.TrimPrefix(path, root+"/"))
		}
	}
	return out
}

func TestExplanations_CausalSentencesAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"a sentence that states a measurement":          {"It takes 2 ms, as before.", nil},
		"one that explains it":                          {"It is slow because it reads. It takes 2 ms.", []string{"It is slow because it reads."}},
		"over two lines":                                {"It is slow\nbecause it reads.", []string{"It is slow because it reads."}},
		"a consequence":                                 {"It reads a fifth, so it was never waiting.", []string{"It reads a fifth, so it was never waiting."}},
		"a reason after a comma":                        {"It gains nothing, for its table has it.", []string{"It gains nothing, for its table has it."}},
		"a cause named as such":                         {"The buffer was the bottleneck.", []string{"The buffer was the bottleneck."}},
		"a purpose":                                     {"It is copied so that nothing is lost.", nil},
		"a question":                                    {"Is it slow because it reads?", nil},
		"a supposition":                                 {"If it is slow because it reads, it is fast in the cache.", nil},
		"an explanation that names its evidence":        {"It is slow because it reads.\n<!-- shown by run.yaml: gain -->", nil},
		"the next paragraph is another":                 {"It reads.\n<!-- shown by run.yaml: gain -->\n\nIt is slow because it reads.", []string{"It is slow because it reads."}},
		"an item of a list":                             {"* It reads.\n* It is slow because it reads.", []string{"It is slow because it reads."}},
		"the document's numbers":                        {"**The document's claim.** It is slow because it reads.", nil},
		"a table, a block of code":                      {"| slow because it reads |\n\n```sh\nslow because it reads\n```", nil},
		"a number and a file are no ends of a sentence": {"At 0.5 of run.yaml it is slow, because it reads", []string{"At 0.5 of run.yaml it is slow, because it reads"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unshown(tc.page); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNumbers_AbsentFromReportsAreFound(t *testing.T) {
	const report = "# It: Go\n\n## Gates\n\n| NoGo | gain | 0.9683x \\[0.8006, 1.171\\] |\n\n## Results\n\n| 0.9683x \\[0.8740, 1.073\\] |\n"
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"a ratio, rounded":                     {"It takes 0.97x.", nil},
		"all its digits":                       {"It takes 0.9683x of it.", nil},
		"a ratio that is rounded wrongly":      {"It takes 0.96x.", []string{"0.96x"}},
		"how many times as fast":               {"It is 1.03 times as fast.", nil},
		"how many times as fast it is not":     {"It is 1.05 times as fast.", []string{"1.05 times"}},
		"an interval of results":               {"It takes 0.97x [0.87, 1.07].", nil},
		"an invalid interval":                  {"It takes 0.97x [0.85, 1.07].", []string{"[0.85, 1.07]"}},
		"the interval of its gate":             {"The gate has [0.80, 1.17].", nil},
		"an interval that is not of the gate":  {"The gate has [0.87, 1.07].", []string{"[0.87, 1.07]"}},
		"one at the confidence of gates":       {"At 99.5 % it is [0.87, 1.07].", []string{"[0.87, 1.07]"}},
		"the document's numbers":               {"**The document's claim.** It is 5x as fast.", nil},
		"a number in a table is the machine's": {"| 7.77x |", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unfound(tc.page, []string{report}); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	const capped = "# It: Inconclusive\n\n| b | Invalid | no trial |  |\n\n## Gates\n\n" +
		"| Inconclusive | gain | a |  | time at most 1.000x of b | 1.2x | 6 | missed over the whole interval, so this is not yet NoGo |\n" +
		"| Go | parity | a |  | the outputs agree |  |  | all outputs agree |\n" +
		"| Go | completes | a |  | at least 100% of its trials complete | 1.000 | 6 | 12 of 12 trials completed |\n"
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"the verdict of the report":  {"## A\n\n[report](results/local/a/report.md)\n\nIt is NoGo.", nil},
		"another verdict":            {"## A\n\n[report](results/local/a/report.md)\n\nIt is Inconclusive.", []string{"A: Inconclusive"}},
		"a section without a report": {"## A\n\nIt is Inconclusive.", nil},
		"the report of another":      {"## A\n\n[report](results/local/a/report.md)\n\n## B\n\nIt is Inconclusive.", nil},
		"a word that is no verdict":  {"## A\n\n[report](results/local/a/report.md)\n\nInvalidated.", nil},
		"below the title of a table": {"## A\n\n[report](results/local/c/report.md)\n\n<!-- table local/a/t -->\n### T\n\n<!-- /table -->\n\nIt is Go.",
			[]string{"A: Go"}},
		"a word of a message":         {"## A\n\n[report](results/local/c/report.md)\n\nIt is NoGo.", []string{"A: NoGo"}},
		"a gate on outputs":           {"## A\n\n[report](results/local/c/report.md)\n\nIt is Go.", []string{"A: Go"}},
		"the verdict of a candidate":  {"## A\n\n[report](results/local/c/report.md)\n\nIt is Invalid.", nil},
		"a verdict beside its report": {"## A\n\nIt is Invalid ([report](results/local/a/report.md)).", []string{"A: Invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contradicted(tc.page, func(link string) string {
				if strings.Contains(link, "/c/") {
					return capped
				}
				return report
			}); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
