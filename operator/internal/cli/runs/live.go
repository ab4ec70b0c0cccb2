package runs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/cli/ledgers"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/quantity"
)

// LiveLine shows the progress of a run: on a terminal by rewriting one line, elsewhere by appending lines. Other output is written above
// the rewritten line.
type LiveLine struct {
	out      io.Writer
	terminal *os.File
	// line is the line on the terminal.
	line     string
	shown    time.Time
	estimate string
}

// refresh is the minimum interval between two estimates.
const refresh = time.Second

// NewLiveLine returns a LiveLine that writes to out.
func NewLiveLine(out io.Writer) *LiveLine {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &LiveLine{out: out, terminal: file}
	}
	return &LiveLine{out: out}
}

// clearLine is the control sequence that clears a terminal line.
const clearLine = "\r\x1b[K"

// Printf replaces the line.
func (l *LiveLine) Printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if l.terminal == nil {
		fmt.Fprintln(l.out, line)
		return
	}
	// A wrapped line cannot be rewritten.
	width, _, err := term.GetSize(int(l.terminal.Fd()))
	if runes := []rune(line); err == nil && width > 1 && len(runes) >= width {
		line = string(runes[:width-1])
	}
	l.line = line
	fmt.Fprint(l.out, clearLine+line)
}

// Write writes lines above the rewritten line.
func (l *LiveLine) Write(lines []byte) (int, error) {
	if l.terminal == nil || l.line == "" {
		return l.out.Write(lines)
	}
	if _, err := fmt.Fprintf(l.out, "%s%s%s", clearLine, lines, l.line); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// Clear removes the line from the terminal.
func (l *LiveLine) Clear() {
	if l.terminal != nil {
		fmt.Fprint(l.out, clearLine)
		l.line = ""
	}
}

// barWidth is the number of characters of a progress bar without its brackets.
const barWidth = 24

// bar draws a progress bar such as [######------------------].
func bar(done, total int) string {
	full := min(max(done, 0), total) * barWidth / max(total, 1)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}

// printBlocks shows the number of completed blocks of a wave.
func (l *LiveLine) printBlocks(_ context.Context, done, total int, remaining time.Duration) {
	l.Printf("%s %d of %d blocks, about %s left", bar(done, total), done, total, quantity.Seconds(remaining))
}

// PrintRun returns a function that shows the state of a run on a cluster on every change.
func (l *LiveLine) PrintRun() func(*assayv1alpha1.BenchmarkRun) {
	last := ""
	return func(run *assayv1alpha1.BenchmarkRun) {
		line := progress.LineAt(run, time.Now())
		if line == last {
			return
		}
		last = line
		if l.terminal == nil {
			l.Printf("%s  %s", time.Now().Format("15:04:05"), line)
			return
		}
		if trials := run.Status.Trials; trials.Planned > 0 {
			line = bar(int(trials.Done), int(trials.Planned)) + " " + line
		}
		l.Printf("%s", line)
		if progress.Ended(run) {
			l.Clear()
		}
	}
}

// PrintEstimates returns a callback that shows each completed block with the current estimates. Without a terminal it prints ten lines per
// wave.
func (l *LiveLine) PrintEstimates(run *LocalRun) func(ctx context.Context, done, total int, remaining time.Duration) {
	return func(ctx context.Context, done, total int, remaining time.Duration) {
		if l.terminal == nil && done*10/total == (done-1)*10/total {
			return
		}
		if l.terminal == nil || time.Since(l.shown) >= refresh {
			l.shown = time.Now()
			if result, err := ledgers.AnalyzeLedger(ctx, run.Store, len(run.course.Waves)-1); err == nil {
				var parts []string
				for _, candidate := range run.Experiment.Candidates() {
					parts = append(parts, bench.Short(run.Experiment, result.Analysis, candidate))
				}
				l.estimate = strings.Join(parts, "; ")
			}
		}
		text := fmt.Sprintf("block %d of %d, about %s left: %s", done, total, quantity.Seconds(remaining), l.estimate)
		if l.terminal != nil {
			text = bar(done, total) + " " + text
		}
		l.Printf("%s", text)
	}
}
