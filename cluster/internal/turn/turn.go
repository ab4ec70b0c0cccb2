// Package turn lets one node of a machine at a time run pods with exclusive CPUs, where the kubelets of several nodes give away the same
// ones. It is a plugin of the pod network, so that no such pod starts on one node while one runs on another. Protocol:
// https://github.com/containernetworking/cni/blob/spec-v0.4.0/SPEC.md.
package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/cluster/internal/host"
)

// Plugin is the plugin's type, and the name under which this program is one.
const Plugin = "cpu-turn"

// patience is how long a pod that waits keeps its place without asking again. kubelet asks every ten seconds, and later on a busy machine.
const patience = time.Minute

// Config is the network configuration of this plugin, with the result of the previous plugins.
type Config struct {
	// Folder is common to the nodes of the machine, and Node is the one that asks.
	Folder string `json:"folder"`
	Node   string `json:"node"`
	// Pods are the folders of the control groups below which the node's kubelet makes one for each pod, before its network.
	Pods   []string        `json:"pods"`
	Before json.RawMessage `json:"prevResult"`
}

// pod is who holds or awaits the turn.
type pod struct {
	Node, Name string
	// Since is when it asked first, and Last when it asked last.
	Since, Last time.Time
}

// Main answers as the pod network's specification wants it: also errors go to standard output.
func Main(getenv func(string) string, in io.Reader, out io.Writer) int {
	answer, err := run(getenv, in, time.Now())
	status := 0
	if err != nil {
		answer, _ = json.Marshal(map[string]any{"cniVersion": "0.4.0", "code": 100, "msg": err.Error()})
		status = 1
	}
	_, _ = out.Write(answer)
	return status
}

func run(getenv func(string) string, in io.Reader, now time.Time) ([]byte, error) {
	command := getenv("CNI_COMMAND")
	if command == "VERSION" {
		return []byte(`{"cniVersion":"0.4.0","supportedVersions":["0.3.0","0.3.1","0.4.0"]}`), nil
	}
	var config Config
	if err := json.NewDecoder(in).Decode(&config); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Plugin, err)
	}
	container := getenv("CNI_CONTAINERID")
	if container == "" || filepath.Base(container) != container || filepath.Base(config.Node) != config.Node || config.Folder == "" {
		return nil, fmt.Errorf("invalid configuration of %s: container %q, node %q, folder %q: each must be a name, and the last a folder",
			Plugin, container, config.Node, config.Folder)
	}
	switch command {
	case "ADD":
		name, uid := podOf(getenv("CNI_ARGS"))
		exclusive, err := mayPin(config.Pods, uid)
		if err == nil && exclusive {
			err = take(config, container, name, now)
		}
		return config.Before, err
	case "DEL":
		return nil, host.RemoveFile(filepath.Join(config.Folder, "holding", config.Node, container))
	case "CHECK":
		return nil, nil
	}
	return nil, fmt.Errorf("invalid CNI_COMMAND %q: ADD, DEL, CHECK and VERSION are known", command)
}

// mayPin reports whether kubelet may give a pod exclusive CPUs. It may those of class Guaranteed, whose group is in none of the folders of
// the other classes.
func mayPin(pods []string, uid string) (bool, error) {
	if uid == "" || filepath.Base(uid) != uid {
		return false, fmt.Errorf("invalid K8S_POD_UID %q: the container runtime must name the pod", uid)
	}
	for _, folder := range pods {
		for class, exclusive := range map[string]bool{"": true, "burstable": false, "besteffort": false} {
			if _, err := os.Stat(filepath.Join(folder, class, "pod"+uid)); err == nil {
				return exclusive, nil
			}
		}
	}
	return false, fmt.Errorf("pod %s has no control group below %s: kubelet makes one before the pod's network", uid, strings.Join(pods, ", "))
}

// podOf reads the name and the uid of a pod.
func podOf(arguments string) (name, uid string) {
	values := map[string]string{}
	for pair := range strings.SplitSeq(arguments, ";") {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values["K8S_POD_NAMESPACE"] + "/" + values["K8S_POD_NAME"], values["K8S_POD_UID"]
}

// take gives the turn to a pod, unless another node has it or has waited longer.
func take(config Config, container, name string, now time.Time) error {
	unlock, err := lock(config.Folder)
	if err != nil {
		return err
	}
	defer unlock()
	holders, err := read(filepath.Join(config.Folder, "holding", "*", "*"))
	if err != nil {
		return err
	}
	waiting, err := read(filepath.Join(config.Folder, "waiting", "*"))
	if err != nil {
		return err
	}
	me := pod{Node: config.Node, Name: name, Since: now, Last: now}
	place := filepath.Join(config.Folder, "waiting", strings.ReplaceAll(config.Node+"."+name, "/", "."))
	if before, ok := waiting[place]; ok && now.Sub(before.Last) < patience {
		me.Since = before.Since
	}
	other := blocker(holders, waiting, me, now)
	if other == nil {
		if err := host.RemoveFile(place); err != nil {
			return err
		}
		return write(filepath.Join(config.Folder, "holding", config.Node, container), me)
	}
	if err := write(place, me); err != nil {
		return err
	}
	return fmt.Errorf("the nodes of this machine share its CPUs, and one measures at a time: waiting for pod %s of node %s",
		other.Name, other.Node)
}

// blocker is the pod that a pod waits for: one of another node that holds the turn, or that asked for it earlier. Pods of one node do not
// wait for each other, because its kubelet gives them different CPUs.
func blocker(holders, waiting map[string]pod, me pod, now time.Time) *pod {
	for _, other := range holders {
		if other.Node != me.Node {
			return &other
		}
	}
	for _, other := range waiting {
		if other.Node != me.Node && now.Sub(other.Last) < patience && other.Since.Before(me.Since) {
			return &other
		}
	}
	return nil
}

// Forget ends the turn of a node whose pods are gone.
func Forget(folder, node string) error {
	return os.RemoveAll(filepath.Join(folder, "holding", node))
}

func lock(folder string) (unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

// read reads the pods of files, without those that go meanwhile.
func read(pattern string) (map[string]pod, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	pods := map[string]pod{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(file, ".next") {
			continue
		}
		var one pod
		if err == nil {
			err = json.Unmarshal(data, &one)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		pods[file] = one
	}
	return pods, nil
}

func write(file string, one pod) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return host.ReplaceFile(file, data, 0o600)
}
