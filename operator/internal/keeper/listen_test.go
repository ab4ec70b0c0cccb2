package keeper

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A runner of another user connects as soon as the socket is there, which fails while the socket has another mode.
func TestBindPrivately_SocketIsNotVisibleBeforeItsMode(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	listener, private, err := bindPrivately(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	// The window between both steps is open here for as long as the test wants.
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is there: %v", err)
	}
	if info, err := os.Lstat(private); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v (%v), want one for its owner only", info.Mode(), err)
	}
	if info, err := os.Lstat(filepath.Join(private, socketName)); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket is %v (%v)", info, err)
	}
}

func TestAcceptOne_FirstModeOfTheSocketIsItsLast(t *testing.T) {
	folder := t.TempDir()
	socket := filepath.Join(folder, "socket")
	// A sidecar that was killed may have left its socket.
	if err := os.WriteFile(socket, nil, 0o000); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		accepted := make(chan error, 1)
		go func() {
			conn, err := AcceptOne(t.Context(), socket)
			if err == nil {
				err = conn.Close()
			}
			accepted <- err
		}()
		deadline := time.Now().Add(10 * time.Second)
		for info := fs.FileInfo(nil); ; {
			var err error
			if info, err = os.Lstat(socket); err == nil && info.Mode()&fs.ModeSocket != 0 {
				if info.Mode().Perm() != 0o660 {
					t.Fatalf("the socket is %v at first", info.Mode())
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("there is no socket")
			}
		}
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-accepted, conn.Close()); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Fatalf("%v is left (%v)", left, err)
		}
	}
}

func TestAcceptOne_EndOfContextLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := AcceptOne(ctx, filepath.Join(folder, "socket")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

// The runner reaches the socket by the group of the folder, which a volume with an fsGroup passes on to its new files.
func TestBindPrivately_SocketHasTheGroupOfItsFolder(t *testing.T) {
	const group = 65532
	folder := t.TempDir()
	if err := errors.Join(os.Chown(folder, -1, group), os.Chmod(folder, 0o770|fs.ModeSetgid)); err != nil {
		t.Skipf("this user may not give a folder another group: %v", err)
	}
	listener, private, err := bindPrivately(t.Context(), filepath.Join(folder, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	info, err := os.Lstat(filepath.Join(private, socketName))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Gid; got != group {
		t.Errorf("its group is %d, want %d", got, group)
	}
}
