package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
)

// client talks to addresses inside a network namespace. It checks no certificate, because it only reads health endpoints.
func client(namespace string) *http.Client {
	return &http.Client{
		Timeout: 3 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // health only, inside our own namespace
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return host.DialInNetNS(ctx, namespace, network, address)
			},
		},
	}
}

// healthy returns nil when the component answers that it is well.
func (c *Cluster) healthy(ctx context.Context, part component.Part) error {
	switch part.Kind {
	case component.Containerd:
		return canConnect(ctx, "unix", part.Node.ContainerdSocket())
	case component.Forwarder:
		return canConnect(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", c.Port))
	}
	address := component.HealthURL(part.Kind)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client(part.Node.NetNS).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2048))
		return fmt.Errorf("%s answers %s: %s", address, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

func canConnect(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// ctr calls the client of a node's containerd.
func ctr(ctx context.Context, settings component.Settings, node config.Node, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	args = append([]string{"--address", node.ContainerdSocket(), "--namespace", "k8s.io", "--connect-timeout", "2s"}, args...)
	return host.OS{}.Output(ctx, host.Command{Path: settings.OS.Bin() + "/ctr", Args: args, Env: settings.OS.Env(host.SearchPath)})
}

// errGone is why waiting for a component makes no sense any more.
var errGone = errors.New("it ended")

// await waits until the component is well, and explains itself with the component's own log if that does not happen.
func (u *upRun) await(ctx context.Context, part component.Component, within time.Duration) error {
	err := poll(ctx, within, 100*time.Millisecond, func(ctx context.Context) error {
		if _, alive, _ := u.launcher.Running(part.Spec); !alive {
			return errGone
		}
		return u.healthy(ctx, part.Part)
	})
	if err != nil {
		log := u.launcher.LogPath(part.Name())
		return fmt.Errorf("%s is not healthy after %s: %w\nthe end of %s:\n%s", part.Name(), within, err, log, tailOf(log, 15))
	}
	return nil
}

// poll calls check until it succeeds, says errGone, or time is over, and returns the last error.
func poll(ctx context.Context, within, every time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(every):
		}
	}
}
