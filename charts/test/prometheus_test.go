package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
func TestThePrometheusOfTheChartKeepsWhatEveryDashboardOpensWith(t *testing.T) {
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

func TestThePrometheusOfTheChartKeepsItsSamplesOnAVolume(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values, claim string
		made          bool
	}{
		"by default":            {``, "assay-prometheus", true},
		"a class of one's own":  {`{prometheus: {persistence: {storageClassName: fast, keep: true}}}`, "assay-prometheus", true},
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
					t.Errorf("the claim is for %s, and Prometheus fills %s and what it is writing", room, &samples)
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
