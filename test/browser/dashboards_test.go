package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// program is a program in the folder that PROGRAMS names.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("PROGRAMS"), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("PROGRAMS must name a folder with prometheus and promtool, or run hack/dashboards.sh: %v", err)
	}
	return path
}

// startPrometheus serves a database, and returns its address once it answers.
func startPrometheus(t *testing.T, database string) *url.URL {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	configuration := filepath.Join(t.TempDir(), "prometheus.yaml")
	// The alerts of the product fire on the specimen as they would on a cluster.
	rules, err := filepath.Abs("../../dashboards/rules")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("global: {evaluation_interval: 15s}\nrule_files: [%s/*.yaml]\n", rules)
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(program(t, "prometheus"), "--config.file="+configuration, "--storage.tsdb.path="+database,
		"--storage.tsdb.retention.time=1d", "--web.listen-address="+address, "--log.level=error")
	output, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	go func() {
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			fmt.Fprintln(os.Stderr, "prometheus:", scanner.Text())
		}
	}()
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		response, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(until) {
			t.Fatalf("Prometheus is not ready after a minute: %v", err)
		}
	}
	return &url.URL{Scheme: "http", Host: address}
}

// serve serves the page, the dashboards and Prometheus from one address.
func serve(t *testing.T, prometheus *url.URL) *httptest.Server {
	t.Helper()
	bundle := os.Getenv("BUNDLE")
	if bundle == "" {
		t.Fatal("BUNDLE is not set: name the folder of the built page, or run hack/dashboards.sh")
	}
	mux := http.NewServeMux()
	mux.Handle("/prometheus/", http.StripPrefix("/prometheus", &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(prometheus) },
	}))
	mux.HandleFunc("/dashboards/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join("../../charts/assay/generated/dashboards", filepath.Base(r.PathValue("name"))+".json"))
	})
	mux.Handle("/bundle/", http.StripPrefix("/bundle", http.FileServer(http.Dir(bundle))))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>dashboard</title>
<link rel="stylesheet" href="/bundle/main.css">
<style>html, body { height: auto !important; overflow: visible !important; margin: 0 } .panel-empty { padding: 8px; text-align: center }</style>
<div id="root"></div><script type="module" src="/bundle/main.js"></script>`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// shown is a panel as the page reports it.
type shown struct {
	Title, Type, State, Error, NoValue, Text string
	Rows, Series                             int
}

// settled waits until no panel waits for data and none has changed in the last second, and returns all.
func settled(t *testing.T, ctx context.Context) []shown {
	t.Helper()
	var panels []shown
	before := ""
	for until := time.Now().Add(90 * time.Second); ; time.Sleep(time.Second) {
		raw, err := chromedp.Run(ctx, chromedp.Evaluate[string](`JSON.stringify(window.report?.() ?? [])`))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(raw), &panels); err != nil {
			t.Fatal(err)
		}
		done := len(panels) > 0 && raw == before
		for _, panel := range panels {
			done = done && (panel.State == "Done" || panel.State == "Error")
		}
		if done {
			return panels
		}
		before = raw
		if time.Now().After(until) {
			t.Fatalf("panels still wait for data: %+v", panels)
		}
	}
}

// Each dashboard on a live Prometheus: the one of the address in PROMETHEUS, such as a demo's, or one with invented series.
func TestDashboards_EveryPanelShowsDataOrSaysWhyNot(t *testing.T) {
	variables := url.Values{"from": {"now-3h"}, "to": {"now"}}
	var prometheus *url.URL
	if address := os.Getenv("PROMETHEUS"); address != "" {
		var err error
		if prometheus, err = url.Parse(address); err != nil {
			t.Fatalf("invalid PROMETHEUS %q: write an address such as http://127.0.0.1:9090", address)
		}
	} else {
		prometheus = startPrometheus(t, writeSpecimen(t, time.Now().Truncate(sampleStep)))
		for name, value := range map[string]string{
			"namespace": "team-search", "run": shownRun, "template": "pir-scan", "metric": "throughput", "statistic": "value", "axis": "batchSize",
		} {
			variables.Set("var-"+name, value)
		}
	}
	server := serve(t, prometheus)
	for _, name := range []string{"fleet", "run", "history"} {
		for _, l := range looks {
			t.Run(name+"-"+l.name, func(t *testing.T) {
				ctx := open(t, l)
				var lock sync.Mutex
				var problems []string
				if err := chromedp.Listen(ctx, func(event any) {
					if event, ok := event.(*runtime.EventExceptionThrown); ok {
						lock.Lock()
						defer lock.Unlock()
						problems = append(problems, event.ExceptionDetails.Text+" "+event.ExceptionDetails.Exception.Description)
					}
				}); err != nil {
					t.Fatal(err)
				}
				query := url.Values{"dashboard": {name}, "theme": {l.scheme}}
				for key, values := range variables {
					query[key] = values
				}
				if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+"/?"+query.Encode())); err != nil {
					t.Fatal(err)
				}
				settled(t, ctx)
				// Some components draw themselves only when they are on the screen.
				height, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.documentElement.scrollHeight`))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
					Width: l.width, Height: int64(height) + 100, DeviceScaleFactor: 1, Mobile: l.width < 600,
				}); err != nil {
					t.Fatal(err)
				}
				panels := settled(t, ctx)
				picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
				if err != nil {
					t.Fatal(err)
				}
				keep(t, "dashboard-"+name+"-"+l.name+".png", picture)
				for _, panel := range panels {
					t.Logf("%-12s %-40s %3d rows: %.120q", panel.Type, panel.Title, panel.Rows, panel.Text)
					if panel.Error != "" {
						t.Errorf("%s: %s", panel.Title, panel.Error)
					}
					// The text for any panel is no reason of this one.
					if text := strings.TrimPrefix(panel.Text, panel.Title); panel.Rows == 0 &&
						(!strings.Contains(text, panel.NoValue) || panel.NoValue == "nothing in the time shown") {
						t.Errorf("%s: shows neither data nor the reason why not: %q", panel.Title, text)
					}
				}
				lock.Lock()
				defer lock.Unlock()
				for _, problem := range problems {
					t.Errorf("the browser complains: %s", problem)
				}
			})
		}
	}
}
