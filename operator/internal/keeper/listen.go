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

// AcceptOne listens at a Unix socket, accepts the first connection and stops listening. The runner connects before any trial starts, so
// that no trial can connect. The socket is open to the group of its folder.
func AcceptOne(ctx context.Context, socket string) (net.Conn, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o660); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// Closing the listener removes the socket, so this must not happen before its mode is set.
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	// Closing the listener removes the socket.
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

// MemoryKills returns how many processes the kernel has killed for lack of memory, in all containers of this machine, and whether that is
// known.
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

// TrialsOf returns the names of a block's trials in the order in which the runner runs them, warm-ups first.
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
