package image

import (
	"assay.dev/assay/cluster/internal/recipe"
)

// Upstream is an image that other projects publish, assembled here under the same name from the same released sources.
type Upstream struct {
	Repository string
	// Tag turns the pinned version into the published tag.
	Tag func(version string) string
	// Binaries maps paths in the image to compiled programs.
	Binaries map[string]string
	// Main is the program whose version is the image's.
	Main string
	Rest Image
}

// All lists every image the cluster and the chart use. This is the only place where their names are written.
func All() []Upstream {
	asIs := func(version string) string { return version }
	return []Upstream{
		{
			Repository: "registry.k8s.io/pause", Tag: func(string) string { return "3.10" }, Main: "pause",
			Binaries: map[string]string{"/pause": "pause"},
			Rest:     Image{Entrypoint: []string{"/pause"}, User: "65535"},
		},
		{
			Repository: "registry.k8s.io/coredns/coredns", Tag: asIs, Main: "coredns",
			Binaries: map[string]string{"/coredns": "coredns"},
			Rest:     Image{Entrypoint: []string{"/coredns"}, User: "65532", WorkDir: "/"},
		},
		{
			Repository: "quay.io/argoproj/workflow-controller", Tag: asIs, Main: "workflow-controller",
			Binaries: map[string]string{"/bin/workflow-controller": "workflow-controller"},
			Rest:     Image{Entrypoint: []string{"workflow-controller"}, User: "8737"},
		},
		{
			// Root, as upstream: it reads whatever the workload's container wrote.
			Repository: "quay.io/argoproj/argoexec", Tag: asIs, Main: "argoexec",
			Binaries: map[string]string{"/bin/argoexec": "argoexec"},
			Rest:     Image{Entrypoint: []string{"argoexec"}},
		},
		{
			Repository: "quay.io/argoproj/argocli", Tag: asIs, Main: "argo",
			Binaries: map[string]string{"/bin/argo": "argo"},
			Rest:     Image{Entrypoint: []string{"argo"}, User: "8737", WorkDir: "/home/argo", Dirs: []string{"/home/argo"}},
		},
		{
			Repository: "quay.io/minio/minio", Tag: recipe.MinIORelease, Main: "minio",
			Binaries: map[string]string{"/usr/bin/minio": "minio"},
			Rest:     Image{Entrypoint: []string{"minio"}, User: "1000", Dirs: []string{"/data"}},
		},
		{
			Repository: "quay.io/prometheus/prometheus", Tag: recipe.PrometheusRelease, Main: "prometheus",
			Binaries: map[string]string{"/bin/prometheus": "prometheus", "/bin/promtool": "promtool"},
			Rest: Image{
				Entrypoint: []string{"/bin/prometheus"}, User: "65534", WorkDir: "/prometheus", Dirs: []string{"/prometheus"},
				Cmd:   []string{"--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"},
				Texts: map[string]string{"/etc/prometheus/prometheus.yml": "global: {scrape_interval: 15s}\n"},
			},
		},
	}
}

// Programs lists the compiled programs the images need.
func Programs(images []Upstream) []string {
	var names []string
	for _, upstream := range images {
		for _, name := range upstream.Binaries {
			names = append(names, name)
		}
	}
	return names
}

// Compose turns an upstream image into one that can be written, given its compiled programs by name, and reports what
// stands for its contents.
func (u Upstream) Compose(built map[string]recipe.Built) (composed Image, inputs []string) {
	composed = u.Rest
	composed.Ref = u.Repository + ":" + u.Tag(built[u.Main].Version)
	composed.Files = map[string]string{}
	for _, inside := range sorted(u.Binaries) {
		program := built[u.Binaries[inside]]
		composed.Files[inside] = program.Path
		inputs = append(inputs, program.Name+"-"+program.Key)
	}
	return composed, inputs
}
