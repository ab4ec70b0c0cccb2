// Command count prints how many lines of which kind every part of a git checkout has. Lines that are blank or hold nothing but a
// comment do not count, and comments of code are a separate kind. .gitattributes marks generated and third-party files.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// The kinds of lines, in the order of the columns. Remarks are the comments of code.
const (
	code       = "code"
	tests      = "tests"
	fixtures   = "fixtures"
	generated  = "generated"
	thirdParty = "third-party"
	docs       = "docs"
	remarks    = "comments"
)

var kinds = []string{code, tests, fixtures, generated, thirdParty, docs, remarks}

// comments are how a line of comment begins, by the end of the file's name; files with another end have none.
var comments = map[string]string{
	".go": "//", ".rs": "//", ".js": "//", ".sh": "#", ".yaml": "#", ".yml": "#", ".toml": "#", ".mk": "#", ".py": "#", "Makefile": "#",
	".mod": "//",
}

// count is lines by part and kind.
type count map[string]map[string]int

func (c count) add(part, kind string, lines int) {
	if c[part] == nil {
		c[part] = map[string]int{}
	}
	c[part][kind] += lines
}

func main() {
	figures := flag.Bool("figures", false, "print JSON lines of the code in total and of the core, and of comments, instead of the table")
	flag.Parse()
	root := cmp.Or(flag.Arg(0), ".")
	counted, err := countTree(root)
	switch {
	case err != nil:
	case *figures:
		err = counted.printFigures(os.Stdout)
	default:
		err = counted.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "count: "+err.Error())
		os.Exit(1)
	}
}

func countTree(root string) (count, error) {
	attributes, err := readAttributes(root)
	if err != nil {
		return nil, err
	}
	out := count{}
	for name, attribute := range attributes {
		file := filepath.Join(root, name)
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue // Deleted and not committed yet, or a link to a file that counts itself.
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for kind, lines := range countFile(name, attribute, content) {
			out.add(partOf(name), kind, lines)
			if isCore(name) {
				out.add(core, kind, lines)
			}
		}
	}
	return out, nil
}

func partOf(name string) string {
	if part, _, below := strings.Cut(name, "/"); below {
		return part
	}
	return "(top)"
}

// core is the operator with its calibration, and the runner with its schema and adapters.
const core = "core"

func isCore(name string) bool {
	return slices.ContainsFunc([]string{"operator/", "runner/"},
		func(folder string) bool { return strings.HasPrefix(name, folder) })
}

func (c count) printFigures(to io.Writer) error {
	total, commented := 0, 0
	for part, lines := range c {
		if part != core {
			total, commented = total+lines[code], commented+lines[remarks]
		}
	}
	_, err := fmt.Fprintf(to, `{"figure":"house.code_lines","value":%d,"unit":"lines","samples":1}`+"\n"+
		`{"figure":"house.core_code_lines","value":%d,"unit":"lines","samples":1}`+"\n"+
		`{"figure":"house.comments","value":%.3f,"unit":"lines per line of code","samples":1}`+"\n",
		total, c[core][code], float64(commented)/float64(max(1, total)))
	return err
}

// readAttributes is the kind that .gitattributes gives to every tracked file; "" for most.
func readAttributes(root string) (map[string]string, error) {
	files, err := git(root, nil, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	set, err := git(root, files, "check-attr", "-z", "--stdin", "linguist-generated", "linguist-vendored")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for triple := range slices.Chunk(strings.Split(strings.TrimSuffix(string(set), "\x00"), "\x00"), 3) {
		kind := out[triple[0]]
		if triple[2] == "set" {
			kind = map[string]string{"linguist-generated": generated, "linguist-vendored": thirdParty}[triple[1]]
		}
		out[triple[0]] = kind
	}
	return out, nil
}

func git(root string, input []byte, arguments ...string) ([]byte, error) {
	command := exec.Command("git", append([]string{"-C", root}, arguments...)...)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return out, nil
}

// countFile counts the lines of a file by kind: the tests of a Rust module stand at its end.
func countFile(name, attribute string, content []byte) map[string]int {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	kind, out := cmp.Or(attribute, kindOf(name)), map[string]int{}
	comment, before := comments[cmp.Or(path.Ext(name), path.Base(name))], ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if comment != "" && strings.HasPrefix(line, comment) {
			if kind == code {
				out[remarks]++
			}
			continue
		}
		if line == "" {
			continue
		}
		if kind == code && before == "#[cfg(test)]" && strings.HasPrefix(line, "mod ") {
			kind = tests
		}
		out[kind]++
		before = line
	}
	return out
}

func kindOf(name string) string {
	folders := strings.Split(path.Dir(name), "/")
	within := func(names ...string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(names, f) })
	}
	switch {
	case within("testdata", "fixtures"):
		return fixtures
	case strings.HasSuffix(name, ".md") || path.Base(name) == "LICENSE":
		return docs
	case strings.HasSuffix(name, "_test.go") || within("test", "tests"):
		return tests
	default:
		return code
	}
}

func (c count) print(to io.Writer) error {
	all := map[string]int{}
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "lines\t%s\t\n", strings.Join(kinds, "\t"))
	row := func(part string, lines map[string]int) {
		fmt.Fprint(out, part)
		for _, kind := range kinds {
			fmt.Fprintf(out, "\t%d", lines[kind])
		}
		fmt.Fprint(out, "\t\n")
	}
	for _, part := range slices.Sorted(maps.Keys(c)) {
		if part == core {
			continue // Its lines are those of other parts.
		}
		row(part, c[part])
		for kind, lines := range c[part] {
			all[kind] += lines
		}
	}
	row("all", all)
	return out.Flush()
}
