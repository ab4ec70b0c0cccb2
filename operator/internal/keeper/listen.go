package keeper

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strconv"

	"assay.dev/assay/operator/internal/record"
)

// AcceptOne listens at a Unix socket, takes the first connection and listens no more: the runner connects before any trial
// starts, so that no trial ever can. Whoever is in the group of the socket's folder may connect.
func AcceptOne(ctx context.Context, socket string) (net.Conn, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o660); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// Closing removes the socket: not before it has its mode.
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	// Closing it removes the socket.
	if closeErr := listener.Close(); err == nil && closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
		return nil, errors.Join(closeErr, conn.Close())
	}
	if ctx.Err() != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, ctx.Err()
	}
	return conn, err
}

// MemoryKills is how many processes of this machine the kernel has killed for memory, of any container.
func MemoryKills() (int64, bool) {
	raw, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(raw) {
		if count, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			kills, err := strconv.ParseInt(string(bytes.TrimSpace(count)), 10, 64)
			return kills, err == nil
		}
	}
	return 0, false
}

// TrialsOf are the names of a block's trials, warm-ups first, as the runner runs them.
func TrialsOf(block *record.Block) []string {
	out := make([]string, 0, block.Trials())
	for slot := range block.Warmup {
		out = append(out, record.TrialName(block.ID, slot, true))
	}
	for slot := range block.Order {
		out = append(out, record.TrialName(block.ID, slot, false))
	}
	return out
}
