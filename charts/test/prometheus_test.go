package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const prometheus = "Deployment/assay-system/assay-prometheus"

// argument is the value of an argument of a pod's first container.
func argument(t *testing.T, pod corev1.PodTemplateSpec, name string) string {
	t.Helper()
	for _, arg := range pod.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	t.Fatalf("no %s in %v", name, pod.Spec.Containers[0].Args)
	return ""
}

// A dashboard that opens with thirty days of which the half is never there says that nothing was measured.
func TestPrometheus_RetainsTheRangeOfDashboards(t *testing.T) {
	pod := render(t, "").pods(t)[prometheus]
	kept, err := model.ParseDuration(argument(t, pod, "--storage.tsdb.retention.time"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(chartDir + "/generated/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards (%v)", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct{ Time struct{ From string } }
		if err := json.Unmarshal(raw, &dashboard); err != nil {
			t.Fatal(err)
		}
		shown, err := model.ParseDuration(strings.TrimPrefix(dashboard.Time.From, "now-"))
		if err != nil {
			t.Fatalf("%s opens with %s: %v", file, dashboard.Time.From, err)
		}
		if time.Duration(shown) > time.Duration(kept) {
			t.Errorf("%s opens with %s and Prometheus keeps %s", file, shown, kept)
		}
	}
}

func TestPrometheus_StoresSamplesOnAVolume(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values, claim string
		made          bool
	}{
		"by default":            {``, "assay-prometheus", true},
		"a given class":         {`{prometheus: {persistence: {storageClassName: fast, keep: true}}}`, "assay-prometheus", true},
		"a claim that exists":   {`{prometheus: {persistence: {existingClaim: mine}}}`, "mine", false},
		"an emptyDir":           {`{prometheus: {persistence: {enabled: false}}}`, "", false},
		"none":                  {`{prometheus: {mode: external}, grafana: {mode: external}}`, "", false},
		"a smaller one":         {`{prometheus: {size: 800MB}}`, "assay-prometheus", true},
		"a smaller one, unkept": {`{prometheus: {size: 800MB, persistence: {enabled: false}}}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			made := false
			for _, object := range chart.of("PersistentVolumeClaim") {
				if object.GetName() != "assay-prometheus" {
					continue
				}
				made = true
				claim := into[corev1.PersistentVolumeClaim](t, object)
				samples := resource.MustParse(strings.TrimSuffix(argument(t, chart.pods(t)[prometheus], "--storage.tsdb.retention.size"), "B"))
				if room := claim.Spec.Resources.Requests.Storage(); float64(room.Value()) < 1.25*float64(samples.Value()) {
					t.Errorf("the claim is for %s, and Prometheus fills %s and its write-ahead log", room, &samples)
				}
				if strings.Contains(tc.values, "fast") {
					want(t, "claim", *claim.Spec.StorageClassName, "fast")
					wantAnnotation(t, object, "helm.sh/resource-policy", "keep")
				} else {
					wantAnnotation(t, object, "helm.sh/resource-policy", "")
				}
			}
			want(t, "a claim is made", made, tc.made)
			pod, there := chart.pods(t)[prometheus]
			if !there {
				return
			}
			for _, volume := range pod.Spec.Volumes {
				if volume.Name != "data" {
					continue
				}
				if (volume.PersistentVolumeClaim != nil) != (tc.claim != "") || (volume.EmptyDir != nil) != (tc.claim == "") {
					t.Errorf("its samples are on %+v", volume)
				} else if tc.claim != "" {
					want(t, "claim", volume.PersistentVolumeClaim.ClaimName, tc.claim)
				}
			}
		})
	}
}

// A tenant decides how many series a run has and how long their labels are; one scrape must not fill the memory of Prometheus.
func TestPrometheus_ScrapesAreLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		values string
		want   scrapeLimits
		fails  string
	}{
		"by default": {"", scrapeLimits{Body: "64MB", Samples: 200_000, Labels: 40, Name: 128, Value: 1024}, ""},
		"further arguments": {
			"{prometheus: {scrapeLimits: {body: 128MB, samples: 400000, labels: 60, labelNameLength: 200, labelValueLength: 4096}}}",
			scrapeLimits{Body: "128MB", Samples: 400_000, Labels: 60, Name: 200, Value: 4096}, "",
		},
		"no limit of samples": {"{prometheus: {scrapeLimits: {samples: 0}}}", scrapeLimits{}, "samples"},
		"a body without unit": {"{prometheus: {scrapeLimits: {body: '0'}}}", scrapeLimits{}, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			chart, err := tryRender(t, tc.values)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("it is taken: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var config struct {
				Global        scrapeLimits   `json:"global"`
				ScrapeConfigs []scrapeLimits `json:"scrape_configs"`
			}
			if err := yaml.Unmarshal([]byte(chart.prometheusFiles(t)["prometheus.yml"]), &config); err != nil {
				t.Fatal(err)
			}
			if config.Global != tc.want {
				t.Errorf("the limits are %+v, want %+v", config.Global, tc.want)
			}
			if len(config.ScrapeConfigs) == 0 {
				t.Error("nothing is scraped")
			}
			for _, job := range config.ScrapeConfigs {
				// A job inherits the global settings.
				if job != (scrapeLimits{}) {
					t.Errorf("a job overrides the limits: %+v", job)
				}
			}
		})
	}
}

// prometheusFiles are the files of the bundled Prometheus by name.
func (r *rendered) prometheusFiles(t *testing.T) map[string]string {
	t.Helper()
	for _, object := range r.of("ConfigMap", releaseNamespace) {
		if object.GetName() != "assay-prometheus" {
			continue
		}
		files, _, err := unstructured.NestedStringMap(object.Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	t.Fatal("there is no ConfigMap assay-prometheus")
	return nil
}

// scrapeLimits are the limits of Prometheus for one scrape.
type scrapeLimits struct {
	Body    string `json:"body_size_limit"`
	Samples int    `json:"sample_limit"`
	Labels  int    `json:"label_limit"`
	Name    int    `json:"label_name_length_limit"`
	Value   int    `json:"label_value_length_limit"`
}

// The limit catches errors: the operator alone may export that many results (operator/internal/metrics/catalog), and as much again
// of runs and nodes.
func TestPrometheus_LimitExceedsTheSeriesOfTheOperator(t *testing.T) {
	raw, err := os.ReadFile(repository + "/operator/internal/metrics/catalog/catalog.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(raw), "\n\tSeries = ")
	series, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]))
	if !found || err != nil {
		t.Fatalf("the catalog does not say how many series all results have: %v", err)
	}
	values := loadChart(t).Values["prometheus"].(map[string]any)["scrapeLimits"].(map[string]any)
	if samples, ok := values["samples"].(float64); !ok || int(samples) < 2*series {
		t.Errorf("a scrape may have %v samples, and the operator shows %d of results alone", values["samples"], series)
	}
}
