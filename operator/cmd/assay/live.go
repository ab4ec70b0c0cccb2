package main

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
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/quantity"
)

// live shows where a run stands: on a terminal in one line that is written again, elsewhere in a line now and then. What is written to
// it in between stands above that line.
type live struct {
	out      io.Writer
	terminal *os.File
	// line is what the terminal shows now.
	line     string
	shown    time.Time
	estimate string
}

// refresh is how often the estimate is computed anew.
const refresh = time.Second

func newLive(out io.Writer) *live {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &live{out: out, terminal: file}
	}
	return &live{out: out}
}

// again clears a terminal's line.
const again = "\r\x1b[K"

func (l *live) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if l.terminal == nil {
		fmt.Fprintln(l.out, line)
		return
	}
	// A line that is broken cannot be written again.
	width, _, err := term.GetSize(int(l.terminal.Fd()))
	if runes := []rune(line); err == nil && width > 1 && len(runes) >= width {
		line = string(runes[:width-1])
	}
	l.line = line
	fmt.Fprint(l.out, again+line)
}

// Write puts lines above the one that is written again.
func (l *live) Write(lines []byte) (int, error) {
	if l.terminal == nil || l.line == "" {
		return l.out.Write(lines)
	}
	if _, err := fmt.Fprintf(l.out, "%s%s%s", again, lines, l.line); err != nil {
		return 0, err
	}
	return len(lines), nil
}

func (l *live) clear() {
	if l.terminal != nil {
		fmt.Fprint(l.out, again)
		l.line = ""
	}
}

// barWidth is how many characters a bar has between its brackets.
const barWidth = 24

// bar is how much of a run is done: [######------------------].
func bar(done, total int) string {
	full := min(max(done, 0), total) * barWidth / max(total, 1)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}

// blocks shows how many blocks of a wave are done.
func (l *live) blocks(_ context.Context, done, total int, remaining time.Duration) {
	l.printf("%s %d of %d blocks, about %s left", bar(done, total), done, total, quantity.Seconds(remaining))
}

// run shows where a run on a cluster stands, whenever that has changed.
func (l *live) run() func(*assayv1alpha1.BenchmarkRun) {
	last := ""
	return func(run *assayv1alpha1.BenchmarkRun) {
		line := progress.Line(run)
		if line == last {
			return
		}
		last = line
		if l.terminal == nil {
			l.printf("%s  %s", time.Now().Format("15:04:05"), line)
			return
		}
		if trials := run.Status.Trials; trials.Planned > 0 {
			line = bar(int(trials.Done), int(trials.Planned)) + " " + line
		}
		l.printf("%s", line)
		if progress.Ended(run) {
			l.clear()
		}
	}
}

// follow returns what reports every block of a run that is done: elsewhere than on a terminal of every tenth of them.
func (l *live) follow(run *localRun) func(ctx context.Context, done, total int, remaining time.Duration) {
	return func(ctx context.Context, done, total int, remaining time.Duration) {
		if l.terminal == nil && done*10/total == (done-1)*10/total {
			return
		}
		if l.terminal == nil || time.Since(l.shown) >= refresh {
			l.shown = time.Now()
			if result, err := analyzeLedger(ctx, run.store, len(run.course.Waves)-1); err == nil {
				var parts []string
				for _, candidate := range run.experiment.Candidates() {
					parts = append(parts, bench.Short(run.experiment, result.analysis, candidate))
				}
				l.estimate = strings.Join(parts, "; ")
			}
		}
		text := fmt.Sprintf("block %d of %d, about %s left: %s", done, total, quantity.Seconds(remaining), l.estimate)
		if l.terminal != nil {
			text = bar(done, total) + " " + text
		}
		l.printf("%s", text)
	}
}
