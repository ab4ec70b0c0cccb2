module assay.dev/assay/cluster/build/alertmanager

go 1.26.0

tool github.com/prometheus/alertmanager/cmd/amtool

require github.com/prometheus/alertmanager v0.34.0 // indirect
