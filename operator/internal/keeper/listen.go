package keeper

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"assay.dev/assay/operator/internal/record"
)

// AcceptOne listens at a Unix socket, accepts the first connection and stops listening. The runner connects before any trial starts, so
// that no trial can connect. The socket is open to the group of its folder. It appears at its path with its final mode, because the runner
// connects as soon as it is there.
func AcceptOne(ctx context.Context, socket string) (net.Conn, error) {
	listener, private, err := bindPrivately(ctx, socket)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Rename(filepath.Join(private, socketName), socket), os.Remove(private)); err != nil {
		return nil, errors.Join(err, listener.Close(), os.RemoveAll(private))
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	closeErr := listener.Close()
	if errors.Is(closeErr, net.ErrClosed) {
		closeErr = nil // The context ended.
	}
	closeErr = errors.Join(closeErr, os.Remove(socket))
	if err == nil && closeErr != nil {
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

// socketName is the name of the socket in its private folder.
const socketName = "s"

// bindPrivately listens at a socket in a new folder beside the given path, which other users cannot enter, and sets its mode.
func bindPrivately(ctx context.Context, socket string) (listener *net.UnixListener, private string, err error) {
	if private, err = os.MkdirTemp(filepath.Dir(socket), ".k"); err != nil {
		return nil, "", err
	}
	path := filepath.Join(private, socketName)
	var config net.ListenConfig
	general, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(private))
	}
	listener = general.(*net.UnixListener)
	listener.SetUnlinkOnClose(false) // The socket moves.
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, "", errors.Join(err, listener.Close(), os.RemoveAll(private))
	}
	return listener, private, nil
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
