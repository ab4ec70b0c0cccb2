package embedded

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"assay.dev/assay/cluster/internal/host"
)

// Forward accepts connections on this machine and carries each to an address inside the namespace, until ctx ends.
func Forward(ctx context.Context, namespace, listen, to string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("forwarder: %w", err)
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("forwarder: %w", err)
		}
		go carry(ctx, conn.(*net.TCPConn), namespace, to)
	}
}

func carry(ctx context.Context, outside *net.TCPConn, namespace, to string) {
	defer outside.Close()
	dialCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := host.DialInNetNS(dialCtx, namespace, "tcp", to)
	if err != nil {
		fmt.Fprintf(os.Stderr, "forwarder: %v\n", err)
		return
	}
	inside := conn.(*net.TCPConn)
	defer inside.Close()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{outside, inside}, {inside, outside}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			// One side has said all it has to say; the other may still be answering.
			_ = way[1].CloseWrite()
		})
	}
	both.Wait()
}
