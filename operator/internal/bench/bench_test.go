package bench

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWords_SplitLikeShellOrRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want []string
		says string
	}{
		"words":                                {line: "sort -n  file", want: []string{"sort", "-n", "file"}},
		"quotes keep words together":           {line: `grep -c 'a b' "c d"`, want: []string{"grep", "-c", "a b", "c d"}},
		"a quoted part of a word":              {line: `--name="a b"c`, want: []string{"--name=a bc"}},
		"an empty word":                        {line: `f ''`, want: []string{"f", ""}},
		"a backslash":                          {line: `f a\ b \*`, want: []string{"f", "a b", "*"}},
		"a quoted pattern":                     {line: `find . -name '*.go'`, want: []string{"find", ".", "-name", "*.go"}},
		"quoted metacharacters are plain text": {line: `awk '$1 > 2 | 3' "a;b"`, want: []string{"awk", "$1 > 2 | 3", "a;b"}},
		"an escaped dollar in double quotes":   {line: `f "\$HOME"`, want: []string{"f", "$HOME"}},
		"a pattern":                            {line: "ls *.go", says: "a pattern of file names"},
		"a home folder":                        {line: "ls ~/x", says: "a home folder"},
		"a pipe":                               {line: "a | b", says: "a pipe, a list or a group of commands needs a shell: give --shell"},
		"a list":                               {line: "a && b", says: "--shell"},
		"two commands":                         {line: "a; b", says: "several commands in a row"},
		"a redirection":                        {line: "a > out", says: "a redirection needs a shell: give --shell"},
		"a redirection of the input":           {line: "a < in", says: "a redirection"},
		"a command in the background":          {line: "a &", says: "in the background"},
		"a variable":                           {line: "a $HOME", says: "a variable or a substitution"},
		"a variable in quotes":                 {line: `a "x$HOME"`, says: "a variable or a substitution"},
		"a substitution":                       {line: "a $(date)", says: "a variable or a substitution"},
		"an assignment":                        {line: "N=1 a", says: "or write env NAME=VALUE PROGRAM"},
		"a group":                              {line: "(a)", says: "--shell"},
		"a quote that does not end":            {line: "a 'b", says: "quote"},
		"nothing":                              {line: "  ", says: "it is empty"},
		"a negated exit code":                  {line: "! a", says: "a negated exit code"},
		"a brace expansion of bash is plain text": {line: "echo {a,b}", want: []string{"echo", "{a,b}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Words(tc.line)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "command ") {
					t.Errorf("error %v, want one that says %q", err, tc.says)
				}
				return
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// draw returns a word of printable characters, half of them metacharacters of shells.
func draw(random *rand.Rand, longest int) string {
	const special = `'"\$&|;<>()*?[~#= {}!-/.`
	out := make([]byte, random.IntN(longest+1))
	for i := range out {
		if out[i] = byte(' ' + random.IntN('~'-' '+1)); random.IntN(2) == 0 {
			out[i] = special[random.IntN(len(special))]
		}
	}
	return string(out)
}

func TestWords_QuotedWordsRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		words, quotes := []string{}, []string{}
		for range 1 + random.IntN(5) {
			word := draw(random, 8)
			double := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(word) + `"`
			single := "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
			words, quotes = append(words, word), append(quotes, []string{double, single}[random.IntN(2)])
		}
		got, err := Words(strings.Join(quotes, " "))
		if err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q became %q (%v)", words, got, err)
		}
	}
}

// env -S starts commands with different numbers of arguments.
func TestEnv_QuotedWordsRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"/usr/bin/printf", `%s\n`}
	for range 500 {
		words = append(words, draw(random, 8))
	}
	out, err := exec.Command(env, "-S", quoted(words)).Output()
	if want := strings.Join(words[2:], "\n") + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: got %q, want %q", err, out, want)
	}
}

func TestNames_FromDifferingWords(t *testing.T) {
	for name, tc := range map[string]struct {
		commands []string
		want     []string
	}{
		"an option":                            {[]string{"sort --parallel=1 f", "sort --parallel=8 f"}, []string{"parallel-1", "parallel-8"}},
		"numbers":                              {[]string{"sleep 0.33", "sleep 0.5"}, []string{"sleep-0-33", "sleep-0-5"}},
		"options that are numbers":             {[]string{"gzip -6 f", "gzip -9 f"}, []string{"gzip-6", "gzip-9"}},
		"several numbers":                      {[]string{"seq 1 9", "seq 2 8"}, []string{"seq-1-9", "seq-2-8"}},
		"a word":                               {[]string{"zip fast f", "zip best f"}, []string{"fast", "best"}},
		"programs":                             {[]string{"gzip f", "zstd f"}, []string{"gzip", "zstd"}},
		"programs and their suffixes":          {[]string{"./old.test -v", "./new.test -v"}, []string{"old", "new"}},
		"folders":                              {[]string{"/a/v1/server", "/a/v2/server"}, []string{"v1", "v2"}},
		"one has more arguments":               {[]string{"sort f", "sort -g f"}, []string{"baseline", "candidate"}},
		"several programs and arguments":       {[]string{"gzip -9 f", "zstd f"}, []string{"gzip-9", "zstd"}},
		"nothing differs":                      {[]string{"true", "true", "true"}, []string{"baseline", "candidate", "candidate-2"}},
		"a name that is taken":                 {[]string{"f null", "f x"}, []string{"baseline", "candidate"}},
		"characters that are invalid in names": {[]string{"grep 'A|B'", "grep 'C D'"}, []string{"a-b", "c-d"}},
	} {
		t.Run(name, func(t *testing.T) {
			var commands [][]string
			for _, line := range tc.commands {
				words, err := Words(line)
				if err != nil {
					t.Fatal(err)
				}
				commands = append(commands, words)
			}
			if got := Names(commands); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNames_DistinctAndValid(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		commands := make([][]string, 2+random.IntN(4))
		for i := range commands {
			for range 1 + random.IntN(4) {
				commands[i] = append(commands[i], draw(random, 60))
			}
		}
		names := Names(commands)
		if len(names) != len(commands) || !distinct(names) {
			t.Fatalf("%q", names)
		}
		for i, name := range names {
			if !ArmName.MatchString(name) || len(name) > 63 ||
				onlyDigits.MatchString(name) && strings.ContainsAny(programName(commands, i), "abcdefghijklmnopqrstuvwxyz") {
				t.Fatalf("%q is no name", name)
			}
		}
	}
}

func TestCheckBudget_TooSlowProgramIsRejectedWithBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		budget, block time.Duration
		says          string
	}{
		"a program of half a second": {time.Minute, 2 * time.Second, ""},
		"just enough":                {time.Minute, time.Minute / 11, ""},
		"too slow":                   {time.Minute, 20 * time.Second, "a block of all commands took 20s, and a verdict takes 10 blocks after the first: give --budget 4m58s"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckBudget(tc.budget, tc.block)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// The advised budget suffices although the first block of the next comparison takes a third longer, and holds the blocks then.
func TestEnough_SufficesTheFirstTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		block := time.Millisecond + time.Duration(random.Int64N(int64(10*time.Minute)))
		slower := time.Duration(float64(block) * (1 + random.Float64()/3))
		budget := Enough(block)
		if err := CheckBudget(budget, slower); err != nil || (LeastBlocks+1)*slower > budget {
			t.Fatalf("blocks of %s, then %s: %s (%v)", block, slower, budget, err)
		}
	}
}
