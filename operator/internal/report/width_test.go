package report

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"assay.dev/assay/operator/test/cputime"
)

// No line exceeds the width of the terminal, and no cell is lost, for random tables and widths.
func TestTable_FitsWidthWithoutLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "1", "batchSize", "fused-m4r", "7.154x [6.898, 7.420]", "68.38 ms", "µ-ärm", strings.Repeat("long", 12),
		"two words here"}
	for range 3000 {
		keys, columns, together, width := random.IntN(3), 1+random.IntN(9), 1+random.IntN(2), minWidth+random.IntN(180)
		var rows [][]string
		for range 2 + random.IntN(4) {
			var row []string
			for range keys + columns {
				row = append(row, words[random.IntN(len(words))])
			}
			rows = append(rows, row)
		}
		whole := ""
		for _, line := range Columns(rows, keys, together, width) {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("a line of %d characters on %d: %q", n, width, line)
			}
			whole += line
		}
		letters := strings.NewReplacer(" ", "", "\n", "")
		for _, row := range rows[1:] {
			for _, cell := range row {
				if !strings.Contains(letters.Replace(whole), letters.Replace(cell)) {
					t.Fatalf("%q is lost on %d characters:\n%s", cell, width, strings.Join(Columns(rows, keys, together, width), "\n"))
				}
			}
		}
	}
}

func TestTable_FigureStaysBesideItsRatio(t *testing.T) {
	rows := [][]string{
		{"size", "arm", "latency", "/old", "throughput", "/old"}, {"8", "old", "68.38 ms", "1", "115.8 queries/s", "1"},
		{"8", "new", "9.619 ms", "0.14x", "828.5 queries/s", "7.15x"},
	}
	want := `size  arm  latency   /old
8     old  68.38 ms  1
8     new  9.619 ms  0.14x

size  arm  throughput       /old
8     old  115.8 queries/s  1
8     new  828.5 queries/s  7.15x`
	if got := strings.Join(Columns(rows, 2, 2, 40), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	narrow := `size=8  arm=old
  latency  68.38 ms`
	if got := strings.Join(Columns(rows, 2, 2, 22), "\n"); !strings.HasPrefix(got, narrow) {
		t.Errorf("got\n%s\nwant it to begin with\n%s", got, narrow)
	}
}

func TestTerminal_LinesFit(t *testing.T) {
	exp, result := simulated(t, nil, failOne)
	for _, columns := range []int{40, 80, 100, 255} {
		t.Setenv("COLUMNS", fmt.Sprint(columns))
		var out bytes.Buffer
		if err := Terminal(&out, exp, result); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d characters on %d: %s", n, columns, line)
			}
		}
		if !strings.HasSuffix(out.String(), "verdict: Go, best: fused-m4r\n") {
			t.Errorf("the verdict is not the last line:\n%s", out.String())
		}
	}
}

func TestTerminal_WidthOfReader(t *testing.T) {
	for columns, want := range map[string]int{"": defaultWidth, "88": 88, "no number": defaultWidth, "-3": defaultWidth, "5": minWidth} {
		t.Setenv("COLUMNS", columns)
		if got := Width(&bytes.Buffer{}); got != want {
			t.Errorf("COLUMNS=%q gives %d, want %d", columns, got, want)
		}
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLUMNS", "66")
	if got := Width(file); got != 66 {
		t.Errorf("a file is no terminal, and has %d columns", got)
	}
}

func TestTerminal_VerdictsAreColoured(t *testing.T) {
	got := painted("NoGo  old: missed\nGo  new: all hold\nverdict: Go, best: new\nGone\n")
	want := "\x1b[31mNoGo\x1b[0m  old: missed\n\x1b[32mGo\x1b[0m  new: all hold\nverdict: \x1b[32mGo\x1b[0m, best: new\nGone\n"
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// wrapped is the slow reference of Wrap. It copies the rest of the text for every line.
func wrapped(line string, width int) []string {
	rest := []rune(line)
	indent := len(rest) - len([]rune(strings.TrimLeft(line, " "))) + 2
	var out []string
	for len(rest) > width {
		cut := width
		for i := width; i > indent; i-- {
			if rest[i] == ' ' && (i+1 == len(rest) || rest[i+1] != '%') {
				cut = i
				break
			}
		}
		out = append(out, strings.TrimRight(string(rest[:cut]), " "))
		rest = append([]rune(strings.Repeat(" ", min(indent, width/2))), []rune(strings.TrimLeft(string(rest[cut:]), " "))...)
	}
	return append(out, string(rest))
}

func TestWrap_MatchesReferenceInLinearTime(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	words := []string{" ", "  ", "%", " %", "µ", "word", "a-long-word-of-many-letters", "99.5 % of", strings.Repeat(" ", 30)}
	for range 20_000 {
		var line strings.Builder
		for range random.IntN(40) {
			line.WriteString(words[random.IntN(len(words))])
		}
		width := minWidth + random.IntN(60)
		if got, want := Wrap(line.String(), width), wrapped(line.String(), width); !slices.Equal(got, want) {
			t.Fatalf("%q on %d is\n%q\nwant\n%q", line.String(), width, got, want)
		}
	}
	used := cputime.Start()
	Wrap(strings.Repeat("a warning of another tool ", 1<<19), defaultWidth)
	if took := used(); took > 20*time.Second {
		t.Errorf("14 MB took %s", took)
	}
}

func TestWrap_Examples(t *testing.T) {
	for name, tc := range map[string]struct {
		line  string
		width int
		want  []string
	}{
		"at a blank":                     {"one two three", 8, []string{"one two", "  three"}},
		"within a long word":             {"abcdefghijkl", 8, []string{"abcdefgh", "  ijkl"}},
		"not between a number and its %": {"at least 99.5 % of them", 13, []string{"at least", "  99.5 % of", "  them"}},
		"where a % would be the next":    {"at least 99.5 %", 14, []string{"at least", "  99.5 %"}},
		"not where it fits":              {"one two", 7, []string{"one two"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Wrap(tc.line, tc.width); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
