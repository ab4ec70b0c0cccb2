package local

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Survey runs the runner's survey of this machine where a block would run, and returns its output.
func (e *Executor) Survey(ctx context.Context) ([]byte, error) {
	var out, problems bytes.Buffer
	command := exec.CommandContext(ctx, e.Runner, "probe")
	command.Stdout, command.Stderr = &out, &problems
	if err := e.startPinned(command); err != nil {
		return nil, fmt.Errorf("start %s: %w", e.Runner, err)
	}
	if err := command.Wait(); err != nil {
		return nil, fmt.Errorf("%s probe: %w: %s", e.Runner, err, bytes.TrimSpace(problems.Bytes()))
	}
	return out.Bytes(), nil
}
