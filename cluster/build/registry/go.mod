module assay.dev/assay/cluster/build/registry

go 1.26.0

tool github.com/distribution/distribution/v3/cmd/registry

require github.com/distribution/distribution/v3 v3.1.1
