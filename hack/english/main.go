// Command english counts clauses in the prose of a git checkout that a reader cannot search for: headless relative clauses, indefinite
// persons and folk phrases. It fails if a part of the tree has more than a limit of them per 1,000 lines of prose.
//
// Usage: english [-limit N] [-v | -figure] [PATH...]
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// kinds are the clauses that are counted; their sum is held against the limit.
var kinds = []struct {
	name    string
	pattern *regexp.Regexp
}{
	// "what to do" and questions are ordinary English.
	{"headless clause", regexp.MustCompile(`(?i)\bwhat(?:ever)?\b`)},
	{"indefinite person", regexp.MustCompile(`(?i)\b(?:nobody|somebody|anybody|everybody|whoever|whomever)\b`)},
	{"folk phrase", regexp.MustCompile(`(?i)\b(?:of (?:its|their|his|ones|one's) own|so many|all the same|(?:is|are|was|were) none)\b`)},
}

// allowed are uses of the same words that are no such clause.
var allowed = regexp.MustCompile(`(?i)\bwhat(?:ever)? (?:to|if)\b|\bwhat[^.;:]*\?`)

// hit is one clause.
type hit struct {
	file string
	line int
	kind string
	body string
}

// tally is the lines of prose of a part of the tree and its clauses by kind.
type tally struct {
	lines int
	hits  map[string]int
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "english: "+err.Error())
		os.Exit(1)
	}
}

func run(arguments []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("english", flag.ContinueOnError)
	limit := flags.Float64("limit", 3, "the most clauses per 1,000 lines of prose")
	verbose := flags.Bool("v", false, "print each clause")
	figure := flags.Bool("figure", false, "print the highest rate of a part as a JSON line instead of the table")
	stdin := flags.String("stdin", "", "also read prose from standard input, under this name")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	files, err := tracked(flags.Args())
	if err != nil {
		return err
	}
	tallies, hits, err := count(files)
	if err != nil {
		return err
	}
	if *stdin != "" {
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		tally, found := countTexts(*stdin, extractLines(string(content), func(line string) string { return line }))
		tallies[*stdin], hits = tally, append(hits, found...)
	}
	if *verbose {
		for _, h := range hits {
			fmt.Fprintf(out, "%s:%d: %s: %s\n", h.file, h.line, h.kind, strings.TrimSpace(h.body))
		}
	}
	if *figure {
		return printFigure(tallies, out)
	}
	return report(tallies, *limit, out)
}

// printFigure prints the highest rate among the parts whose length allows for more than one clause.
func printFigure(tallies map[string]tally, out io.Writer) error {
	worst, lines := 0.0, 0
	for _, t := range tallies {
		total := 0
		for _, n := range t.hits {
			total += n
		}
		if lines += t.lines; total > 1 {
			worst = max(worst, 1000*float64(total)/float64(t.lines))
		}
	}
	_, err := fmt.Fprintf(out, `{"figure":"house.clauses","value":%.2f,"unit":"per 1,000 lines of prose","samples":%d}`+"\n", worst, lines)
	return err
}

// tracked returns the files below the paths that git tracks, without generated ones and those of others, which .gitattributes marks.
func tracked(paths []string) ([]string, error) {
	list, err := exec.Command("git", append([]string{"ls-files", "-z", "--"}, paths...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	check := exec.Command("git", "check-attr", "-z", "--stdin", "linguist-generated", "linguist-vendored")
	check.Stdin = strings.NewReader(string(list))
	attributes, err := check.Output()
	if err != nil {
		return nil, fmt.Errorf("git check-attr: %w", err)
	}
	marked := map[string]bool{}
	for triple := range slices.Chunk(strings.Split(strings.TrimSuffix(string(attributes), "\x00"), "\x00"), 3) {
		marked[triple[0]] = marked[triple[0]] || len(triple) == 3 && triple[2] == "set"
	}
	var out []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		// The counter's own files quote the clauses.
		if !marked[name] && !strings.Contains(name, "testdata/") && !strings.Contains(name, "fixtures/") &&
			!strings.HasPrefix(name, "hack/english/") {
			out = append(out, name)
		}
	}
	return out, nil
}

func count(files []string) (map[string]tally, []hit, error) {
	tallies, hits := map[string]tally{}, []hit(nil)
	for _, name := range files {
		if info, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // Deleted and not committed yet, or a link to a file that is counted itself.
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		counted, found := countTexts(name, extract(name, content))
		part := tallies[partOf(name)]
		part.lines += counted.lines
		if part.hits == nil {
			part.hits = map[string]int{}
		}
		for kind, n := range counted.hits {
			part.hits[kind] += n
		}
		tallies[partOf(name)] = part
		hits = append(hits, found...)
	}
	return tallies, hits, nil
}

func countTexts(name string, texts []text) (tally, []hit) {
	out, hits := tally{hits: map[string]int{}}, []hit(nil)
	lines := map[int]bool{}
	for _, t := range texts {
		lines[t.line] = true
		body := allowed.ReplaceAllString(t.body, "")
		for _, kind := range kinds {
			n := len(kind.pattern.FindAllString(body, -1))
			if n > 0 {
				out.hits[kind.name] += n
				hits = append(hits, hit{name, t.line, kind.name, t.body})
			}
		}
	}
	out.lines = len(lines)
	return out, hits
}

// partOf is the first two folders of a path: the parts of the tree that are counted against the limit.
func partOf(name string) string {
	folders := strings.Split(name, "/")
	if len(folders) == 1 {
		return "(top)"
	}
	return strings.Join(folders[:min(2, len(folders)-1)], "/")
}

func report(tallies map[string]tally, limit float64, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "part\tlines")
	for _, kind := range kinds {
		fmt.Fprintf(table, "\t%s", kind.name)
	}
	fmt.Fprintln(table, "\t")
	var over []string
	for _, part := range slices.SortedFunc(maps.Keys(tallies), cmp.Compare) {
		t, total := tallies[part], 0
		fmt.Fprintf(table, "%s\t%d", part, t.lines)
		for _, kind := range kinds {
			fmt.Fprintf(table, "\t%d", t.hits[kind.name])
			total += t.hits[kind.name]
		}
		fmt.Fprintln(table, "\t")
		// One clause in a short part is no trend.
		if float64(total) > max(1, limit*float64(t.lines)/1000) {
			over = append(over, fmt.Sprintf("%s: %d in %d lines", part, total, t.lines))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(over) > 0 {
		return fmt.Errorf("more than %g clauses per 1,000 lines of prose; english -v lists them:\n%s", limit, strings.Join(over, "\n"))
	}
	return nil
}
