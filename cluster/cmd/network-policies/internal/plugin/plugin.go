// Package plugin is the last link of the pod network's chain: a pod starts when the rules for its address are in the kernel, not
// before. Protocol: https://github.com/containernetworking/cni/blob/spec-v0.4.0/SPEC.md.
package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config is the network configuration of this plugin, with the result of the previous plugins.
type Config struct {
	Socket string          `json:"socket"`
	Before json.RawMessage `json:"prevResult"`
}

// Run carries out one command and returns what to print.
func Run(ctx context.Context, command, arguments string, stdin io.Reader) ([]byte, error) {
	switch command {
	case "VERSION":
		return []byte(`{"cniVersion":"0.4.0","supportedVersions":["0.3.0","0.3.1","0.4.0"]}`), nil
	case "ADD":
		return add(ctx, arguments, stdin)
	case "DEL", "CHECK": // rules follow the pods in the API
		return nil, nil
	}
	return nil, fmt.Errorf("CNI_COMMAND is %q: ADD, DEL, CHECK and VERSION are known", command)
}

func add(ctx context.Context, arguments string, stdin io.Reader) ([]byte, error) {
	var config Config
	if err := json.NewDecoder(stdin).Decode(&config); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var before struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(config.Before, &before); err != nil {
		return nil, fmt.Errorf("prevResult: %w", err)
	}
	if len(before.IPs) != 1 {
		return nil, fmt.Errorf("prevResult has %d addresses, want the one that the plugin before gave", len(before.IPs))
	}
	values := url.Values{"address": {before.IPs[0].Address.Addr().String()}}
	for pair := range strings.SplitSeq(arguments, ";") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "K8S_POD_NAMESPACE":
			values.Set("namespace", value)
		case "K8S_POD_NAME":
			values.Set("name", value)
		case "K8S_POD_UID":
			values.Set("uid", value)
		}
	}
	if err := expect(ctx, config.Socket, values); err != nil {
		return nil, fmt.Errorf("network policies: %w", err)
	}
	return config.Before, nil
}

func expect(ctx context.Context, socket string, values url.Values) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DialContext: dial}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://enforcer/expect?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return errors.New(strings.TrimSpace(string(said)))
	}
	return nil
}
