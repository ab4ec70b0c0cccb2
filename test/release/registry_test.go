package release

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// released are our images.
var released = []string{"operator", "runner", "scan", "batch", "insert"}

// registryConfig configures a registry that listens at an address and stores everything in a folder.
func registryConfig(address, folder string) string {
	return fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", folder, address)
}

// localRegistry runs a registry on this machine, and returns its host.
func localRegistry(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("registry"); err != nil {
		t.Skip("registry is not on PATH: make test-release builds it")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	config := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(config, []byte(registryConfig(address, t.TempDir())), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	serve := exec.Command("registry", "serve", config)
	serve.Stdout, serve.Stderr = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if answer, err := http.Get("http://" + address + "/v2/"); err == nil {
			_ = answer.Body.Close()
			return strings.Replace(address, "127.0.0.1", "localhost", 1)
		}
	}
	t.Fatal("the registry does not answer within a minute")
	return ""
}

// ours is where in a registry the chart of the release looks for our images, when global.imageRegistry names the registry: that takes the
// place of the host alone, and a release for ghcr.io/acme has a path below it.
func ours(t *testing.T, registry string) string {
	t.Helper()
	values := files(t, "assay-"+version(t)+".tgz")["assay/values.yaml"]
	found := regexp.MustCompile(`(?m)^  operator: \{repository: [^/,]*/([^,]*)assay-operator,`).FindStringSubmatch(values)
	if found == nil {
		t.Fatal("the chart's values name no image of the operator")
	}
	return strings.TrimSuffix(registry+"/"+found[1], "/")
}

// layouts unpacks the images of the release, and its chart.
func layouts(t *testing.T) (images, chart string) {
	t.Helper()
	images, chart = t.TempDir(), t.TempDir()
	for _, image := range released {
		unpack(t, "assay-"+image+"_"+version(t)+".oci.tar", filepath.Join(images, "assay-"+image))
	}
	unpack(t, "assay-chart_"+version(t)+".oci.tar", chart)
	return images, chart
}

// push puts images and chart into a registry as make push-release does, signed if there is a key, and returns their names by digest. The
// chart's is the last.
func push(t *testing.T, registry, key, images, chart string) []string {
	t.Helper()
	where := ours(t, registry)
	var names []string
	for _, word := range strings.Fields(command(t, "", "hack/push.sh", where, key, "--layouts", images, "--chart", chart)) {
		if strings.HasPrefix(word, where+"/") {
			names = append(names, word)
		}
	}
	if len(names) != len(released)+1 || !strings.HasPrefix(names[len(released)], where+"/charts/assay@sha256:") {
		t.Fatalf("pushed %v, want %d images and the chart by their digests", names, len(released))
	}
	return names
}

// unpack writes an archive of the release into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	for path, content := range files(t, archive) {
		if path == "" || strings.HasSuffix(path, "/") {
			continue
		}
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRegistry_ChartAndImagesArePulledByDigest(t *testing.T) {
	registry := localRegistry(t)
	images, chart := layouts(t)
	pushed := push(t, registry, "", images, chart)
	manifests := command(t, "", "helm", "template", "assay", "oci://"+pushed[len(released)], "--plain-http", "--set",
		"global.imageRegistry="+registry)
	var named []string
	for _, image := range regexp.MustCompile(regexp.QuoteMeta(registry)+`/[^"\s]*assay-[^"\s]+`).FindAllString(manifests, -1) {
		if !slices.Contains(named, image) {
			named = append(named, image)
		}
	}
	slices.Sort(named)
	if want := slices.Sorted(slices.Values(pushed[:len(released)])); !slices.Equal(named, want) {
		t.Errorf("the chart names %v, and pushed were %v", named, want)
	}
	for _, image := range named {
		repository, digest, _ := strings.Cut(strings.TrimPrefix(image, registry+"/"), "@")
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+registry+"/v2/"+repository+"/manifests/"+digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("Accept", "application/vnd.oci.image.index.v1+json")
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: the registry answers %s", image, answer.Status)
		}
	}
}

func TestRegistry_PushWithKeySigns(t *testing.T) {
	needSignature(t)
	registry := localRegistry(t)
	t.Setenv("COSIGN_PASSWORD", "of this test")
	prefix := filepath.Join(t.TempDir(), "release")
	if out, err := cosign(t, "generate-key-pair", "--output-key-prefix", prefix); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	images, chart := layouts(t)
	for _, name := range push(t, registry, prefix+".key", images, chart) {
		for key, holds := range map[string]bool{prefix + ".pub": true, absolute(t, "cosign.pub"): false} {
			if out, err := cosign(t, "verify", "--key", key, "--insecure-ignore-tlog", name); (err == nil) != holds {
				t.Errorf("%s with %s: %v\n%s", name, key, err, out)
			}
		}
	}
}
