package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"assay.dev/assay/operator/internal/bench"
)

// live shows where a run on this machine stands: on a terminal in one line that is written again, elsewhere in a line now and then.
type live struct {
	out      io.Writer
	terminal *os.File
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

func (l *live) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if l.terminal == nil {
		fmt.Fprintln(l.out, line)
		return
	}
	// A line that is broken cannot be written again.
	if width, _, err := term.GetSize(int(l.terminal.Fd())); err == nil && width > 0 {
		if runes := []rune(line); len(runes) >= width {
			line = string(runes[:width-1])
		}
	}
	fmt.Fprint(l.out, "\r\x1b[K"+line)
}

func (l *live) clear() {
	if l.terminal != nil {
		fmt.Fprint(l.out, "\r\x1b[K")
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
			if found, err := analyzeLedger(ctx, run.store, len(run.course.Waves)-1); err == nil {
				var parts []string
				for _, candidate := range run.experiment.Candidates() {
					parts = append(parts, bench.Short(run.experiment, found.analysis, candidate))
				}
				l.estimate = strings.Join(parts, "; ")
			}
		}
		l.printf("block %d of %d, about %s left: %s", done, total, remaining.Round(time.Second), l.estimate)
	}
}
