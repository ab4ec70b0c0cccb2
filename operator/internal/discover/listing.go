package discover

import (
	"bufio"
	"regexp"
	"slices"
	"strings"
)

// listed is a benchmark program's list of its benchmarks.
type listed struct {
	names []string
	// broken are those that failed while they were listed, with the cause.
	broken map[string]string
}

var (
	// goResult is the line of a Go benchmark: its name, the number of CPUs where it is not 1, and its iterations. A long name, or one after
	// which the benchmark printed something, is in a separate line.
	goResult = regexp.MustCompile(`^(Benchmark\S*?)(-\d+)?\s+\d+\s+[0-9.e+]+ ns/op`)
	goName   = regexp.MustCompile(`^(Benchmark\S*?)(-\d+)?\s*$`)
	goFailed = regexp.MustCompile(`^\s*--- FAIL: (Benchmark\S*?)(-\d+)?(\s|$)`)
	goFigure = regexp.MustCompile(`^\s*\d+\s+[0-9.e+]+ ns/op`)
)

// goTop parses the output of -test.list: the benchmarks of a test binary, without those that they begin with b.Run.
func goTop(output string) []string {
	var out []string
	for line := range lines(output) {
		if strings.HasPrefix(line, "Benchmark") && !strings.ContainsAny(line, " \t") {
			out = append(out, line)
		}
	}
	return out
}

// goBenchmarks parses the output of one iteration of every benchmark (-test.benchtime=1x -test.v). The names have no number of CPUs, which
// depends on the machine. cpus is the suffix to remove, such as -2; empty if Go adds none.
func goBenchmarks(output, cpus string) listed {
	out, before := listed{broken: map[string]string{}}, ""
	add := func(name, suffix string) {
		if suffix != cpus {
			name += suffix // It is a part of the name.
		}
		if !slices.Contains(out.names, name) {
			out.names = append(out.names, name)
		}
	}
	for line := range lines(output) {
		if found := goFailed.FindStringSubmatch(line); found != nil {
			out.broken[found[1]] = "it failed"
		}
		if found := goResult.FindStringSubmatch(line); found != nil {
			add(found[1], found[2])
		} else if before != "" && goFigure.MatchString(line) {
			found := goName.FindStringSubmatch(before)
			add(found[1], found[2])
		}
		if before = ""; goName.MatchString(line) {
			before = line
		}
	}
	return out
}

// criterion parses the output of --list of a Criterion program: "name: benchmark".
func criterion(output string) []string {
	var out []string
	for line := range lines(output) {
		if name, ok := strings.CutSuffix(line, ": benchmark"); ok && name != "" {
			out = append(out, name)
		}
	}
	return out
}

// divan parses the tree that --list of a divan program prints. A benchmark is a leaf, named by its path from the top, which --exact wants.
func divan(output string) []string {
	type node struct {
		depth int
		name  string
	}
	const branch, width = "─ ", 3 // Each level is indented by three columns.
	var nodes []node
	for line := range lines(output) {
		switch at := strings.LastIndex(line, branch); {
		case at >= 0:
			nodes = append(nodes, node{1 + len([]rune(line[:at]))/width, strings.TrimSpace(line[at+len(branch):])})
		case line != "" && !strings.HasPrefix(line, " "):
			nodes = append(nodes, node{0, line})
		}
	}
	var out, path []string
	for i, n := range nodes {
		if n.depth > len(path) {
			continue // It is no tree.
		}
		path = append(path[:n.depth], n.name)
		if n.depth > 0 && (i+1 == len(nodes) || nodes[i+1].depth <= n.depth) {
			out = append(out, strings.Join(path, "::"))
		}
	}
	return out
}

// pytest parses the output of --collect-only -q: "file::test". Tests without the fixture benchmark are in it too; they report no figure.
func pytest(output, file string) []string {
	var out []string
	for line := range lines(output) {
		if name, ok := strings.CutPrefix(line, file+"::"); ok {
			out = append(out, name)
		}
	}
	return out
}

// jmh parses the output of -l: a line for each method after a title.
func jmh(output string) []string {
	var out []string
	name := regexp.MustCompile(`^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+$`)
	for line := range lines(output) {
		if name.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// lines returns the lines of an output without the space at their ends.
func lines(output string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		scanner := bufio.NewScanner(strings.NewReader(output))
		scanner.Buffer(nil, len(output)+1)
		for scanner.Scan() {
			if !yield(strings.TrimRight(scanner.Text(), " \t\r")) {
				return
			}
		}
	}
}
