package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/clitest"
)

// A line may never end. Lines after it must be shown.
func TestLogs_LongLinesArePrinted(t *testing.T) {
	for name, length := range map[string]int{"no line": 0, "a line": 10, "the longest": longestLine, "a longer one": longestLine + 1,
		"one of several pieces": 5*longestLine + 7} {
		for _, form := range []string{"text", "json"} {
			t.Run(fmt.Sprint(name, " as ", form), func(t *testing.T) {
				long := strings.Repeat("x", length)
				for _, end := range []string{"", "\n"} {
					var out bytes.Buffer
					l := logReader{out: &out, options: logOptions{form: form}}
					if err := l.copy("pod", "main", strings.NewReader("first\r\n"+long+"\n\nlast"+end)); err != nil {
						t.Fatal(err)
					}
					var read []string
					for line := range strings.Lines(out.String()) {
						text, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "pod/main  ")
						if form == "json" {
							var of logLine
							err := json.Unmarshal([]byte(line), &of)
							text, ours = of.Line, err == nil && of.Pod == "pod" && of.Container == "main"
						}
						if !ours || len(text) > longestLine {
							t.Fatalf("a line of %d bytes begins with %.40q", len(line), line)
						}
						read = append(read, text)
					}
					last := len(read) - 1
					if last < 3 || read[0] != "first" || strings.Join(read[1:last-1], "") != long || read[last-1] != "" || read[last] != "last" {
						t.Errorf("%d lines end in %.40q", len(read), read[last])
					}
				}
			})
		}
	}
}

func TestLogs_HostileTextIsEscaped(t *testing.T) {
	clitest.CheckPrintable(t, func(out io.Writer) error {
		l := logReader{out: out}
		return l.copy("pod", "main", strings.NewReader(clitest.Hostile+"\nnot of any alphabet: \x9b2J\n"))
	}, true)
}
